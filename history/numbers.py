"""Numbers as people read them. Pages write the same texts with their own signs: report/markup/formats.py."""

from history.stats.estimators import Interval

DASH = "–"
"""The text for a missing number."""

MANY_TIMES = 10
"""The ratio from which on a change is told as times, and not in per cent."""


def two_decimals(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return DASH if value is None else f"{value:.2f}"


def three_decimals(value: float | None) -> str:
    """Return a ratio of counts, which are known to a fraction of a per cent, with three decimals."""
    return DASH if value is None else f"{value:.3f}"


def amount(value: float | None, thousands: str = "") -> str:
    """Return a value with at least four significant digits and no exponent; `thousands` sets them apart."""
    if value is None:
        return DASH
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", thousands)
    if 0 < abs(value) < 0.0001:
        return "<0.0001" if value > 0 else ">-0.0001"
    return f"{value:.4g}"


VERY_WIDE = "very wide"
"""The text for an interval whose bounds differ by more than a factor of 100."""


def is_very_wide(interval: Interval) -> bool:
    """Return whether the bounds of an interval say nothing."""
    return interval.high > 100 * interval.low


def bounds(interval: Interval | None, decimals: int = 2) -> str:
    """Return both bounds of an interval, or VERY_WIDE."""
    if interval is None:
        return DASH
    if is_very_wide(interval):
        return VERY_WIDE
    return f"{interval.low:.{decimals}f}–{interval.high:.{decimals}f}"


def percents(ratio: float) -> str:
    """Return a ratio as a change in per cent, without the sign of it: `+41.0`, or `±0.0`."""
    text = f"{100 * (ratio - 1):+.1f}"
    return "±0.0" if float(text) == 0 else text


def change_of(ratio: float | None) -> str:
    """Return a ratio as a change: `-9.1 %`, `±0.0 %`, or from MANY_TIMES on `2,543 times`."""
    if ratio is None:
        return DASH
    return f"{_times(ratio)} times" if ratio >= MANY_TIMES else f"{percents(ratio)} %"


def change_range(low: float, high: float) -> str:
    """Return two ratios as a range of changes: `-3.1 to +12.0 %`, or `15 to 25 times`.

    They are times where their geometric mean is: there the ratio lies whose interval it is.
    """
    if low * high >= MANY_TIMES**2:
        return f"{_times(low)} to {_times(high)} times"
    return f"{percents(low)} to {percents(high)} %"


def change_text(ratio: float, low: float, high: float) -> str:
    """Return a ratio as a change, with the bounds of its interval: `-9.1 % (-9.8 to -8.3)`.

    From MANY_TIMES on it is no change of a size but another size: `2,543 times (1,875 to 3,450)`.
    """
    if ratio >= MANY_TIMES:
        return f"{_times(ratio)} times ({_times(low)} to {_times(high)})"
    return f"{percents(ratio)} % ({percents(low)} to {percents(high)})"


def size_text(ratio: float) -> str:
    """Return how far a ratio is from 1, without its direction: `9.1 %`, or `2,543 times`."""
    return f"{_times(ratio)} times" if ratio >= MANY_TIMES else f"{100 * abs(ratio - 1):.1f} %"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def percent_bounds(interval: Interval) -> str:
    """Return both bounds of an interval as changes: `-3.1 to +12.0 %`, or VERY_WIDE."""
    if is_very_wide(interval):
        return VERY_WIDE
    return change_range(interval.low, interval.high)


def share(fraction: float | None, digits: int | None = None) -> str:
    """Return a fraction in per cent: `2.2 %`, `12 %`; two digits, as long as it is below one, or `digits`."""
    if fraction is None:
        return DASH
    if digits is None:
        digits = 1 if abs(fraction) < 0.0995 else 0
    return f"{100 * fraction:.{digits}f} %"


def signed_percent(value: float) -> str:
    """Return a fraction as a change: `-12 %`."""
    return f"{100 * value:+.0f} %"


def rounded(value: float | None) -> float | None:
    """Return a value rounded to nine digits, because further digits differ between math libraries."""
    return None if value is None else float(f"{value:.9g}")
