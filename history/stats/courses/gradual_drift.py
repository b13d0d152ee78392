"""Whether a series drifts: a line through its nights, or through some of them, beside the steps that it has.

A line may begin after nights at a level, and end before nights at another one. The steps between its ends
that were found in the series can be its staircase: they stay if the series needs them beside the line.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.localization import STANDARD_ERRORS
from history.stats.estimators import MAD_TO_DEVIATION, ar1_inflation

Array = NDArray[np.float64]

SHORTEST_DRIFT = 40
"""Values that a drift lasts at least."""

REQUIRED_ERRORS = 7.0
"""Standard errors by which the line has to rise or fall: more than a step that is too small to be found."""

BETTER_BY = 10.0
"""Variances of the noise by which a line has to fit better than any two steps instead of it."""

RAISED_WORSE_BY = 4.0
"""Variances by which it may fit worse where the watch has raised a step: two free steps always fit somewhat
better than one line, and a single step never looked like a line in simulations."""

HINGE_PENALTY = 8.0
"""Variances that each end of a line costs which is not an end of the series."""

STEP_PENALTY = 2.0
"""Variances that each step costs, for each factor of e of the number of values: it can be at any of them."""

ENDS = 30
"""Places at which a line may begin or end, at most."""

MAX_CORRELATION = 0.9
"""The AR(1) of the noise that is reckoned with at most; what correlates more than that drifts."""

CUT = 3.0
"""Standard deviations to which residuals are cut, so that outliers at an end do not turn the line."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""What is divided by instead of nought."""


@dataclass(frozen=True)
class Drift:
    """A series that moves gradually; positions count its nights from 0, gaps included."""

    first: int
    """The first night of the line."""

    last: int
    """The last one."""

    before: float
    """The level at its beginning, in the units of the values."""

    size: float
    """By how much the line rose between them; negative when it fell."""

    error: float
    """The standard error of the size."""

    steps: tuple[int, ...]
    """The first nights of the steps that the series has beside it."""

    @property
    def low(self) -> float:
        """The lower bound of the size, which holds with 95 %."""
        return self.size - STANDARD_ERRORS * self.error

    @property
    def high(self) -> float:
        """The upper bound of the size."""
        return self.size + STANDARD_ERRORS * self.error


@dataclass(frozen=True)
class _Model:
    """A line beside steps, fitted to the values without gaps."""

    start: int
    end: int
    steps: tuple[int, ...]
    squares: float
    """Of the residuals."""

    cost: float
    """The squares, and what the model has, both in variances."""


def find_drift(values: Array, steps: Sequence[int] = (), better_by: float = BETTER_BY) -> Drift | None:
    """Return the drift of a series [nights], nan in a gap, beside its steps; None without a clear one.

    `steps` are the first nights of the new levels that were found in it. Noise is that around line and steps,
    with its AR(1).
    """
    nights = np.flatnonzero(np.isfinite(values))
    if len(nights) < SHORTEST_DRIFT:
        return None
    places = tuple(dict.fromkeys(int(np.searchsorted(nights, step)) for step in steps))
    observed = _cut(values[nights], _columns(nights, 0, len(nights) - 1, places))
    variance = _variance(observed, _columns(nights, 0, len(nights) - 1, places))
    model = _best(nights, observed, places, variance)
    observed = _cut(values[nights], _columns(nights, model.start, model.end, model.steps))
    columns = _columns(nights, model.start, model.end, model.steps)
    weights = np.linalg.lstsq(columns, observed, rcond=None)[0]
    residual = observed - columns @ weights
    error, size = _error(columns, residual), float(weights[1])
    if not error or abs(size) < REQUIRED_ERRORS * error:
        return None
    variance = float(residual @ residual) / len(nights) * _inflation(residual, columns.shape[1])
    left = float(residual @ residual)
    by_steps = _cost(_squares(observed, _levels(nights, places)), len(places), len(nights), variance)
    by_line = _cost(left, len(model.steps), len(nights), variance) + _hinges(model, len(nights))
    without_line = observed - np.delete(columns, 1, axis=1) @ np.delete(weights, 1)
    if by_steps < by_line or _by_two_steps(without_line) - left < better_by * variance:
        return None
    before = float(weights[0]) + sum(
        float(weight) for place, weight in zip(model.steps, weights[2:], strict=True) if place <= model.start
    )
    first, last = int(nights[model.start]), int(nights[model.end])
    return Drift(first, last, before, size, error, tuple(int(nights[place]) for place in model.steps))


