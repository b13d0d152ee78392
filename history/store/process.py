"""Which process carries out a session, and whether it still lives."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of one machine, distinguished from later ones that the kernel gives the same number."""

    process_id: int
    start_ticks: int
    """Clock ticks from boot to the start of the process: field 22 of proc_pid_stat(5)."""

    boot_id: str
    """Random per boot: random(4), `/proc/sys/kernel/random/boot_id`."""


def this_process() -> ProcessIdentity:
    """The process that asks. Raises OSError where there is no Linux /proc."""
    process_id = os.getpid()
    return ProcessIdentity(process_id, _start_ticks(process_id), _boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether that very process still runs on this machine, in this boot."""
    if identity.boot_id != _boot_id():
        return False
    try:
        return _start_ticks(identity.process_id) == identity.start_ticks
    except (FileNotFoundError, ProcessLookupError):
        return False


def _start_ticks(process_id: int) -> int:
    stat = Path(f"/proc/{process_id}/stat").read_text()
    # Field 2 is the program's name in parentheses and may itself hold blanks and parentheses.
    return int(stat.rpartition(")")[2].split()[19])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
