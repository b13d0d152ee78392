"""One run of a load generator for each slice, and the sum of the runs."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from suites.generators.load import Load, Observer, Share, WorkLimit, blamed_on
from suites.keys.step import Step
from suites.server import Address


class OneRun(Protocol):
    """A function that runs a step on one server."""

    def __call__(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int) -> Load:
        """Return the result; every `turn` has its own seed. Raises LoadError."""


def run_each_slice(
    run: OneRun, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
) -> list[Load]:
    """Run a load generator once per slice, and return one Load per server. Raises LoadError.

    It runs for whole seconds, so that a slice may be longer than scheduled. Warm-up slices are skipped.
    Random numbers are the same for all servers, and different in every slice.
    """
    schedule = share.schedule
    done: list[list[Load]] = [[] for _ in addresses]
    progress: list[list[tuple[float, float]]] = [[] for _ in addresses]
    for place, server in enumerate(schedule.order):
        if place >= schedule.warming:
            work = WorkLimit(schedule.slice_seconds, None)
            turn = share.round * len(schedule.order) + len(done[server])
            queries = sum(load.queries for load in done[server])
            share.works(server)
            began = time.monotonic()
            with blamed_on(server):
                load = run(addresses[server], step, work, observers[server], turn)
            done[server].append(load)
            progress[server] += [(began, queries), (time.monotonic(), queries + load.queries)]
    return [
        replace(sum_of(loads), progress=tuple(points)) for loads, points in zip(done, progress, strict=True)
    ]


def least_due(arrivals: float, done: int) -> int:
    """Return how many transactions were due of a Poisson process, of a program that does not say it.

    It is the least number that is likely, four standard deviations below the mean, and not less than were
    `done`: chance is never taken for a server that does not keep up.
    """
    return max(done, int(arrivals - 4 * arrivals**0.5))


def sum_of(loads: Sequence[Load]) -> Load:
    """Return the combined result of several runs, in whose first second clients fill their caches.

    Percentiles are means over the runs.
    """
    failed: Counter[str] = Counter()
    histogram: Counter[float] = Counter()
    for load in loads:
        failed.update(load.failed)  # unlike a sum, this keeps the causes that did not occur
        histogram.update(load.histogram)
    names = set.intersection(*(set(load.latency_ms) for load in loads))
    mean = {name: sum(load.latency_ms[name] for load in loads) / len(loads) for name in names}
    if "max" in names:
        mean["max"] = max(load.latency_ms["max"] for load in loads)
    return Load(
        transactions=sum(load.transactions for load in loads),
        queries=sum(load.queries for load in loads),
        seconds=sum(load.seconds for load in loads),
        errors=sum(load.errors for load in loads),
        failed=dict(failed),
        longest_ms=tuple(longest for load in loads for longest in load.longest_ms),
        histogram=histogram if all(load.histogram for load in loads) else {},
        per_second=tuple(rate for load in loads for rate in load.per_second[1:] or load.per_second),
        latency_ms=mean,
        watched_queries=sum(load.watched_queries for load in loads),
        watched_seconds=sum(load.watched_seconds for load in loads),
        due=sum(load.due or 0 for load in loads) if any(load.due is not None for load in loads) else None,
        late_seconds=max((load.late_seconds for load in loads), default=0.0),
        restarted=True,
    )
