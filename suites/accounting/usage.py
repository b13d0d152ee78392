"""What a process tree, and the machine, have used so far: totals that never go down.

What ends between two readings takes its counters with it. CPU time and I/O of a process are then in those of
the parent that waited for it; context switches are in nobody's, and what was last seen of them is kept.
"""

import contextlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import psutil

from suites.accounting.proc import lists_children, private_bytes, storage_bytes, with_children
from suites.processes import tree_of

PROC = Path("/proc")
BLOCK_DEVICES = Path("/sys/block")

ATTEMPTS = 5
"""How often a tree is read when one of its processes ends meanwhile, which is then counted neither as itself
nor by its parent."""


@dataclass(frozen=True)
class Usage:
    """Running totals of some processes, or of the machine, since an arbitrary moment."""

    cpu_seconds: float = 0.0
    context_switches: int = 0
    read_bytes: int = 0
    """Bytes read from storage, not from the page cache."""
    written_bytes: int = 0
    """Bytes sent to storage; a page of the page cache counts when it becomes dirty."""
    reads: int = 0
    """Read requests to the disks; known only for the machine."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + others for mine, others in self._pairs(other)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(mine - others for mine, others in self._pairs(other)))

    def at_least(self, other: "Usage") -> "Usage":
        """Return the larger one of each of the totals."""
        return Usage(*(max(pair) for pair in self._pairs(other)))

    def _pairs(self, other: "Usage") -> Iterable[tuple[Any, Any]]:
        return ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


class RunningTotal:
    """The sum of counters that come and go, which never goes down.

    A counter that is gone keeps its last value. One that is lower than before has begun anew.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, int] = {}
        self._ended = 0

    def with_(self, counters: Mapping[Hashable, int]) -> int:
        """Take in the present values of the counters that are there, and return the sum."""
        for key, value in counters.items():
            last = self._last.get(key, 0)
            if value < last:
                self._ended += last
            self._last[key] = value
        return self._ended + sum(self._last.values())


class TreeUsage:
    """The totals of a process and all its descendants, those that have ended included."""

    def __init__(self, pid: int) -> None:
        self._root: psutil.Process | None = None
        with contextlib.suppress(psutil.Error):
            self._root = psutil.Process(pid)
        self._switches = RunningTotal()
        self._last = Usage()

    def read(self) -> Usage | None:
        """Return the present totals; None when the process at the root is gone."""
        for _ in range(ATTEMPTS):
            processes = self._processes()
            usage = sum(map(_used_by, processes), Usage())
            if all(map(_is_there, processes)):
                break
        if not processes or not _is_there(processes[0]):
            return None
        counts = dict(pair for process in processes for pair in _switches_of(process))
        usage = replace(usage, context_switches=self._switches.with_(counts))
        self._last = usage.at_least(self._last)
        return self._last

    def _processes(self) -> list[psutil.Process]:
        """Return the process at the root and its descendants; none when it is gone."""
        with contextlib.suppress(psutil.Error):
            if self._root is not None:
                return [self._root, *self._root.children(recursive=True)]
        return []


class TreeReadings:
    """Storage and memory of a process tree, which are cheap to read.

    They are read while the load runs: with psutil, which reads all processes, a core was busy for 2 % of it.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last = Usage()
        self._tree = with_children if lists_children() else tree_of

    def read(self) -> tuple[Usage, Mapping[int, int]]:
        """Return the bytes read from storage and sent to it, and each process's private memory in bytes.

        The Usage has zero of everything else, and is as last read when the root is gone.
        """
        tree = self._tree(self._pid)
        # A child between its end and its parent's wait is in neither, hence the maximum.
        bytes_read, written = map(sum, zip(*map(storage_bytes, tree), strict=True))
        self._last = Usage(read_bytes=bytes_read, written_bytes=written).at_least(self._last)
        memory = ((pid, private_bytes(pid)) for pid in tree)
        return self._last, {pid: private for pid, private in memory if private is not None}


def _used_by(process: psutil.Process) -> Usage:
    """Return the totals of one process, with CPU time and I/O of the children that it has waited for."""
    cpu_seconds, read_bytes, written_bytes = 0.0, 0, 0
    with contextlib.suppress(psutil.Error, OSError):
        cpu = process.cpu_times()
        cpu_seconds = cpu.user + cpu.system + cpu.children_user + cpu.children_system
    with contextlib.suppress(psutil.Error, OSError):
        # The kernel adds the I/O of a reaped child to its parent's (wait_task_zombie, kernel/exit.c).
        io = process.io_counters()
        read_bytes, written_bytes = io.read_bytes, io.write_bytes
    return Usage(cpu_seconds, 0, read_bytes, written_bytes)


def _switches_of(process: psutil.Process) -> Iterator[tuple[Hashable, int]]:
    """Yield each thread's key and context switches; psutil counts only those of the main thread."""
    with contextlib.suppress(psutil.Error, OSError):
        started = process.create_time()
        for status in PROC.glob(f"{process.pid}/task/[0-9]*/status"):
            with contextlib.suppress(OSError):
                lines = (line for line in status.read_text().splitlines() if "ctxt_switches:" in line)
                total = sum(int(line.rsplit(":", 1)[1]) for line in lines)
                yield (process.pid, started, status.parent.name), total


def _is_there(process: psutil.Process) -> bool:
    return (PROC / str(process.pid)).exists()


class MachineUsage:
    """The totals of the machine since boot, disks that have been taken away included."""

    def __init__(self) -> None:
        self._reads, self._read_bytes, self._written_bytes = RunningTotal(), RunningTotal(), RunningTotal()

    def read(self) -> Usage:
        """Return the present totals."""
        cpu = psutil.cpu_times()
        counters = psutil.disk_io_counters(perdisk=True, nowrap=True) or {}
        # Whole disks: what is read from a partition is read from its disk.
        disks = {
            name: counter
            for name, counter in counters.items()
            if (BLOCK_DEVICES / name.replace("/", "!")).exists()
        }
        return Usage(
            cpu_seconds=cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq,
            context_switches=psutil.cpu_stats().ctx_switches,
            read_bytes=self._read_bytes.with_({name: disk.read_bytes for name, disk in disks.items()}),
            written_bytes=self._written_bytes.with_({name: disk.write_bytes for name, disk in disks.items()}),
            reads=self._reads.with_({name: disk.read_count for name, disk in disks.items()}),
        )
