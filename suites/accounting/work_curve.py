"""What servers use up by how many queries, so that the versions of a round are compared at equal work.

After a checkpoint the first change of each page logs the whole page, and the first read comes from storage.
A version that finishes fewer queries in its time divides as many of these by fewer queries.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from suites.accounting.costs import COSTS
from suites.accounting.usage import TreeReadings
from suites.metrics import metrics_at_equal_work
from suites.slices import Schedule

READINGS = 32
"""How often the totals of a server are read in its slices. Between two they count as straight lines."""

MIN_SPACING = 0.25
"""The seconds between two readings of a server, on average at least, those of other servers' slices included:
each takes 0.8 ms of a core from what is measured."""

MIN_READINGS = 8
"""The readings while a server works, below which its work is too short for a curve."""

Totals = Mapping[str, float]
"""Totals that only grow, keyed by the metric that is their increase per query."""


@dataclass(frozen=True)
class WorkCurve:
    """The totals of one server after more and more queries."""

    queries: Sequence[float]
    """Queries that were finished, ascending from 0."""

    totals: Mapping[str, Sequence[float]]
    """Metric -> its total after each of these numbers of queries."""

    @property
    def work(self) -> float:
        """The queries up to which totals are known."""
        return self.queries[-1]

    def per_query(self, queries: float) -> Mapping[str, float]:
        """Return each metric over the first `queries`, per query."""
        return {
            name: (float(np.interp(queries, self.queries, totals)) - totals[0]) / queries
            for name, totals in self.totals.items()
        }


@dataclass(frozen=True)
class TotalsReading:
    """The totals of one server at one moment."""

    seconds: float
    """Of the monotonic clock."""

    totals: Totals

    private: Mapping[int, int] = field(default_factory=dict)
    """The private memory of each process in bytes, by its id."""


def readings_per_second(schedule: Schedule) -> float:
    """Return how often a server is read in its slices."""
    return schedule.servers / max(MIN_SPACING, schedule.seconds / READINGS)


def curve_of(readings: Sequence[TotalsReading], progress: Sequence[tuple[float, float]]) -> WorkCurve | None:
    """Return the curve of a server from its readings and its Load.progress.

    It has those from the last one before the first query to the last one before the last query. What is read
    later is no part of it: a server that rests writes what it has put off, which one that works has not yet.
    None when fewer than MIN_READINGS were read while it worked.
    """
    by_queries = {done: reading.totals for done, reading in while_working(readings, progress)}
    queries = sorted(by_queries)
    if len(queries) <= MIN_READINGS or queries[0] > 0:
        return None
    names = [name for name in metrics_at_equal_work() if name in by_queries[0.0]]
    return WorkCurve(queries, {name: [by_queries[done][name] for done in queries] for name in names})


def while_working(
    readings: Sequence[TotalsReading], progress: Sequence[tuple[float, float]]
) -> list[tuple[float, TotalsReading]]:
    """Return the readings before the last query, each with the queries of Load.progress finished by then."""
    if not progress:
        return []
    moments, finished = zip(*progress, strict=True)
    read = [(float(np.interp(reading.seconds, moments, finished)), reading) for reading in readings]
    return [(done, reading) for done, reading in read if done < finished[-1]]


class TotalsReader:
    """Reads the totals of one server that are compared at equal work, and its memory."""

    def __init__(self, pid: int, counters: Callable[[], Totals]) -> None:
        """`pid` is the root of the server's process tree; `counters` returns what the server counts."""
        self._tree = TreeReadings(pid)
        self._counters = counters

    def read(self) -> TotalsReading:
        """Return the totals and the memory as they are. Raises TidemarkError."""
        used, private = self._tree.read()
        costs = {name: cost(used) for name, cost in COSTS["server"].items()}
        began = time.monotonic()
        counted = self._counters()
        return TotalsReading((began + time.monotonic()) / 2, {**costs, **counted}, private)
