"""Units that people write, in terms of those the history keeps."""

from collections.abc import Mapping

from suites.metric import Metric, Role
from suites.metrics import METRICS, PRIMARY, TPS, of_role

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
}
_COUNTED = {"ops": "queries", "operations": "queries", "txns": "transactions", "cs": "switches"}
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}

# Amount of the first unit of each group in one of this. KB is what iostat and vmstat call 1024 bytes.
_KILO = 1024.0
_GROUPS: tuple[dict[str, float], ...] = (
    {"s": 1.0, "sec": 1.0, "min": 60.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9},
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


def _parts(unit: str) -> tuple[str, str]:
    """Return what is counted, and per what."""
    written = unit.strip().lower()
    what, _, per = _WHOLE.get(written, written).partition("/")
    what, per = what.strip(), per.strip()
    return _COUNTED.get(what, what), _PER.get(per, per)
