"""The CPU time of the machine and of every process, and the memory of servers, from /proc.

The files are read with system calls rather than psutil, because a snapshot of hundreds of processes at either
end of a measured window may take only milliseconds.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from suites.processes import tree_of

PROC = Path("/proc")

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
"""The unit of CPU time in /proc: 100 on every current Linux."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of include/linux/sched.h. In a container, pid 2 may be any process."""


ATTEMPTS = 3
"""How often all processes are read when some end meanwhile, as on a machine that compiles they always do."""


@dataclass(frozen=True)
class MachineTicks:
    """CPU time of all processors since boot, in ticks."""

    busy: int
    """Busy time, including guests and interrupts."""

    stolen: int
    """Time that this machine wanted while its host ran something else: steal of proc_stat(5)."""


@dataclass(frozen=True, slots=True)
class ProcessTicks:
    """The CPU time of one process since its start, in ticks."""

    pid: int
    name: str
    """The name, which the kernel truncates to 15 characters."""

    parent: int
    is_kernel: bool
    own: int
    """Time used by the process itself."""

    waited: int
    """Time used by ended children that were waited for, including that of their own children."""

    started: int
    """Ticks from boot to the start, which distinguishes processes with the same pid."""

    @property
    def key(self) -> tuple[int, int]:
        """Pid and start, which are unique until the next boot."""
        return self.pid, self.started


