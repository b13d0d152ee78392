"""Plain bisect with a fixed number of rounds per midpoint, with which our search is compared.

A midpoint is bad if the mean of its log ratios exceeds half of the difference between good and bad. Whether
there is a difference is never tested. Noise is Gaussian, so that the accuracy is known without a simulation.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.distribution_arrays import normals_below

MAX_RERUNS = 5_000

NODES = 201
"""Points of the integral over the estimate of half of the difference, out to 5 standard errors."""

BAD_SHARES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Rounds of bad over those of a midpoint, of which the best is taken."""


@dataclass(frozen=True)
class PlainBisectPlan:
    """Rounds per midpoint, and rounds of bad relative to them; an infinite share costs nothing."""

    reruns: int
    bad_share: float

    def accuracy(self, length: int, size: float, noise: float) -> float:
        """The probability that it names the culprit of a loss of `size`, anywhere in `length` commits.

        `length` is a power of two: every culprit takes as many midpoints, on average half of them bad.
        """
        difference = -math.log1p(-size)
        error = noise / math.sqrt(self.reruns)
        deviates = np.linspace(-5, 5, NODES)
        weights = np.exp(-(deviates**2) / 2)
        half = (difference + error / math.sqrt(self.bad_share) * deviates) / 2
        right = (normals_below(half / error) + normals_below((difference - half) / error)) / 2
        return float(weights @ right ** midpoints(length) / weights.sum())

    def spent(self, length: int) -> tuple[float, int]:
        """Return the number of rounds, and of builds including good and bad."""
        bad = self.bad_share if math.isfinite(self.bad_share) else 0.0
        return (midpoints(length) + bad) * self.reruns, midpoints(length) + 2


def midpoints(length: int) -> int:
    """Return the number of midpoints that are built and measured."""
    return round(math.log2(length))


def fewest(wanted: float, length: int, size: float, noise: float, bad_share: float = 1.0) -> PlainBisectPlan:
    """The fewest reruns that are right with a probability of `wanted`; at most MAX_RERUNS."""
    low, high = 0, MAX_RERUNS
    while high - low > 1:  # accuracy rises with reruns
        middle = (low + high) // 2
        enough = PlainBisectPlan(middle, bad_share).accuracy(length, size, noise) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return PlainBisectPlan(high, bad_share)


Planner = Callable[[float, int, float, float], PlainBisectPlan]
"""A function from the wanted accuracy, length, size and noise to a plan."""


def _best(wanted: float, length: int, size: float, noise: float) -> PlainBisectPlan:
    plans = [fewest(wanted, length, size, noise, share) for share in BAD_SHARES]
    return min(plans, key=lambda plan: plan.spent(length)[0])


def _told(wanted: float, length: int, size: float, noise: float) -> PlainBisectPlan:
    return fewest(wanted, length, size, noise, math.inf)


def _for_any(
    wanted: float, length: int, size: float, noise: float, smallest: float = 0.03
) -> PlainBisectPlan:
    return fewest(wanted, length, min(size, smallest), noise)


FIXED = "plain bisect"

PLANNERS: Mapping[str, Planner] = {
    FIXED: fewest,
    f"{FIXED} that does not know the size": _for_any,
    f"{FIXED} with the best number of rounds of bad": _best,
    f"{FIXED} told half of the difference for nothing": _told,
}
"""The same number of rounds everywhere, chosen for that change; chosen for the smallest change; and two that
are stronger, the last of which nobody can have."""
