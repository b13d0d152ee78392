"""Parts of JSON that another program wrote: each as what it should be, or nothing."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from history.timestamps import moment_of

_LATEST = 4102444800.0
"""Seconds of the epoch: the year 2100."""


def parts(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> Sequence[Any]:
    """Return an array; an empty one for anything else."""
    return value if isinstance(value, list) else ()


def number(value: object) -> float | None:
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and not (isinstance(value, str) and "_" in value) else None


def text(value: object) -> str:
    """Return a text; an empty one for anything else."""
    return value.strip() if isinstance(value, str) else ""


def date(value: object) -> datetime | None:
    """Return the time of an ISO text, in UTC if it names no time zone; None for anything else."""
    try:
        return moment_of(value) if isinstance(value, str) else None
    except ValueError:
        return None


def date_of_milliseconds(value: object) -> datetime | None:
    """Return the time of a number of milliseconds since 1970; None for anything else."""
    milliseconds = number(value)
    if milliseconds is None or not 0 < milliseconds / 1000 < _LATEST:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(microsecond=0)


def scaled(values: Mapping[str, object], metrics: Mapping[str, str], factor: float) -> dict[str, float]:
    """Return the numbers among `values` by metric, times a factor; `metrics` says which keys are of which."""
    found = {metric: number(values.get(key)) for key, metric in metrics.items()}
    return {metric: value * factor for metric, value in found.items() if value is not None}
