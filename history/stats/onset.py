"""When within a round the ratio of two versions changed: a step fitted to the log ratios of its seconds.

The change lies where two means leave the least squares (Hinkley, Biometrika 57, 1970). Where a straight line
over all seconds leaves less, the ratio has changed all the time, and there is no such second.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

from history.stats.estimators import mean


def onset_second(logs: Sequence[float]) -> int | None:
    """Return the second, from 2, in which the log ratios of a round's seconds, in order, take their later
    level.

    None for fewer than four seconds, for seconds that are all alike, and where they rise or fall all the
    time.
    """
    n = len(logs)
    if n < 4:
        return None
    middle = mean(logs)
    sums = list(accumulate(log - middle for log in logs))
    # The squares that a step explains, for each number of seconds before it.
    explained = [sums[before - 1] ** 2 * n / (before * (n - before)) for before in range(1, n)]
    most = max(explained)
    half = (n - 1) / 2
    slope = math.fsum([(place - half) * log for place, log in enumerate(logs)])
    by_line = slope**2 / (n * (n * n - 1) / 12)
    return None if most <= by_line else explained.index(most) + 2
