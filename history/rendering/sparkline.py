"""Sparklines: a row of bars, one per night."""

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇"
"""The bars from the lowest to the highest; the middle one is a ratio of 1."""

GAP = "·"
"""A night without a value, which differs from a low bar."""

MIN_SPAN = 0.05
"""The lowest and the highest bar are at least this far from 1, as a fraction, so that noise looks small."""

SPARKLINE_LEGEND = (
    f"nights: new over base in the last nights; {BARS[3]} is 1, {BARS[0]} and {BARS[-1]} are "
    f"{100 * MIN_SPAN:.0f} % less and more, or as far as the furthest night of the row; {GAP} has no value."
)


def sparkline(ratios: Sequence[float | None]) -> str:
    """Return a bar for each ratio above zero, on a logarithmic scale around 1; a dot for None."""
    logs = [None if ratio is None else math.log(ratio) for ratio in ratios]
    span = max(math.log1p(MIN_SPAN), *(abs(log) for log in logs if log is not None), 0.0)
    middle = len(BARS) // 2
    return "".join(GAP if log is None else BARS[middle + round(log / span * middle)] for log in logs)
