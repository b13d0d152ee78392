"""What the kernel counts in /proc: the CPU time of the machine, and of every process.

Read with bare system calls rather than psutil: a snapshot of hundreds of processes is taken at the edges of a
measured window, and has to be over in milliseconds.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
"""In which /proc counts CPU time: 100 on every Linux of today."""

KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of include/linux/sched.h. In a container pid 2 may be anybody, so that the flag decides."""


@dataclass(frozen=True)
class MachineTicks:
    """CPU time of all processors since boot, in ticks."""

    busy: int
    """Working for somebody, guests and interrupts included."""

    stolen: int
    """Wanted by this machine while its host ran something else: steal of proc_stat(5)."""


@dataclass(frozen=True, slots=True)
class ProcessTicks:
    """What one process has used since it began, in ticks."""

    pid: int
    name: str
    """At most 15 characters, as the kernel keeps it."""

    parent: int
    is_kernel: bool
    own: int
    waited: int
    """Used by children that have ended and were waited for, with all that those had waited for."""

    started: int
    """Ticks from boot; with the pid it tells a process from a later one of the same number."""

    @property
    def key(self) -> tuple[int, int]:
        """Names this process and no other until the next boot."""
        return self.pid, self.started


def machine_ticks(stat: str) -> MachineTicks:
    """The totals of /proc/stat. Raises ValueError when there is no line of them.

    Kernels before 2.6.11 have no steal, which is then 0. Columns: proc_stat(5).
    """
    for line in stat.splitlines():
        if line.startswith("cpu "):
            numbers = [_counted(word) for word in line.split()[1:9]]
            if len(numbers) < 4:
                break
            user, nice, system, _idle, _iowait, irq, softirq, steal = (numbers + [0] * 4)[:8]
            return MachineTicks(user + nice + system + irq + softirq, steal)
    raise ValueError("no totals of CPU time")


def process_ticks(stat: str) -> ProcessTicks:
    """One /proc/PID/stat. Raises ValueError when it is not one. Fields: proc_pid_stat(5)."""
    # The name is in parentheses and may itself hold blanks and parentheses.
    head, opened, rest = stat.partition(" (")
    name, closed, tail = rest.rpartition(") ")
    fields = tail.split(None, 20)
    if not opened or not closed or len(fields) < 20:
        raise ValueError("not the status of a process")
    return ProcessTicks(
        pid=_process_number(head),
        name=name,
        parent=_process_number(fields[1]),
        is_kernel=bool(_counted(fields[6]) & KERNEL_THREAD),
        own=_counted(fields[11]) + _counted(fields[12]),
        waited=_counted(fields[13]) + _counted(fields[14]),
        started=_counted(fields[19]),
    )


def _process_number(word: str) -> int:
    """A pid_t. Raises ValueError."""
    number = _counted(word)
    if number >= 2**31:
        raise ValueError(f"{number} is no number of a process")
    return number


def _counted(word: str) -> int:
    """A number that the kernel prints without a sign, of at most 64 bits. Raises ValueError."""
    if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS and int(word) < 2**64):
        raise ValueError(f"'{word[:40]}' is no count of the kernel's")
    return int(word)


_DIGITS = 20
"""Of 2**64; int() refuses thousands of them with another error."""


def processes(proc: Path) -> Mapping[int, ProcessTicks]:
    """All processes by pid; those that end while they are read are left out."""
    found: dict[int, ProcessTicks] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(proc):  # noqa: PTH208 # names, not paths: it is quicker
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError):
                    each = process_ticks(_whole(f"{proc}/{name}/stat"))
                    found[each.pid] = each
    return found


def _whole(path: str) -> str:
    """A file that fits into one read, as those of /proc/PID do."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    finally:
        os.close(descriptor)