def _best(nights: NDArray[np.int64], observed: Array, places: tuple[int, ...], variance: float) -> _Model:
    """Return the line of the lowest cost, with all steps or without those between its ends."""
    return min(_models(nights, observed, places, variance), key=lambda model: model.cost)


def _models(
    nights: NDArray[np.int64], observed: Array, places: tuple[int, ...], variance: float
) -> Iterator[_Model]:
    count = len(nights)
    ends = np.unique(np.linspace(0, count - 1, min(count, ENDS)).astype(np.int64))
    pairs = [(int(a), int(b)) for a in ends for b in ends if b - a >= SHORTEST_DRIFT - 1]
    by_steps: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for start, end in pairs:
        outside = tuple(place for place in places if not start < place <= end)
        for kept in {outside, places}:
            by_steps.setdefault(kept, []).append((start, end))
    for kept, lines in by_steps.items():
        basis = np.linalg.qr(_levels(nights, kept))[0]
        left = observed - basis @ (basis.T @ observed)
        ramps = np.stack([_line(nights, start, end) for start, end in lines])
        ramps = ramps - (ramps @ basis) @ basis.T
        norms = np.maximum((ramps * ramps).sum(axis=1), SMALLEST)
        squares = float(left @ left) - (ramps @ left) ** 2 / norms
        for (start, end), its_squares in zip(lines, squares.tolist(), strict=True):
            model = _Model(start, end, kept, its_squares, _cost(its_squares, len(kept), count, variance))
            yield _Model(start, end, kept, its_squares, model.cost + _hinges(model, count))


def _cost(squares: float, steps: int, count: int, variance: float) -> float:
    return squares / max(variance, SMALLEST) + STEP_PENALTY * math.log(count) * steps


def _hinges(model: _Model, count: int) -> float:
    return HINGE_PENALTY * ((model.start > 0) + (model.end < count - 1))


def _line(nights: NDArray[np.int64], start: int, end: int) -> Array:
    """Return a line that rises from 0 to 1 between two places, [values]."""
    share = (nights - nights[start]) / (nights[end] - nights[start])
    return np.asarray(np.clip(share, 0.0, 1.0))


def _levels(nights: NDArray[np.int64], places: Sequence[int]) -> Array:
    numbers = np.arange(len(nights))
    return np.column_stack([np.ones(len(nights)), *((numbers >= place) * 1.0 for place in places)])


def _columns(nights: NDArray[np.int64], start: int, end: int, places: Sequence[int]) -> Array:
    levels = _levels(nights, places)
    return np.column_stack([levels[:, 0], _line(nights, start, end), levels[:, 1:]])


def _squares(observed: Array, columns: Array) -> float:
    residual = observed - columns @ np.linalg.lstsq(columns, observed, rcond=None)[0]
    return float(residual @ residual)


def _variance(observed: Array, columns: Array) -> float:
    """Return the variance of a value, inflated by the correlation of neighbouring nights."""
    residual = observed - columns @ np.linalg.lstsq(columns, observed, rcond=None)[0]
    return float(residual @ residual) / len(observed) * _inflation(residual, columns.shape[1])


def _cut(values: Array, columns: Array) -> Array:
    """Return the values with residuals cut to CUT deviations."""
    observed = values
    for _ in range(2):
        fitted = columns @ np.linalg.lstsq(columns, observed, rcond=None)[0]
        scale = MAD_TO_DEVIATION * float(np.median(np.abs(observed - fitted)))
        observed = fitted + np.clip(observed - fitted, -CUT * scale, CUT * scale)
    return observed


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
    squares = max(float(residual @ residual), SMALLEST)
    correlation = float(residual[1:] @ residual[:-1]) / squares + used / len(residual)
    correlation = min(max(correlation, 0.0), MAX_CORRELATION)
    return ar1_inflation(correlation)
