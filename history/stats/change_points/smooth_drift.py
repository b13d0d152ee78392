"""Which steps of finished series are steps, and which only follow a smooth drift.

The steps that were found are compared with smooth curves, polynomials of up to DEGREES, and with such curves
plus some of the steps, by squares of residuals and a penalty for whatever a model has. A staircase through a
drift loses to the curve, while a step that no curve follows stays, alone or on top of the drift. Arrays are
as in optimal_partition.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.optimal_partition import Positions
from history.stats.change_points.parameters import PARTITION, PartitionParameters

Array = NDArray[np.float64]
Chosen = NDArray[np.bool_]

DEGREES = 4
"""The highest degree of a curve."""

NEGLIGIBLE = 1e-9
"""A share of a Gram matrix that is added to its diagonal, because a short series may not hold all columns."""


@dataclass(frozen=True)
class Gram:
    """The inner products of the columns of a model, and with the values, for each series.

    The columns are the polynomials by degree, then the steps: [series, column, column], [series, column].
    """

    columns: Array
    values: Array
    squares: Array
    """The squares of the values themselves, [series]."""


def steps_beyond_drift(
    values: Array,
    positions: Positions,
    counts: Positions,
    nights: Positions,
    variance: Array,
    parameters: PartitionParameters = PARTITION,
) -> Positions:
    """Return the positions without those that a smooth drift explains.

    `values`, packed, are without outliers; `nights` says when each was measured, and `variance` [series] is
    that of a value, inflated by correlation.
    """
    rows = np.flatnonzero(positions[:, 0] < counts)
    if not len(rows):
        return positions
    found = positions[rows] < counts[rows, None]
    gram = gram_of(values[rows], positions[rows], counts[rows], nights[rows])
    kept = _chosen(gram, found, counts[rows], variance[rows], parameters)
    result = positions.copy()
    result[rows] = np.sort(np.where(kept, positions[rows], counts[rows, None]), axis=1)
    return result


def gram_of(values: Array, positions: Positions, counts: Positions, nights: Positions) -> Gram:
    """Return the inner products for series of at least two values; the arguments are those above."""
    there = np.arange(values.shape[1]) < counts[:, None]
    centred = np.where(there, values - (there * values).sum(axis=1, keepdims=True) / counts[:, None], 0.0)
    last = np.take_along_axis(nights, counts[:, None] - 1, 1)
    time = np.where(there, 2.0 * (nights - nights[:, :1]) / (last - nights[:, :1]) - 1, 0.0)
    curves = np.polynomial.legendre.legvander(time, DEGREES) * there[:, :, None]
    # What is at a position or later is what the column of its step adds up.
    later = np.zeros((len(values), values.shape[1] + 1, DEGREES + 2))
    weighed = np.concatenate([curves, centred[:, :, None]], axis=2)
    later[:, :-1] = np.cumsum(weighed[:, ::-1], axis=1)[:, ::-1]
    steps = np.take_along_axis(later, positions[:, :, None], 1)
    number = DEGREES + 1 + positions.shape[1]
    columns = np.empty((len(values), number, number))
    columns[:, : DEGREES + 1, : DEGREES + 1] = curves.transpose(0, 2, 1) @ curves
    columns[:, DEGREES + 1 :, : DEGREES + 1] = steps[:, :, : DEGREES + 1]
    columns[:, : DEGREES + 1, DEGREES + 1 :] = steps[:, :, : DEGREES + 1].transpose(0, 2, 1)
    both = np.maximum(positions[:, :, None], positions[:, None, :])
    columns[:, DEGREES + 1 :, DEGREES + 1 :] = counts[:, None, None] - both
    by_curves = (curves.transpose(0, 2, 1) @ centred[:, :, None])[:, :, 0]
    products = np.concatenate([by_curves, steps[:, :, -1]], axis=1)
    return Gram(columns, products, (centred**2).sum(axis=1))


def _chosen(
    gram: Gram, found: Chosen, counts: Positions, variance: Array, parameters: PartitionParameters
) -> Chosen:
    """Return which steps of `found` [series, position] remain in the model of the lowest cost."""
    step_cost = parameters.step_penalty * np.log(counts)
    by_steps = (
        Model(gram, 0, found).left_over()[0] / variance
        + parameters.steps_penalty
        + step_cost * found.sum(axis=1)
    )
    by_curve = np.full(len(found), np.inf)
    by_both, beside = np.full(len(found), np.inf), np.zeros_like(found)
    for degree in range(1, DEGREES + 1):
        left, model = found.copy(), Model(gram, degree, found)
        while True:
            squares, loss = model.left_over()
            steps = left.sum(axis=1)
            cost = squares / variance + parameters.degree_penalty * (degree - 1)
            by_curve = np.where(steps == 0, np.minimum(by_curve, cost), by_curve)
            cost = np.where(
                steps > 0,
                cost + parameters.steps_penalty + parameters.mixed_penalty + step_cost * steps,
                np.inf,
            )
            beside = np.where((cost < by_both)[:, None], left, beside)
            by_both = np.minimum(by_both, cost)
            if not steps.any():
                break
            weakest = np.where(left, loss, np.inf).argmin(axis=1)
            left[np.arange(len(left)), weakest] = False
            model.leave_out(weakest)
    mixed = by_both < np.minimum(by_steps, by_curve)
    alone = (by_steps < by_curve) & ~mixed
    return np.where(mixed[:, None], beside, found & alone[:, None])


class Model:
    """A curve with steps that is fitted to each series, from which one step after the other can be left out.

    Leaving one out updates the inverse (Sherman & Morrison 1950), which takes the square of the steps of a
    series instead of their third power: long series have hundreds.
    """

    def __init__(self, gram: Gram, degree: int, steps: Chosen) -> None:
        """`steps` are [series, position]."""
        used = np.concatenate([np.tile(np.arange(DEGREES + 1) <= degree, (len(steps), 1)), steps], axis=1)
        size = np.einsum("sii->si", gram.columns)
        columns = np.where(used[:, :, None] & used[:, None, :], gram.columns, 0.0)
        np.einsum("sii->si", columns)[:] += np.where(used, NEGLIGIBLE * size, 1.0)
        self._inverse = np.linalg.inv(columns)
        self._products = np.where(used, gram.values, 0.0)
        self._squares = gram.squares

    def left_over(self) -> tuple[Array, Array]:
        """Return the squares [series] that the model leaves, and what each step takes.

        The latter, [series, position], is by how much the squares would grow without it.
        """
        weights = (self._inverse @ self._products[:, :, None])[:, :, 0]
        squares = self._squares - (weights * self._products).sum(axis=1)
        loss = weights**2 / np.einsum("sii->si", self._inverse)
        return squares, loss[:, DEGREES + 1 :]

    def leave_out(self, positions: Positions) -> None:
        """Leave the step at a position out of each series; one that is no longer there changes nothing."""
        rows, column = np.arange(len(positions)), DEGREES + 1 + positions
        products = self._inverse[rows, :, column]
        own = products[rows, column]
        self._inverse -= products[:, :, None] * (products / own[:, None])[:, None, :]
        self._inverse[rows, column, :] = self._inverse[rows, :, column] = 0.0
        self._inverse[rows, column, column] = 1.0
        self._products[rows, column] = 0.0
