"""How much longer a query takes, and how much of that is CPU time: an explanation by size.

In a closed loop every client waits for its query to end before it sends the next one, so that a query takes
clients over throughput. That time is CPU time of the server and of the load generator, and waiting: for
locks, storage, the other side, or a core. A query of one client has at most one core at a time, and with more
clients than cores each has its share of them; so the CPU time that there is for a query is the smaller of
clients and cores over throughput. What a cost explains is its growth times its share of that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from history.comparison.verdict import Judged, MetricChange
from suites.metrics import CLIENT_CPU, HARDWARE_INSTRUCTIONS, INSTRUCTIONS, PRIMARY, SERVER_CPU

CPU_COSTS: Mapping[str, tuple[str, ...]] = {
    SERVER_CPU: (SERVER_CPU, INSTRUCTIONS, HARDWARE_INSTRUCTIONS),
    CLIENT_CPU: (CLIENT_CPU,),
}
"""CPU time per query -> the metrics that tell its growth, the first one that moved. Counts tell a growth that
the noise of times hides."""

OF_CPU = frozenset(metric for told_by in CPU_COSTS.values() for metric in told_by)
"""The metrics whose growth explains a share of the time of a query."""


@dataclass(frozen=True)
class QueryTime:
    """The time of a query in contender and base, as fractions of that in the base."""

    longer: float
    """By how much it takes longer; below zero it takes less."""

    explained: Mapping[str, tuple[float, float]]
    """The metrics of CPU time that moved the way that explains it: its own growth, and what that explains."""

    @property
    def rest(self) -> float:
        """What CPU time does not explain: waiting, above zero if it is longer."""
        return self.longer - sum(part for _, part in self.explained.values())

    @property
    def explained_share(self) -> float:
        """The share of the change that CPU time explains, from 0 to 1."""
        share = sum(part for _, part in self.explained.values()) / self.longer if self.longer else 0.0
        return min(max(share, 0.0), 1.0)


def query_time(metrics: Sequence[Judged], clients: int | None, cores: int) -> QueryTime | None:
    """Return the time of a query from the metrics of a step in a closed loop; None where it is not recorded.

    `clients` of each version work at once on `cores`.
    """
    known = {judged.metric: judged for judged in metrics if judged.pairs}
    rate = known.get(PRIMARY)
    if rate is None or not (rate.base and rate.value and clients and cores):
        return None
    longer = 1 / rate.value - 1
    wanted = MetricChange.MORE if longer > 0 else MetricChange.LESS
    available_us = 1e6 * min(clients, cores) / rate.base
    explained = {}
    for name, told_by in CPU_COSTS.items():
        cpu = known.get(name)
        if cpu is None or cpu.base is None:
            continue
        moved = _moved((known[metric] for metric in told_by if metric in known), wanted)
        if moved is not None:
            share = min(1.0, cpu.base / available_us)
            explained[moved.metric] = (_growth(moved), share * _growth(moved))
    return QueryTime(longer, explained) if CPU_COSTS.keys() & known.keys() else None


def _moved(metrics: Iterable[Judged], wanted: MetricChange) -> Judged | None:
    return next((judged for judged in metrics if judged.change is wanted and judged.value), None)


def _growth(judged: Judged) -> float:
    assert judged.value is not None
    return judged.value - 1
