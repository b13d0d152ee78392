"""Units that people write, in terms of those the history keeps."""

from collections.abc import Mapping

from suites.metric import Metric, Role
from suites.metric_names import OPERATION_TIME, PRIMARY, TPS
from suites.metrics import METRICS, of_role

OTHER_THROUGHPUTS: Mapping[str, tuple[str, str]] = {
    "ops": (PRIMARY, "queries/s"),
    "tpm": (TPS, "transactions/min"),
    "tpmc": (TPS, "transactions/min"),
    "nopm": (TPS, "transactions/min"),
}
"""What other benchmarks call a throughput -> the metric that it is here, and its unit."""

# People write the name of a throughput for its unit.
_WHOLE = {
    **{name: METRICS[name].unit for name in of_role(Role.THROUGHPUT)},
    **{name: unit for name, (_, unit) in OTHER_THROUGHPUTS.items()},
    "%": "%",
}
_PER = {
    "op": "query",
    "operation": "query",
    "q": "query",
    "sec": "s",
    "second": "s",
    "minute": "min",
    "hour": "h",
    "iter": "query",
    "iteration": "query",
    "request": "query",
}
_COUNTED = {
    **dict.fromkeys(("op", "ops", "operations", "iter", "iterations", "requests", "qps"), "queries"),
    **dict.fromkeys(("txn", "txns", "tx", "transaction"), "transactions"),
    "cs": "switches",
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}

# Amount of the first unit of each group in one of this. KB is what iostat and vmstat call 1024 bytes.
_KILO = 1024.0
_GROUPS: tuple[dict[str, float], ...] = (
    {
        **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
        **dict.fromkeys(("min", "minutes"), 60.0),
        **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
        **dict.fromkeys(("µs", "μs", "us", "microsecond", "microseconds"), 1e-6),
        **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
    },
    {
        "bytes": 1.0,
        "byte": 1.0,
        "b": 1.0,
        **dict.fromkeys(("kb", "kib"), _KILO),
        **dict.fromkeys(("mb", "mib"), _KILO**2),
        **dict.fromkeys(("gb", "gib"), _KILO**3),
        **dict.fromkeys(("tb", "tib"), _KILO**4),
    },
    {"ratio": 1.0, "%": 0.01},
)


def factor(metric: Metric, unit: str) -> float:
    """Return what a value in `unit` is multiplied by to be in the metric's own unit.

    Raises ValueError when the two do not measure the same, or `unit` is not known.
    """
    wanted, given = _parts(metric.unit), _parts(unit)
    if wanted == given:
        return 1.0
    if wanted[0] == given[0] and wanted[1] in _SECONDS and given[1] in _SECONDS:
        return _SECONDS[wanted[1]] / _SECONDS[given[1]]
    if wanted[1] == given[1]:
        for group in _GROUPS:
            if wanted[0] in group and given[0] in group:
                return group[given[0]] / group[wanted[0]]
    raise ValueError(f"unknown unit '{unit}': {metric.name} is in {metric.unit}")


def by_unit(unit: str) -> tuple[str, float] | None:
    """Return what a number in a unit is if nothing else is known of it: a metric, and the factor to its unit.

    A time is that of an operation; operations and transactions per second are throughput. None for any other.
    """
    what, per = _parts(unit)
    of_one = what if per == "query" else unit
    for name, written in ((OPERATION_TIME, of_one), (PRIMARY, unit), (TPS, unit)):
        try:
            return name, factor(METRICS[name], written)
        except ValueError:
            continue
    return None


def _parts(unit: str) -> tuple[str, str]:
    """Return what is counted, and per what."""
    written = unit.strip().lower()
    what, _, per = _WHOLE.get(written, written).partition("/")
    what, per = what.strip(), per.strip()
    return _COUNTED.get(what, what), _PER.get(per, per)
