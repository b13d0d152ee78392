"""One run of a load generator for each slice, and the sum of the runs."""

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from suites.generators.load import KindLoad, Load, Observer, Share, WorkLimit, blamed_on
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

    Percentiles are means over the runs. What was retried and refused of kinds is not known of such runs.
    """
    failed: Counter[str] = Counter()
    histogram: Counter[float] = Counter()
    for load in loads:
        failed.update(load.failed)  # unlike a sum, this keeps the causes that did not occur
        histogram.update(load.histogram)
    kinds = dict.fromkeys(name for load in loads for name in load.kinds)
    return Load(
        transactions=sum(load.transactions for load in loads),
        queries=sum(load.queries for load in loads),
        seconds=sum(load.seconds for load in loads),
        errors=sum(load.errors for load in loads),
        failed=dict(failed),
        longest_ms=tuple(longest for load in loads for longest in load.longest_ms),
        histogram=histogram if all(load.histogram for load in loads) else {},
        per_second=tuple(rate for load in loads for rate in load.per_second[1:] or load.per_second),
        latency_ms=_latency_of(loads),
        watched_queries=sum(load.watched_queries for load in loads),
        watched_seconds=sum(load.watched_seconds for load in loads),
        due=sum(load.due or 0 for load in loads) if any(load.due is not None for load in loads) else None,
        late_seconds=max((load.late_seconds for load in loads), default=0.0),
        kinds={
            name: _sum_of_kind([load.kinds[name] for load in loads if name in load.kinds]) for name in kinds
        },
        restarted=True,
    )


def _sum_of_kind(parts: Sequence[KindLoad]) -> KindLoad:
    done, committed = (sum(getattr(part, name) for part in parts) for name in ("transactions", "committed"))
    return KindLoad(done, {}, 0, committed, _latency_of([part for part in parts if part.transactions]))


def _latency_of(parts: Sequence[Load] | Sequence[KindLoad]) -> dict[str, float]:
    """Return the latencies of several runs together, those that all runs have."""
    names = set[str].intersection(*(set(part.latency_ms) for part in parts)) if parts else set[str]()
    combined = {name: statistics.fmean(part.latency_ms[name] for part in parts) for name in names}
    if "mean" in names:
        done = [part.transactions for part in parts]
        combined["mean"] = statistics.fmean((part.latency_ms["mean"] for part in parts), done)
    if "max" in names:
        combined["max"] = max(part.latency_ms["max"] for part in parts)
    return combined
