"""What servers use up by how many queries, so that the versions of a round are compared at equal work.

After a checkpoint the first change of each page logs the whole page, and the first read comes from storage.
A version that finishes fewer queries in its time divides as many of these by fewer queries.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from build.errors import TidemarkError
from suites.accounting.costs import COSTS
from suites.accounting.usage import TreeIo
from suites.metrics import metrics_at_equal_work

READINGS = 32
"""How often totals are read in the seconds of one server. Between two they count as straight lines."""

MIN_SPACING = 0.25
"""The seconds between two readings, at least: each takes 0.8 ms of a core from what is measured."""

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


def curve_of(readings: Sequence[TotalsReading], progress: Sequence[tuple[float, float]]) -> WorkCurve | None:
    """Return the curve of a server from its readings and its Load.progress.

    It has those from the last one before the first query to the last one before the last query. What is read
    later is no part of it: a server that rests writes what it has put off, which one that works has not yet.
    None when fewer than MIN_READINGS were read while it worked.
    """
    if not progress:
        return None
    moments, finished = zip(*progress, strict=True)
    read = [(float(np.interp(reading.seconds, moments, finished)), reading.totals) for reading in readings]
    by_queries = {done: totals for done, totals in read if done < finished[-1]}
    queries = sorted(by_queries)
    if len(queries) <= MIN_READINGS or queries[0] > 0:
        return None
    names = [name for name in metrics_at_equal_work() if name in by_queries[0.0]]
    return WorkCurve(queries, {name: [by_queries[done][name] for done in queries] for name in names})


class TotalsReader:
    """Reads the totals of one server that are compared at equal work."""

    def __init__(self, pid: int, counters: Callable[[], Totals]) -> None:
        """`pid` is the root of the server's process tree; `counters` returns what the server counts."""
        self._io = TreeIo(pid)
        self._counters = counters

    def read(self) -> TotalsReading:
        """Return the totals as they are. Raises TidemarkError."""
        used = self._io.read()
        costs = {name: cost(used) for name, cost in COSTS["server"].items()}
        began = time.monotonic()
        counted = self._counters()
        return TotalsReading((began + time.monotonic()) / 2, {**costs, **counted})


class ReadMeanwhile:
    """Reads the totals of servers when a block begins, and up to READINGS times in `seconds` of it."""

    def __init__(self, readers: Sequence[TotalsReader], seconds: float) -> None:
        self.readings: list[list[TotalsReading]] = [[] for _ in readers]
        """Those of each server, in order."""

        self.failed: tuple[int, TidemarkError] | None = None
        """The index of a server whose totals could not be read, and why."""

        self._readers, self._seconds = readers, max(MIN_SPACING, seconds / READINGS)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read_on, daemon=True)

    def __enter__(self) -> Self:
        self._read_all()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _read_on(self) -> None:
        while self.failed is None and not self._ended.wait(self._seconds):
            self._read_all()

    def _read_all(self) -> None:
        for place, reader in enumerate(self._readers):
            if self.failed is None:
                try:
                    self.readings[place].append(reader.read())
                except TidemarkError as error:
                    self.failed = (place, error)
