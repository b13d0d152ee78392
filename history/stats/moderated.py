"""Means of few rounds whose scatter is known beforehand, of values that may be zero or negative.

Three rounds hardly show how much they scatter. Their variance is therefore combined with the expected one,
which counts like PRIOR_ROUNDS further rounds (Smyth, "Linear models and empirical Bayes methods for assessing
differential expression in microarray experiments", 2004, section 3: the moderated t).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from history.stats.distributions import student_quantile

PRIOR_ROUNDS = 10
"""The rounds whose weight the expected scatter has, in degrees of freedom."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval."""

    value: float
    low: float
    high: float


def moderated(values: Sequence[float], expected: float, error: float) -> Estimate:
    """Return the mean of rounds, and an interval that misses it with a probability of `error` in all.

    `expected` is the standard deviation of a round that is known beforehand. Raises ValueError without
    values.
    """
    if not values:
        raise ValueError("no rounds")
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    freedom = PRIOR_ROUNDS + len(values) - 1
    deviation = math.sqrt((PRIOR_ROUNDS * expected**2 + squares) / freedom)
    margin = student_quantile(freedom, 1 - error / 2) * deviation / math.sqrt(len(values))
    return Estimate(mean, mean - margin, mean + margin)
