"""The costs of a step: CPU time, context switches and I/O of server, load generator and machine."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from suites.accounting.counters import CounterReadings, TreeCounter, counted_between
from suites.accounting.usage import MachineUsage, TreeUsage, Usage
from suites.metrics import CLIENT_CPU, HARDWARE_INSTRUCTIONS, SERVER_CPU, SERVER_SWITCHES, SERVER_WRITTEN


@dataclass(frozen=True)
class Snapshot:
    """The totals at one moment."""

    parties: Mapping[str, Usage]
    """Those of `server`, `client` and `machine`; without a process that is gone."""

    instructions: CounterReadings | None = None
    """What counts the server's instructions; None on a machine without counters."""


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
        SERVER_CPU: _cpu_us,
        SERVER_SWITCHES: _switches,
        "server_read_kb_per_op": _read_kb,
        SERVER_WRITTEN: _written_kb,
    },
    "client": {
        CLIENT_CPU: _cpu_us,
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
        self._server = TreeUsage(server_pid)
        self._client = self._server
        self._machine = None if shared else MachineUsage()
        self._counter = instructions
        self._begin: Snapshot | None = None
        self._end: Snapshot | None = None
        self._before: dict[str, Usage] = {}
        self._instructions_before = 0.0

    def begin(self, pid: int) -> None:
        """Record the totals at the begin of the load generator `pid`'s work."""
        self._before, self._instructions_before = self._used(), self._instructions()
        self._client = TreeUsage(pid)
        self._begin, self._end = self._snapshot(), None

    def end(self, pid: int) -> None:
        """Record the totals at the end of the work; if called again, the last call counts.

        Of a process that is gone by then, what the call before has recorded stays.
        """
        del pid
        now, before = self._snapshot(), self._end
        self._end = now if before is None else replace(now, parties={**before.parties, **now.parties})

    def per_query(self, queries: float) -> Mapping[str, float]:
        """Return the costs per query as metrics; empty if there were no queries."""
        values: dict[str, float] = {}
        if queries <= 0:
            return values
        for party, used in self._used().items():
            values |= {name: cost(used) / queries for name, cost in COSTS[party].items()}
        instructions = self._instructions()
        if self._counter is not None and math.isfinite(instructions):
            values[HARDWARE_INSTRUCTIONS] = instructions / queries
        return values

    def _snapshot(self) -> Snapshot:
        found = {
            "server": self._server.read(),
            "client": self._client.read(),
            "machine": None if self._machine is None else self._machine.read(),
        }
        parties = {party: usage for party, usage in found.items() if usage is not None}
        return Snapshot(parties, None if self._counter is None else self._counter.read())

    def _used(self) -> dict[str, Usage]:
        """Return party -> its usage in all parts of the load so far."""
        if self._begin is None or self._end is None:
            return self._before
        begin, end = self._begin.parties, self._end.parties
        return {
            party: self._before.get(party, Usage()) + (end[party] - begin[party])
            for party in COSTS
            if party in begin and party in end
        }

    def _instructions(self) -> float:
        """Return the server's instructions in all parts of the load so far; NaN if they are not known."""
        if self._begin is None or self._end is None:
            return self._instructions_before
        begin, end = self._begin.instructions, self._end.instructions
        if begin is None or end is None:
            return math.nan
        return self._instructions_before + counted_between(begin, end)
