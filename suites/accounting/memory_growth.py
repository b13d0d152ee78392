"""How a server's memory grows with its queries, from what is read of its processes while it works.

Memory is private memory: what a process shares with no other, without pages of files. What a server allocates
once is no growth, be it caches, the first statements of a connection, or a sort: the second half of the work
counts, a process's increase between two readings counts only up to a multiple of its usual one, and of the
parts of the work the median one counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

import numpy as np

from suites.accounting.proc import PAGE_BYTES
from suites.accounting.work_curve import TotalsReading, while_working
from suites.metrics import BUFFER_POOL, MEMORY_GROWTH, SERVER_MEMORY

WARM_SHARE = 0.5
"""The share of the queries before memory counts."""

PARTS = 5
"""The parts of the other queries, of equal length."""

MAX_INCREASE = 4
"""How many times its usual increase per query counts of a process between two readings, and SPARE_PAGES."""

SPARE_PAGES = 4
"""Of a process that seldom needs another page, the pages that count between two readings, at most."""


@dataclass(frozen=True)
class _Point:
    queries: float
    own: Mapping[int, float]
    """The private memory of each process without the pages of a buffer pool, in bytes."""

    @property
    def total(self) -> float:
        return sum(self.own.values())


def memory_values(
    readings: Sequence[TotalsReading], progress: Sequence[tuple[float, float]], *, restarted: bool = False
) -> dict[str, float]:
    """Return growth and memory as metrics, from a server's readings and Load.progress.

    Nothing is known of work that is fixed in advance, and no growth of work that is very short, or of a load
    that was `restarted`: in each of its runs, new connections fill their caches.
    """
    working = while_working(readings, progress)
    points = [_Point(done, _own(reading)) for done, reading in working if reading.private]
    if len(points) < 2:
        return {}
    values = {SERVER_MEMORY: _usual(points)}
    last = working[-1][1].totals
    if BUFFER_POOL in last:
        values[BUFFER_POOL] = last[BUFFER_POOL]
    growth = None if restarted else _growth(points)
    return values if growth is None else {**values, MEMORY_GROWTH: growth}


def _own(reading: TotalsReading) -> Mapping[int, float]:
    if BUFFER_POOL not in reading.totals:
        return reading.private
    # A server with a pool in its own memory has one process that uses it.
    largest = max(reading.private, key=lambda pid: reading.private[pid])
    return {**reading.private, largest: reading.private[largest] - reading.totals[BUFFER_POOL]}


def _usual(points: Sequence[_Point]) -> float:
    """Return the median memory of all processes together in the second half of the work."""
    least = WARM_SHARE * points[-1].queries
    late = [point.total for point in points if point.queries >= least]
    # Between its slices, a server may have no clients.
    working = [
        after.total for before, after in pairwise(points) if after.queries > max(before.queries, least)
    ]
    return median(working or late)


def _growth(points: Sequence[_Point]) -> float | None:
    """Return the bytes by which memory grows per query; None where it was read too seldom."""
    steps = _settled(points)
    if not steps:
        return None
    done = [0.0, *accumulate(after.queries - before.queries for before, after in steps)]
    grown = [0.0, *accumulate(_increases(steps))]
    bounds = np.linspace(WARM_SHARE * done[-1], done[-1], PARTS + 1)
    if len({queries for queries in done if queries > bounds[0]}) < PARTS:
        return None
    parts = np.diff(np.interp(bounds, done, grown))
    return float(median(parts) / (bounds[1] - bounds[0]))


def _settled(points: Sequence[_Point]) -> list[tuple[_Point, _Point]]:
    """Return neighbouring readings between which the same processes worked as at the reading before.

    Each connection of Postgres is a process, which allocates most when it begins.
    """
    return [
        (first, second)
        for (before, first), (_, second) in pairwise(pairwise(points))
        if before.own.keys() == first.own.keys() == second.own.keys()
    ]


def _increases(steps: Sequence[tuple[_Point, _Point]]) -> list[float]:
    """Return by how much all processes together grew in each step.

    A decrease counts in full: memory that a query took in small steps may be given back at once.
    """
    rates: dict[int, list[float]] = {}
    for before, after in steps:
        queries = after.queries - before.queries
        for pid, held in after.own.items() if queries else ():
            rates.setdefault(pid, []).append((held - before.own[pid]) / queries)
    usual = {pid: max(0.0, median(seen)) for pid, seen in rates.items()}
    return [
        sum(
            min(
                held - before.own[pid],
                MAX_INCREASE * usual.get(pid, 0.0) * (after.queries - before.queries)
                + SPARE_PAGES * PAGE_BYTES,
            )
            for pid, held in after.own.items()
        )
        for before, after in steps
    ]
