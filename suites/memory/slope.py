"""The slope of a line through few points, which single points far from it do not move."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

CONFIDENCE = 0.9
"""The least confidence of an interval, if there are points enough: four have one of 92 %."""


@dataclass(frozen=True)
class Slope:
    """The slope of a line with its confidence interval, in units of y per unit of x."""

    value: float
    low: float
    high: float


def theil_sen(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Return the median of the slopes between all pairs of points, and Sen's interval for it.

    Pairs with the same `x` have no slope; without any other pair, nothing grew with x and all is 0. The
    interval leaves out as many of the lowest and of the highest slopes as still give CONFIDENCE; with fewer
    than four points it is that of all slopes, and its confidence is lower. P. K. Sen, "Estimates of the
    regression coefficient based on Kendall's tau", Journal of the American Statistical Association 63, 1968.
    """
    points = list(zip(x, y, strict=True))
    slopes = sorted(
        (late[1] - early[1]) / (late[0] - early[0])
        for early, late in combinations(points, 2)
        if late[0] != early[0]
    )
    if not slopes:
        return Slope(0.0, 0.0, 0.0)
    # The distribution is that of points without ties; where there are any, no slope is left out.
    left_out = omitted(len(points)) if len(set(x)) == len(points) else 0
    return Slope(median(slopes), slopes[left_out], slopes[-1 - left_out])


def omitted(points: int) -> int:
    """Return how many slopes at either end lie outside the interval.

    So many slopes are below the true one as pairs of residuals are in the wrong order, which is the number of
    inversions of a random permutation.
    """
    share, below = (1 - CONFIDENCE) / 2 * math.factorial(points), 0
    for place, count in enumerate(inversions(points)):
        below += count
        if below > share:
            return max(0, place - 1)
    return 0


def inversions(size: int) -> list[int]:
    """Return how many permutations of `size` elements have 0, 1, 2, ... inversions (Mahonian numbers)."""
    counts = [1]
    for length in range(2, size + 1):
        counts = [
            sum(counts[max(0, total - length + 1) : total + 1]) for total in range(len(counts) + length - 1)
        ]
    return counts
