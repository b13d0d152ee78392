"""How numbers are written."""

from history.stats.estimators import Interval

DASH = "–"
"""Stands for a number that there is not."""


def two_decimals(value: float | None) -> str:
    """A ratio."""
    return DASH if value is None else f"{value:.2f}"


def amount(value: float | None) -> str:
    """Four digits at least, and never an exponent."""
    if value is None:
        return DASH
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if value == 0 or value >= 0.001 else "<0.001"


def bounds(interval: Interval | None) -> str:
    """Both bounds; when they are powers of ten apart their digits say nothing."""
    if interval is None:
        return DASH
    return "very wide" if interval.high > 100 * interval.low else f"{interval.low:.2f}–{interval.high:.2f}"


def percent(value: float | None) -> str:
    """A fraction in four characters at most, as long as it is below one."""
    if value is None:
        return DASH
    return f"{value:.1%}" if value < 0.0995 else f"{value:.0%}"


def signed_percent(value: float) -> str:
    """A fraction as a change: `-12 %`."""
    return f"{value:+.0%}".replace("%", " %")


def rounded(value: float | None) -> float | None:
    """To nine digits: more would differ between mathematical libraries."""
    return None if value is None else float(f"{value:.9g}")
