"""The memory of a server, from /proc/PID/smaps_rollup and /proc/PID/status of each of its processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from suites.processes import tree_of

PROC = Path("/proc")

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
