"""How heavy the tails of noise are: Student's t from the ratio of two mean deviations."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_DEGREES = 3.0
"""Heavier tails than those of Student's t with so many degrees of freedom are taken for these."""

MAX_DEGREES = 60.0
"""As good as Gaussian."""


def mean_absolute(degrees: float) -> float:
    """Return E|t| of Student's t with `degrees` > 1 degrees of freedom."""
    gammas = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    return 2 * math.sqrt(degrees / math.pi) * math.exp(gammas) / (degrees - 1)


def geary_ratio(degrees: float) -> float:
    """Return the ratio of mean absolute to standard deviation (Geary, Biometrika 27, 1935); normal: 0.798."""
    return mean_absolute(degrees) * math.sqrt((degrees - 2) / degrees)


_INVERSES = np.linspace(1 / MIN_DEGREES, 1 / MAX_DEGREES, 40)
_RATIOS = np.array([geary_ratio(1 / inverse) for inverse in _INVERSES])
_MEANS = np.array([mean_absolute(1 / inverse) for inverse in _INVERSES])[::-1]


def inverse_degrees(ratio: Array) -> Array:
    """Return 1 / degrees of the t with Geary ratio `ratio`, from 1/MAX_DEGREES to 1/MIN_DEGREES."""
    return np.interp(ratio, _RATIOS, _INVERSES)


def scale_of(mean: Array, inverse: Array) -> Array:
    """Return the scale parameter of a t with mean absolute deviation `mean` and 1 / degrees `inverse`."""
    return np.asarray(mean / np.interp(inverse, _INVERSES[::-1], _MEANS))
