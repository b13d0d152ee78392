"""Estimators for repeated runs: means, medians, variances; and what an interval of a ratio is."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from history.stats.contrary_evidence import Objection

if TYPE_CHECKING:  # comparisons read this module without numpy
    import numpy as np
    from numpy.typing import NDArray

Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")

MAD_TO_DEVIATION = 1.4826
"""The standard deviation of normal values over their median absolute deviation."""

MINIMUM_REPETITIONS = 3
"""The pairs that an interval needs at least: two differences hardly determine their spread."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio, contender over base."""

    estimate: float
    """The geometric mean of the paired ratios."""

    low: float
    high: float
    n: int
    """The number of pairs that it is computed from."""

    error: float = 0.0
    """The standard error of the estimate's logarithm; 0 where it is not known."""

    last_margin: float = 0.0
    """The distance of both ends from the estimate, on the logarithm, that is expected at the last look."""

    objections: tuple[Objection, ...] = ()
    """What the rounds hold against it."""


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the exponential of the mean logarithm; None without values, or when one is not above zero."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def median(values: Iterable[float]) -> float:
    """Return the median of at least one value; for an even number the mean of the middle two."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values.

    statistics.variance gives the same, but sums fractions, which costs `compare` a tenth of a second.
    """
    middle = mean(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)


def ar1_inflation(correlation: Numbers) -> Numbers:
    """Return by how much the variance of a mean exceeds that of independent values: (1 + r) / (1 - r).

    `correlation` is that of neighbouring values of an AR(1) process, below 1. The factor is that of a long
    series (Bayley & Hammersley, Supplement to JRSS 8, 1946).
    """
    return (1 + correlation) / (1 - correlation)
