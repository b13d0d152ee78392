"""Identity of the process that runs a session, and whether it is still alive."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of one machine, distinguished from later processes with the same process id."""

    process_id: int
    start_ticks: int
    """The clock ticks from boot to the start of the process, field 22 of proc_pid_stat(5)."""

    boot_id: str
    """The random id of the boot: random(4), `/proc/sys/kernel/random/boot_id`."""


def this_process() -> ProcessIdentity:
    """Return the identity of the calling process. Raises OSError without Linux' /proc."""
    process_id = os.getpid()
    return ProcessIdentity(process_id, _start_ticks(process_id), _boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Return whether this process is still running on this machine, since the same boot."""
    if identity.boot_id != _boot_id():
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


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
