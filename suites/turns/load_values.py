"""What a load says of throughput, latency and rates, as metrics."""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from suites.generators.load import KindLoad, Load, rate_of
from suites.metrics import (
    ERRORS,
    FAILED,
    FIRST_THIRD,
    LAST_THIRD,
    MEAN_LATENCY,
    OVERLOADED,
    QPS,
    REFUSED,
    RETRIED,
    SECOND_LATENCY,
    SECONDS,
    SLOWEST,
    SLOWEST_SECOND,
    STALL_LIMITS,
    STALL_LIMITS_MS,
    TAIL_LATENCY,
    TAIL_LIMITS,
    TAIL_LIMITS_US,
    TAIL_SHARE,
    TPS,
    TRANSACTIONS,
    VARIATION,
)
from suites.turns.detrended import detrended

LATENCY = {
    "mean": MEAN_LATENCY,
    "p50": "latency_p50_ms",
    "p95": "latency_p95_ms",
    "p99": TAIL_LATENCY,
    "p999": "latency_p999_ms",
    "max": SLOWEST,
    "second": SECOND_LATENCY,
}
"""Name in Load.latency_ms -> metric."""


def load_values(load: Load) -> Mapping[str, float]:
    """Return throughput, latency and the variation of throughput as metrics."""
    rate = rate_of(load)
    values = {
        QPS: rate,
        TPS: rate * load.transactions / load.queries,
        TRANSACTIONS: float(load.transactions),
        SECONDS: load.seconds,
        ERRORS: float(load.errors),
    }
    values |= {LATENCY[name]: value for name, value in load.latency_ms.items()}
    values |= {FAILURE_METRICS[cause]: float(count) for cause, count in load.failed.items()}
    if load.longest_ms:
        values |= _stalled_seconds(load.longest_ms)
        values[SLOWEST_SECOND] = 1.0 + load.longest_ms.index(max(load.longest_ms))
    values |= slow_transactions(load.histogram)
    if load.kinds:
        values |= _retries([*load.kinds.values()])
    if load.due is not None:
        values |= {"late_seconds": load.late_seconds, OVERLOADED: float(bool(overload(load)))}
    varies = spread(load.per_second) | detrended(load.per_second)
    return values | _background_values(load) | varies | thirds(load.per_second)


def _background_values(load: Load) -> dict[str, float]:
    """Return how the connections beside the measured ones kept their rates and their pace; {} without any."""
    if not load.background:
        return {}
    kinds = load.background.values()
    values = {"most_apart": float(max(kind.most_apart for kind in kinds))}
    shares = [kind.done / kind.due for kind in kinds if kind.due]
    if shares:
        late = max(kind.late_seconds for kind in kinds)
        values |= {"background_share": min(shares), "late_seconds": late}
        values[OVERLOADED] = float(bool(overload(load)))
    return values


FAILURE_METRICS = dict(zip(("serialisation", "deadlock"), FAILED, strict=True))
"""Cause in Load.failed -> metric."""


def _stalled_seconds(longest_ms: Sequence[float]) -> dict[str, float]:
    """Return in how many seconds the slowest transaction was beyond each limit, as metrics."""
    limits = zip(STALL_LIMITS, STALL_LIMITS_MS, strict=True)
    return {name: float(sum(longest > limit for longest in longest_ms)) for name, limit in limits}


def slow_transactions(histogram: Mapping[float, int]) -> dict[str, float]:
    """Return how many transactions took longer than each limit of TAIL_LIMITS, as metrics.

    They are from the lowest limit that at most TAIL_SHARE of them exceed up to the first that none does; {}
    without a histogram.
    """
    most = TAIL_SHARE * sum(histogram.values())
    values: dict[str, float] = {}
    for name, limit in zip(TAIL_LIMITS, TAIL_LIMITS_US, strict=True) if histogram else ():
        beyond = sum(count for latency, count in histogram.items() if latency * 1000 > limit)
        if beyond <= most:
            values[name] = float(beyond)
        if not beyond:
            break
    return values


RETRY_METRICS = dict(zip(("serialisation", "deadlock", "duplicate-key"), RETRIED, strict=True))
"""Cause in KindLoad.retried -> metric."""


def kind_values(load: Load) -> Mapping[str, Mapping[str, float]]:
    """Return throughput, latency, retries and refusals of each kind that occurred as metrics."""
    rate_of_one = rate_of(load) / load.queries
    return {
        name: {
            TPS: rate_of_one * kind.transactions,
            TRANSACTIONS: float(kind.transactions),
            **{LATENCY[part]: value for part, value in kind.latency_ms.items()},
            **_retries([kind]),
        }
        for name, kind in load.kinds.items()
        if kind.transactions or kind.refused or any(kind.retried.values())
    }


def _retries(kinds: Sequence[KindLoad]) -> dict[str, float]:
    """Return what was retried and refused, as metrics; {} where the load generator does not say."""
    if not any(kind.retried for kind in kinds):
        return {}
    retried = {
        metric: float(sum(kind.retried.get(cause, 0) for kind in kinds))
        for cause, metric in RETRY_METRICS.items()
    }
    return retried | {REFUSED: float(sum(kind.refused for kind in kinds))}


MAX_LATE_SECONDS = 1.0
"""At a rate, how late a transaction may begin; beyond it the server does not keep up."""

MIN_ACHIEVED = 0.95
"""At a rate, the least share of the transactions that were due that a server which keeps up has finished."""


def overload(load: Load) -> list[str]:
    """Return why a server did not keep up with the rates of its step; empty if it did, or without a rate."""
    rates = [
        (name, kind.done, kind.due, kind.late_seconds) for name, kind in load.background.items() if kind.due
    ]
    if load.due is not None:
        rates.append(("transaction", load.transactions, load.due, load.late_seconds))
    reasons = []
    for name, done, due, late in rates:
        if late > MAX_LATE_SECONDS:
            reasons.append(f"overloaded: a {name} began {late:.1f} s later than it was due")
        if done < MIN_ACHIEVED * due:
            reasons.append(f"overloaded: {done} of {due} {name}s that were due")
    return reasons


def thirds(per_second: Sequence[float]) -> dict[str, float]:
    """Return throughput in the first and the last third of at least three seconds as metrics, else {}."""
    length = len(per_second) // 3
    if not length:
        return {}
    ends = (per_second[:length], per_second[-length:])
    return {name: statistics.mean(part) for name, part in zip((FIRST_THIRD, LAST_THIRD), ends, strict=True)}


def spread(per_second: Sequence[float]) -> dict[str, float]:
    """Return the variation of throughput from second to second as metrics; empty for fewer than two seconds.

    The coefficient of variation is the sample standard deviation divided by the mean.
    """
    if len(per_second) < 2 or not any(per_second):
        return {}
    median = statistics.median(per_second)
    values = {VARIATION: statistics.stdev(per_second) / statistics.mean(per_second)}
    if median > 0:
        values["qps_p1_over_median"] = float(np.percentile(per_second, 1)) / median
    return values
