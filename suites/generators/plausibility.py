"""Which numbers of a load generator's report are possible: what is beyond them is not a measurement."""

import math
from collections.abc import Iterator

from suites.generators.load import Load, LoadError

MAX_SECONDS = 1e6
"""Longer than any run: eleven days."""

MAX_TRANSACTIONS = 10**12
"""More than a million a second for as long as that."""

MAX_PER_SECOND = 1e9
"""Queries or transactions in one second."""

MAX_QUERIES = 1e13

MAX_MILLISECONDS = 1e9
"""A latency as long as the longest run."""


def require_plausible(load: Load, program: str) -> Load:
    """Return `load`; raise LoadError, which names `program`, when one of its numbers is impossible."""
    for name, value, most in _bounded(load):
        if not (math.isfinite(value) and 0 <= value <= most):
            raise LoadError(
                f"{program} reports what cannot be: {name} {value:g}",
                hint="its output is damaged: measure again; if that repeats, look at its version",
            )
    return load


def require_seconds(seconds: float) -> None:
    """Raise LoadError when no run takes so long."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise LoadError(
            f"sysbench reports what cannot be: {seconds:g} seconds",
            hint="its output is damaged: measure again",
        )


def _bounded(load: Load) -> Iterator[tuple[str, float, float]]:
    """Every number of a load by name, with the most that it can be."""
    yield "transactions", load.transactions, MAX_TRANSACTIONS
    yield "queries", load.queries, MAX_QUERIES
    yield "seconds", load.seconds, MAX_SECONDS
    yield "errors", load.errors, MAX_TRANSACTIONS
    yield "watched queries", load.watched_queries, MAX_QUERIES
    yield "watched seconds", load.watched_seconds, MAX_SECONDS
    for rate in load.per_second:
        yield "queries in a second", rate, MAX_PER_SECOND
    for name, latency in load.latency_ms.items():
        yield f"latency {name}", latency, MAX_MILLISECONDS
    for longest in load.longest_ms:
        yield "slowest transaction of a second", longest, MAX_MILLISECONDS
    yield "a latency in the histogram", max(load.histogram, default=0.0), MAX_MILLISECONDS
    yield "transactions in the histogram", sum(load.histogram.values()), MAX_TRANSACTIONS
    for cause, failed in load.failed.items():
        yield f"transactions that failed by {cause}", failed, MAX_TRANSACTIONS
    yield "late seconds", load.late_seconds, MAX_SECONDS
    yield "transactions that were due", load.due or 0, MAX_TRANSACTIONS
    for name, beside in load.background.items():
        yield (
            f"transactions of {name} beside",
            max(beside.due, beside.done, beside.most_apart),
            MAX_TRANSACTIONS,
        )
        yield f"late seconds of {name}", beside.late_seconds, MAX_SECONDS
    for kind, tally in load.kinds.items():
        counts = (tally.committed, tally.refused, *tally.retried.values())
        yield f"transactions of {kind}", max(counts), MAX_TRANSACTIONS
        latencies = (*tally.latency_ms.values(), *tally.longest_ms)
        yield f"latency of {kind}", max(latencies, default=0.0), MAX_MILLISECONDS
