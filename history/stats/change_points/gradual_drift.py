"""Whether a finished series drifts: a line through all of its nights, beside the steps that it has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.localization import STANDARD_ERRORS

Array = NDArray[np.float64]

SHORTEST_DRIFT = 40
"""Values that a series needs before a drift is claimed."""

REQUIRED_ERRORS = 7.0
"""Standard errors by which the line has to rise or fall: more than a step that is too small to be found."""

BETTER_BY = 10.0
"""Variances of the noise by which a line has to fit better than any two steps instead of it."""

MAX_CORRELATION = 0.9
"""The AR(1) of the noise that is reckoned with at most; what correlates more than that drifts."""

CUT = 3.0
"""Standard deviations to which residuals are cut, so that outliers at an end do not turn the line."""


@dataclass(frozen=True)
class Drift:
    """A series that moves gradually; positions count its nights from 0, gaps included."""

    first: int
    """The first night with a value."""

    last: int
    """The last one."""

    size: float
    """By how much the line rose between them, in the units of the values; negative when it fell."""

    error: float
    """The standard error of the size."""

    @property
    def low(self) -> float:
        """The lower bound of the size, which holds with 95 %."""
        return self.size - STANDARD_ERRORS * self.error

    @property
    def high(self) -> float:
        """The upper bound of the size."""
        return self.size + STANDARD_ERRORS * self.error


def find_drift(values: Array, steps: Sequence[int] = ()) -> Drift | None:
    """Return the drift of a series [nights], nan in a gap, beside its steps; None without a clear one.

    `steps` are the first nights of its new levels. Noise is that around line and steps, with its AR(1).
    """
    nights = np.flatnonzero(np.isfinite(values))
    if len(nights) < SHORTEST_DRIFT:
        return None
    first, last = int(nights[0]), int(nights[-1])
    time = (nights - first) / (last - first) - 0.5
    columns = np.column_stack([np.ones(len(nights)), time, *((nights >= step) * 1.0 for step in steps)])
    observed = values[nights]
    for _ in range(2):
        fitted = columns @ np.linalg.lstsq(columns, observed, rcond=None)[0]
        scale = 1.4826 * float(np.median(np.abs(observed - fitted)))
        observed = fitted + np.clip(observed - fitted, -CUT * scale, CUT * scale)
    weights = np.linalg.lstsq(columns, observed, rcond=None)[0]
    error = _error(columns, observed - columns @ weights)
    size = float(weights[1])
    if not error or abs(size) < REQUIRED_ERRORS * error:
        return None
    residual = observed - columns @ weights
    variance = float(residual @ residual) / len(nights) * _inflation(residual, columns.shape[1])
    without_line = observed - np.delete(columns, 1, axis=1) @ np.delete(weights, 1)
    if _by_two_steps(without_line) - float(residual @ residual) < BETTER_BY * variance:
        return None
    return Drift(first, last, size, error)


def _by_two_steps(values: Array) -> float:
    """Return the squares that the best three levels leave of some values."""
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    before, between, after = np.arange(count + 1), np.arange(count + 1)[:, None], count - np.arange(count + 1)
    first = np.where(before > 0, sums**2 / np.maximum(before, 1), 0.0)
    last = np.where(after > 0, (sums[-1] - sums) ** 2 / np.maximum(after, 1), 0.0)
    width = np.maximum(before[None, :] - between, 0)
    middle = np.where(width > 0, (sums[None, :] - sums[:, None]) ** 2 / np.maximum(width, 1), 0.0)
    explained = first[:, None] + middle + last[None, :]
    return float(values @ values) - float(explained[before[None, :] >= between].max())


def _error(columns: Array, residual: Array) -> float:
    """Return the standard error of the line's rise, inflated by the correlation of neighbouring nights."""
    count, used = columns.shape
    squares = float(residual @ residual)
    if squares <= 0:
        return 0.0
    variance = squares / (count - used) * _inflation(residual, used)
    return math.sqrt(variance * float(np.linalg.pinv(columns.T @ columns)[1, 1]))


def _inflation(residual: Array, used: int) -> float:
    """Return the factor by which the correlation of neighbouring nights increases the variance of a mean."""
    squares = max(float(residual @ residual), np.finfo(np.float64).tiny)
    correlation = float(residual[1:] @ residual[:-1]) / squares + used / len(residual)
    correlation = min(max(correlation, 0.0), MAX_CORRELATION)
    return (1 + correlation) / (1 - correlation)
