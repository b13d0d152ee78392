"""How much throughput varies from second to second without its trend, which is no variation.

A cache that warms, or a table that grows, moves throughput slowly and lastingly. The trend at a second is the
median of the seconds around it (running medians: Tukey, Exploratory Data Analysis, 1977, chapter 7). It
follows every sequence that only rises or only falls (Gallagher & Wise, "A Theoretical Analysis of the
Properties of Median Filters", IEEE Transactions on Acoustics, Speech and Signal Processing 29, 1981), and
nothing that passes within half of its window, such as a stall or a checkpoint.
"""

import math
from collections.abc import Sequence

from suites.metrics import DETRENDED, WORST_SECOND

MIN_SECONDS = 20
"""The seconds of a run below which a trend cannot be told from the variation around it."""

WINDOW_SHARE = 3
"""The window of the trend is one part of so many of a run: what moves more slowly is trend."""

MAX_AROUND = 900
"""The seconds before and after a second that its window has at most."""

TRIMMED_SHARE = 0.1
"""The share of the seconds of a run that a stall may take without being its usual variation."""

MIN_WORST = 0.1
"""The smallest share of its trend that a second is recorded with: one in which nothing ended has no ratio."""


def trend(per_second: Sequence[float]) -> list[float]:
    """Return the trend of throughput at each second: the median of as many seconds before as after it.

    Of seconds that swing between two levels it is one of these. Towards both ends the window becomes
    narrower: the first and the last second are their own trend.
    """
    length = len(per_second)
    widest = min(MAX_AROUND, length // (2 * WINDOW_SHARE))
    around = (min(widest, at, length - 1 - at) for at in range(length))
    return [sorted(per_second[at - side : at + side + 1])[side] for at, side in enumerate(around)]


def detrended(per_second: Sequence[float]) -> dict[str, float]:
    """Return the variation of a run around its trend as metrics; {} for fewer than MIN_SECONDS.

    They are those of `around_trend` for all of its seconds.
    """
    return around_trend(per_second, trend(per_second)) if len(per_second) >= MIN_SECONDS else {}


def around_trend(per_second: Sequence[float], level: Sequence[float]) -> dict[str, float]:
    """Return how far seconds, at least two, lie from their trend, as metrics; {} if none has any work.

    The one is the root of the mean square of the distances over the mean throughput, without the
    TRIMMED_SHARE of the seconds that is furthest from the trend: one stall would otherwise be all of it. The
    other is the smallest share that a second has of its trend.
    """
    if not any(per_second):
        return {}
    squares = sorted((rate - usual) ** 2 for rate, usual in zip(per_second, level, strict=True))
    kept = squares[: len(squares) - math.ceil(TRIMMED_SHARE * len(squares))]
    worst = min(rate / usual if usual > 0 else 0.0 for rate, usual in zip(per_second, level, strict=True))
    return {
        DETRENDED: math.sqrt(_mean(kept)) / _mean(per_second),
        WORST_SECOND: min(1.0, max(MIN_WORST, worst)),
    }


def _mean(values: Sequence[float]) -> float:
    """Return the mean; the module `statistics` would cost `compare` its time."""
    return math.fsum(values) / len(values)