def machine_ticks(stat: str) -> MachineTicks:
    """Return the totals in the text of /proc/stat. Raises ValueError if it has no line of totals.

    Steal is 0 on kernels before 2.6.11, which do not have it. For the columns see proc_stat(5).
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
    """Parse the text of /proc/PID/stat. Raises ValueError if it is malformed. See proc_pid_stat(5)."""
    # The name is in parentheses, and may itself contain blanks and parentheses.
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
    """Return all processes by pid.

    A process that ends meanwhile may be in the result, or in what its parent has waited for, or in neither or
    both: then all are read again, up to ATTEMPTS times.
    """
    for _ in range(ATTEMPTS):
        listed = _listed(proc)
        by_pid: dict[int, ProcessTicks] = {}
        for name in listed:
            with contextlib.suppress(OSError, ValueError):
                process = process_ticks(_read(f"{proc}/{name}/stat"))
                by_pid[process.pid] = process
        if len(by_pid) == len(listed) and listed <= _listed(proc):
            break
    return by_pid


def lists_children() -> bool:
    """Return whether the kernel lists the children of processes: it does with CONFIG_PROC_CHILDREN."""
    return Path("/proc/thread-self/children").exists()


def with_children(root: int, proc: Path = PROC) -> list[int]:
    """Return the process ids of a process and of its main thread's children, if the kernel `lists_children`.

    These are all processes of a server: a postmaster forks in its only thread, and mysqld has no children.
    Only one file is read, not those of all processes.
    """
    with contextlib.suppress(OSError):
        return [root, *map(int, (proc / f"{root}/task/{root}/children").read_bytes().split())]
    return [root]


def storage_bytes(pid: int, proc: Path = PROC) -> tuple[int, int]:
    """Return the bytes that a process, with the children it waited for, has read from storage and sent to it.

    0 when it is gone.
    """
    with contextlib.suppress(OSError):
        counted = dict(line.split(": ") for line in _read(f"{proc}/{pid}/io").splitlines())
        return int(counted["read_bytes"]), int(counted["write_bytes"])
    return 0, 0


def private_bytes(pid: int, proc: Path = PROC) -> int | None:
    """Return the memory that a process shares with no file and no other process; None when it is gone.

    That is RssAnon: all that it maps without pages of files and of shared memory, which are the
    shared ones of proc_pid_statm(5).
    """
    with contextlib.suppress(OSError, ValueError):
        resident, shared = map(_counted, _read(f"{proc}/{pid}/statm").split()[1:3])
        return max(0, resident - shared) * PAGE_BYTES
    return None


MAX_KIB = 2**47
"""More than the address space of a process."""

_FIELD = re.compile(r"^(\w+):\s+([0-9]{1,15}) kB$", re.MULTILINE)


class ProcessMemoryError(TidemarkError):
    """The memory of a process cannot be read, or the kernel does not say enough of it."""


@dataclass(frozen=True)
class ProcessMemory:
    """The memory of one process, or the sum of several, in KiB."""

    rss: int = 0
    """Pages that the process maps, shared ones in full: what top shows."""

    pss: int = 0
    """The same, each page divided by the number of processes that map it."""

    shared: int = 0
    """The part of `pss` that is shared memory, such as the buffer cache of Postgres."""

    page_tables: int = 0
    """What the kernel needs to map them (VmPTE)."""

    def __add__(self, other: "ProcessMemory") -> "ProcessMemory":
        return ProcessMemory(
            self.rss + other.rss,
            self.pss + other.pss,
            self.shared + other.shared,
            self.page_tables + other.page_tables,
        )

    @property
    def own(self) -> int:
        """Memory that is not shared memory, with page tables."""
        return self.pss - self.shared + self.page_tables


def process_memory(rollup: str, status: str) -> ProcessMemory:
    """Parse the texts of smaps_rollup and status of one process.

    For the fields see proc_pid_smaps(5) and proc_pid_status(5). Raises ProcessMemoryError if a field is
    missing or cannot be.
    """
    pages, process = _fields(rollup), _fields(status)
    memory = ProcessMemory(
        rss=_field(pages, "Rss", "smaps_rollup"),
        pss=_field(pages, "Pss", "smaps_rollup"),
        shared=_field(pages, "Pss_Shmem", "smaps_rollup"),
        page_tables=_field(process, "VmPTE", "status"),
    )
    if not memory.shared <= memory.pss <= memory.rss:
        raise ProcessMemoryError(
            f"the kernel reports what cannot be: Pss_Shmem {memory.shared}, Pss {memory.pss}, "
            f"Rss {memory.rss} KiB",
            where="smaps_rollup",
        )
    return memory


def server_memory(root: int, proc: Path = PROC) -> ProcessMemory:
    """Return the sum over a server's process `root` and all of its descendants.

    A process that ends while it is read is left out. Raises ProcessMemoryError if the root has ended, or if
    the memory of a process must not be read.
    """
    found = {pid: memory for pid in tree_of(root) if (memory := _memory_of(pid, proc)) is not None}
    if root not in found:
        raise ProcessMemoryError("the server has ended", where=f"process {root}")
    return sum(found.values(), ProcessMemory())


def require_readable(proc: Path = PROC) -> None:
    """Raise ProcessMemoryError unless the kernel says of this process what is wanted of servers."""
    if _memory_of("self", proc) is None:
        raise ProcessMemoryError(
            "the kernel has no smaps_rollup",
            where=str(proc / "self/smaps_rollup"),
            hint="use Linux 5.9 or newer with CONFIG_PROC_PAGE_MONITOR",
        )


def _memory_of(pid: int | str, proc: Path) -> ProcessMemory | None:
    """Return the memory of a process; None if it has ended, whose files are gone or empty."""
    folder = proc / str(pid)
    try:
        rollup, status = (folder / "smaps_rollup").read_text(), (folder / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise ProcessMemoryError(
            f"the memory of process {pid} cannot be read: {error.strerror}",
            where=str(folder / "smaps_rollup"),
            hint="run Tidemark as root, or as the user that runs the servers",
        ) from error
    # A process that has ended, and that nobody has waited for yet, has no memory and a status without any.
    if not rollup or "VmPTE:" not in status:
        return None
    return process_memory(rollup, status)


def _fields(text: str) -> Mapping[str, int]:
    return {name: int(number) for name, number in _FIELD.findall(text)}


def _field(fields: Mapping[str, int], name: str, file: str) -> int:
    number = fields.get(name)
    if number is None or number > MAX_KIB:
        raise ProcessMemoryError(
            f"{name} is missing" if number is None else f"{name} cannot be {number} KiB",
            where=file,
            hint="use Linux 5.9 or newer",
        )
    return number


def _listed(proc: Path) -> set[str]:
    """Return the names of the folders of processes."""
    with contextlib.suppress(OSError):
        return {name for name in os.listdir(proc) if name.isdigit()}  # noqa: PTH208 # faster than paths
    return set()


def _read(path: str) -> str:
    """Return the text of a file with one read, which suffices for files of /proc/PID."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    finally:
        os.close(descriptor)
