"""Numbers, times and units as people and spreadsheets write them; what has two meanings is refused."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from history.timestamps import moment_of
from suites.metrics import METRICS, PRIMARY, TPS, Metric, Role, of_role

_GROUPED = re.compile(
    r"[-+]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})", re.ASCII
)
"""Digits in groups of three, by one mark, with a decimal part after the other one."""

_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+", re.ASCII)
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
"""Thousands, or a number with three decimal places."""

_DATE = re.compile(
    r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)? ?(Z|[+-]\d{2}:?\d{2})?"
)
_DAY_OR_MONTH = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}.*")
_FIRST_EPOCH = 1e9
"""Seconds since 1970 from which on a number is a time: smaller ones are years and days, such as 20251105."""

_LARGEST_EPOCH = 1e11
"""A number above is one of milliseconds."""

_LATEST = 4102444800.0
"""Seconds of the epoch: the year 2100."""


def number(text: str) -> float | None:
    """Return a finite number as programs write it; None for any other text."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None


def number_of(text: str) -> float:
    """Return a number such as `1234.5`, `1,234.5`, `1234,5` or `1.234,5`.

    Raises ValueError for any other text, and for `1,234`, which may be 1234 or 1.234.
    """
    if (either := _EITHER.fullmatch(text)) and either[1] == ",":
        raise ValueError(
            f"'{text}' may be thousands or decimal places: write it without the comma, or with a point"
        )
    plain = text
    if _GROUPED.fullmatch(text):
        last = max(text.rfind(","), text.rfind("."))
        marks = {text[last]} if text.count(text[last]) > 1 else {",", "."} - {text[last]}
        plain = text.translate({ord(mark): None for mark in marks}).replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(text):
        plain = text.replace(",", ".")
    found = number(plain)
    if found is None:
        raise ValueError(f"'{text}' is no number: write it as 1234.5")
    return found


def has_decimal_comma(text: str) -> bool:
    """Return whether a number has its decimal places after a comma."""
    return "," in text and text.rfind(",") > text.rfind(".") and text.count(",") == 1


def may_be_thousands(text: str) -> bool:
    """Return whether `1.234` is 1234 to people who write a decimal comma."""
    return _EITHER.fullmatch(text) is not None


def time_of(text: str) -> datetime:
    """Return the time of a date, an ISO 8601 text, `2026.01.31 3:00:00 +0100`, or (milli)seconds since 1970.

    Raises ValueError for any other text, and for `05/11/2025`, which may be in May or November.
    """
    epoch = number(text)
    if epoch is not None and epoch >= _FIRST_EPOCH:
        seconds = epoch / 1000 if epoch > _LARGEST_EPOCH else epoch
        if seconds < _LATEST:
            return datetime.fromtimestamp(seconds, UTC).replace(microsecond=0)
    if _DAY_OR_MONTH.fullmatch(text.strip()):
        raise ValueError(f"'{text}' does not say which is the day and which the month: write 2025-11-05")
    written = text
    if match := _DATE.fullmatch(text.strip()):
        year, month, day, hour, minute, second, zone = match.groups("0")
        clock = f"{hour:>02}:{minute:>02}:{second:>02}"
        written = f"{year}-{month:>02}-{day:>02}T{clock}{'' if zone == '0' else zone}"
    try:
        return moment_of(written)
    except ValueError:
        return moment_of(text)


# --- units


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


def _parts(unit: str) -> tuple[str, str]:
    """Return what is counted, and per what."""
    written = unit.strip().lower()
    what, _, per = _WHOLE.get(written, written).partition("/")
    what, per = what.strip(), per.strip()
    return _COUNTED.get(what, what), _PER.get(per, per)
