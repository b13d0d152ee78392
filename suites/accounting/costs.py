"""The costs of a step: CPU time, context switches and I/O of server, load generator and machine."""

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import psutil

from suites.accounting.counters import TreeCounter

PROC = Path("/proc")


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
    instructions: float = 0.0
    """Retired instructions; known only for the server, on machines with hardware counters."""

    def __add__(self, other: "Usage") -> "Usage":
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Usage(*(mine + others for mine, others in pairs))

    def __sub__(self, other: "Usage") -> "Usage":
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Usage(*(mine - others for mine, others in pairs))


@dataclass(frozen=True)
class Snapshot:
    """The totals at one moment."""

    at: float
    """The moment in seconds of the monotonic clock."""
    server: Usage
    client: Usage
    machine: Usage


def snapshot(server_pid: int, client_pid: int) -> Snapshot:
    """Return the current totals of the server's process tree, the load generator and the machine."""
    server: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(server_pid)
        server = [root, *root.children(recursive=True)]
    client: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        client = [psutil.Process(client_pid)]
    return Snapshot(time.monotonic(), _usage(server), _usage(client), _machine())


def _usage(processes: Iterable[psutil.Process]) -> Usage:
    """Return the totals of running processes, including CPU time and I/O of their reaped children."""
    total = Usage()
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            cpu = process.cpu_times()
            io = process.io_counters()
            total += Usage(
                cpu_seconds=cpu.user + cpu.system + cpu.children_user + cpu.children_system,
                context_switches=_context_switches(process.pid),
                # The kernel adds the I/O of a reaped child to its parent's (wait_task_zombie, kernel/exit.c).
                read_bytes=io.read_bytes,
                written_bytes=io.write_bytes,
            )
    return total


def _context_switches(pid: int) -> int:
    """Return the context switches of all threads; psutil counts only those of the main thread."""
    total = 0
    for status in PROC.glob(f"{pid}/task/[0-9]*/status"):
        with contextlib.suppress(OSError):
            for line in status.read_text().splitlines():
                if "ctxt_switches:" in line:
                    total += int(line.rsplit(":", 1)[1])
    return total


def _machine() -> Usage:
    """Return the machine's totals since boot."""
    cpu = psutil.cpu_times()
    disks = psutil.disk_io_counters(nowrap=True)
    busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq
    return Usage(
        cpu_seconds=busy,
        context_switches=psutil.cpu_stats().ctx_switches,
        read_bytes=disks.read_bytes if disks else 0,
        written_bytes=disks.write_bytes if disks else 0,
        reads=disks.read_count if disks else 0,
    )


def _cpu_us(used: Usage) -> float:
    return used.cpu_seconds * 1e6


def _switches(used: Usage) -> float:
    return used.context_switches


def _read_kb(used: Usage) -> float:
    return used.read_bytes / 1024


def _written_kb(used: Usage) -> float:
    return used.written_bytes / 1024


def _reads(used: Usage) -> float:
    return used.reads


COSTS: Mapping[str, Mapping[str, Callable[[Usage], float]]] = {
    "server": {
        "server_cpu_us_per_op": _cpu_us,
        "server_cs_per_op": _switches,
        "server_read_kb_per_op": _read_kb,
        "server_written_kb_per_op": _written_kb,
    },
    "client": {
        "client_cpu_us_per_op": _cpu_us,
        "client_cs_per_op": _switches,
        "client_read_kb_per_op": _read_kb,
        "client_written_kb_per_op": _written_kb,
    },
    "machine": {
        "machine_cpu_us_per_op": _cpu_us,
        "machine_cs_per_op": _switches,
        "machine_read_kb_per_op": _read_kb,
        "machine_written_kb_per_op": _written_kb,
        "machine_reads_per_op": _reads,
    },
}
"""Server, client or machine -> metric -> its total in a Usage, in the metric's unit times queries."""


class Meter:
    """An observer of a load (suites.generators.load.Observer) that measures the costs of the load.

    A load may consist of several parts, with calls of `begin` and `end` for each; their costs are summed.
    """

    def __init__(
        self, server_pid: int, shared: bool = False, instructions: TreeCounter | None = None
    ) -> None:
        """Create a meter for the server whose root process is `server_pid`.

        If the machine is `shared` with other servers that take turns, the machine's totals are not recorded.
        `instructions` counts those of the server's process tree; None on a machine without counters.
        """
        self._server_pid = server_pid
        self._instructions = instructions
        self._parties = ("server", "client") if shared else ("server", "client", "machine")
        self._begin: Snapshot | None = None
        self._end: Snapshot | None = None
        self._before: dict[str, Usage] = {}

    def begin(self, pid: int) -> None:
        """Record the totals at the begin of the load generator `pid`'s work."""
        self._before = self._used()
        self._begin, self._end = self._snapshot(pid), None

    def end(self, pid: int) -> None:
        """Record the totals at the end of the work; if called again, the last call counts."""
        self._end = self._snapshot(pid)

    def per_query(self, queries: float) -> Mapping[str, float]:
        """Return the costs per query as metrics; empty if there were no queries."""
        values: dict[str, float] = {}
        if queries <= 0:
            return values
        for party, used in self._used().items():
            values |= {name: cost(used) / queries for name, cost in COSTS[party].items()}
            if party == "server" and self._instructions is not None and math.isfinite(used.instructions):
                values["server_instructions_per_op"] = used.instructions / queries
        return values

    def _snapshot(self, pid: int) -> Snapshot:
        now = snapshot(self._server_pid, pid)
        if self._instructions is None:
            return now
        return replace(now, server=replace(now.server, instructions=self._instructions.read()))

    def _used(self) -> dict[str, Usage]:
        """Return party -> its usage in all parts of the load so far."""
        if self._begin is None or self._end is None:
            return self._before
        begin, end = self._begin, self._end
        return {
            party: self._before.get(party, Usage()) + (getattr(end, party) - getattr(begin, party))
            for party in self._parties
        }
