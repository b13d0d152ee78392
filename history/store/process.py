"""Identity of the process that runs a session, and whether it is still alive."""

import os
from dataclasses import dataclass
from pathlib import Path

FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the PID namespace of a machine itself: PROC_PID_INIT_INO (include/linux/proc_ns.h)."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of one machine, distinguished from later processes with the same process id."""

    process_id: int
    start_ticks: int
    """The clock ticks from boot to the start of the process, field 22 of proc_pid_stat(5)."""

    boot_id: str
    """The random id of the boot, `/proc/sys/kernel/random/boot_id` (random(4)); in a container followed by a
    slash and its PID namespace, in which alone the process has this number (pid_namespaces(7))."""


def this_process() -> ProcessIdentity:
    """Return the identity of the calling process. Raises OSError without Linux' /proc."""
    process_id = os.getpid()
    return ProcessIdentity(process_id, _start_ticks(process_id), own_boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Return whether this process is still running on this machine, since the same boot.

    It is not alive for another container, where nobody can see it.
    """
    if identity.boot_id != own_boot_id():
        return False
    try:
        state, *rest = _fields(identity.process_id)
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie has ended, though its parent has not asked for its exit code yet, or never will.
    return state not in "ZX" and int(rest[18]) == identity.start_ticks


def _start_ticks(process_id: int) -> int:
    return int(_fields(process_id)[19])


def _fields(process_id: int) -> list[str]:
    """Return the fields of proc_pid_stat(5) from the third on, which is the state."""
    stat = Path(f"/proc/{process_id}/stat").read_text()
    # Field 2 is the program's name in parentheses, and may itself contain blanks and parentheses.
    return stat.rpartition(")")[2].split()


def own_boot_id() -> str:
    """Return the `boot_id` of the processes that this one can see. Raises OSError without Linux' /proc."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return boot_id if namespace == FIRST_PID_NAMESPACE else f"{boot_id}/{namespace}"


def is_of_this_kernel(boot_id: str) -> bool:
    """Return whether a process is or was on this machine since it booted, in any container."""
    return boot_id.partition("/")[0] == own_boot_id().partition("/")[0]
