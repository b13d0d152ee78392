"""history.stats.distributions and the digamma function, over arrays, for simulations."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from history.stats.distributions import normal_below, student_quantile
from history.stats.noise_model import digamma, trigamma

Array = NDArray[Any]

MAX_DEGREES = 4096
"""Degrees of freedom up to which quantiles are interpolated."""

POLYNOMIAL_DEGREE = 32
"""Of the interpolation: quantiles of tails from 1e-6 up are exact to 1e-10."""

TABLE_X = np.exp(np.linspace(np.log(0.2), np.log(1e4), 20_000))
LOG_BIAS = np.array([digamma(x) for x in TABLE_X]) - np.log(TABLE_X)
TABLE_LOG_X = np.log(TABLE_X)[::-1]
TABLE_LOG_Y = np.log([trigamma(x) for x in TABLE_X])[::-1]


def normals_below(x: Array) -> Array:
    """Return normal_below of each value."""
    return np.asarray(np.vectorize(normal_below, otypes=[float])(x))


def student_margins(df: Array, tail: float) -> Array:
    """Return the t that Student's t exceeds with probability `tail`, for each of `df`, 1 to MAX_DEGREES."""
    return np.asarray(np.exp(_log_margin(tail)(1 / df)))


def log_bias(x: Array) -> Array:
    """Return digamma(x) - log(x) for x from 0.2 to 1e4, exact to 1e-6."""
    return np.asarray(np.interp(x, TABLE_X, LOG_BIAS))


def inverse_trigammas(value: Array) -> Array:
    """Return x with trigamma(x) = value; interpolated between logarithms, of which it is nearly linear."""
    return np.asarray(np.exp(np.interp(np.log(np.maximum(value, 1e-4)), TABLE_LOG_Y, TABLE_LOG_X)))


@lru_cache(maxsize=1024)
def _log_margin(tail: float) -> Chebyshev:
    """Return the logarithm of the margin as a polynomial of 1/df, in which it is smooth."""
    return Chebyshev.interpolate(
        lambda inverse: np.log([-student_quantile(1 / u, tail) for u in inverse]),
        POLYNOMIAL_DEGREE,
        [1 / MAX_DEGREES, 1],
    )
