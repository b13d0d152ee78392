"""A row of bars, one for each night."""

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇"
"""From the lowest to the highest; the one in the middle is 1."""

GAP = "·"
"""A night without a value: never a low bar."""

LEAST_SPAN = 0.05
"""The lowest and the highest bar are at least this far from 1, as a fraction: noise is no drama."""

SPARKLINE_LEGEND = (
    f"nights: new over base in the last nights; {BARS[3]} is 1, {BARS[0]} and {BARS[-1]} are "
    f"{LEAST_SPAN:.0%} less and more, or as far as the furthest night of the row; {GAP} has no value."
).replace("%", " %")


def sparkline(ratios: Sequence[float | None]) -> str:
    """A bar for each ratio above zero, on a logarithmic scale around 1; a dot for None."""
    logs = [None if each is None else math.log(each) for each in ratios]
    span = max(math.log1p(LEAST_SPAN), *(abs(each) for each in logs if each is not None), 0.0)
    middle = len(BARS) // 2
    return "".join(GAP if each is None else BARS[middle + round(each / span * middle)] for each in logs)
