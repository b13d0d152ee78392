"""Formatting of numbers."""

from history.stats.estimators import Interval

DASH = "–"
"""The text for a missing number."""


def two_decimals(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return DASH if value is None else f"{value:.2f}"


def three_decimals(value: float | None) -> str:
    """Return a ratio of counts, which are known to a fraction of a per cent, with three decimals."""
    return DASH if value is None else f"{value:.3f}"


def amount(value: float | None) -> str:
    """Return a value with at least four significant digits and no exponent."""
    if value is None:
        return DASH
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if value == 0 or value >= 0.001 else "<0.001"


def bounds(interval: Interval | None, decimals: int = 2) -> str:
    """Return both bounds of an interval, or `very wide` if they differ by more than a factor of 100."""
    if interval is None:
        return DASH
    if interval.high > 100 * interval.low:
        return "very wide"
    return f"{interval.low:.{decimals}f}–{interval.high:.{decimals}f}"


def percent(value: float | None) -> str:
    """Return a fraction in four characters at most, as long as it is below one."""
    if value is None:
        return DASH
    return f"{value:.1%}" if value < 0.0995 else f"{value:.0%}"


def signed_percent(value: float) -> str:
    """Return a fraction as a change: `-12 %`."""
    return f"{value:+.0%}".replace("%", " %")


def rounded(value: float | None) -> float | None:
    """Return a value rounded to nine digits, because further digits differ between math libraries."""
    return None if value is None else float(f"{value:.9g}")
