"""Changes of level in finished series, with hindsight: which division into levels explains a series best.

Outliers are cut down to what noise could be, the best partition is found by least squares, noise and its
correlation are taken from what is left, and the partition is found again with a penalty in their units. A
series that a smooth curve explains as well as its steps has drifted, and has none. docs/detection.md has the
whole method.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import COVERAGE, ChangePoint
from history.stats.change_points.localization import STANDARD_ERRORS
from history.stats.change_points.optimal_partition import (
    Positions,
    Sums,
    best_partition,
    candidates,
    gain,
    levels,
    moved,
    neighbours,
    sums_of,
)
from history.stats.change_points.parameters import PARTITION, PartitionParameters
from history.stats.estimators import ar1_inflation

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


SHORTEST = 20
"""Values that a series needs before anything is claimed."""

TAILED = 0.05
"""How far below that of Gaussian noise a Geary ratio shows heavy tails; what is nearer lies in between."""

CUT = 2.5
"""Standard deviations of Gaussian noise to which residuals are cut."""

CUT_TAILED = 2.0
"""The same in noise with heavy tails or outliers, and before it is known."""

MAX_CORRELATION = 0.8

SPREAD = 60
"""Values to either side of a change within which its range is looked for."""

BLOCK = 64
"""Series that are looked at together: their arrays fit into the processor's cache."""


@dataclass(frozen=True)
class SeriesNoise:
    """The noise of each series; all arrays are [series]."""

    deviation: Array
    """The standard deviation of a value."""
    inflation: Array
    """The factor by which correlation increases the variance of a mean."""
    required: Array
    """The standard errors by which levels must differ."""

    @property
    def variance(self) -> Array:
        """The variance of a value, inflated by correlation for use in means."""
        return self.deviation**2 * self.inflation

    @property
    def penalty(self) -> Array:
        """The penalty of a change, in the squared units of the values."""
        return self.required**2 * self.variance


def find_changes(values: Array) -> tuple[ChangePoint, ...]:
    """Return the changes in a finished series, [nights] with nan for a gap; none below SHORTEST values."""
    return find_changes_many(np.asarray(values, dtype=np.float64)[None])[0]


def find_changes_many(
    matrix: Array, parameters: PartitionParameters = PARTITION
) -> list[tuple[ChangePoint, ...]]:
    """Return the changes in each row of `matrix` [series, nights]; the same as find_changes of each."""
    found: list[tuple[ChangePoint, ...]] = []
    for start in range(0, len(matrix), BLOCK):
        found += _of_block(np.asarray(matrix[start : start + BLOCK], dtype=np.float64), parameters)
    return found


def _of_block(matrix: Array, parameters: PartitionParameters) -> list[tuple[ChangePoint, ...]]:
    if matrix.shape[1] < SHORTEST:
        return [()] * len(matrix)
    values, counts, nights = _packed(matrix)
    deviation = _first_deviation(values, counts)
    around = _running_median(values)
    cut = deviation[:, None] * CUT_TAILED * 1.25
    sums = sums_of(np.clip(values, around - cut, around + cut), counts)
    tried = candidates(sums, deviation)
    positions = _trimmed(best_partition(tried, sums, (parameters.required_tailed * deviation) ** 2), counts)
    for round_ in range(2):
        cleaned, noise = _cleaned(values, positions, sums, parameters)
        sums = sums_of(cleaned, counts)
        tried = moved(positions, sums) if round_ else tried
        positions = _trimmed(best_partition(tried, sums, noise.penalty), counts)
    positions = np.where((counts < SHORTEST)[:, None], counts[:, None], positions)
    positions = steps_beyond_drift(cleaned, positions, counts, nights, noise.variance, parameters)
    positions = _without_equal_levels(positions, sums, noise)
    found: list[list[ChangePoint]] = [[] for _ in matrix]
    for row, change in _described(positions, sums, noise, nights):
        found[row].append(change)
    return [tuple(changes) for changes in found]


def _packed(matrix: Array) -> tuple[Array, Positions, Positions]:
    """Return the values without gaps, padded with the last one, their number, and the night of each."""
    there = np.isfinite(matrix)
    counts = there.sum(axis=1)
    if there.all():
        return matrix, counts, np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
    order = np.argsort(~there, axis=1, kind="stable")
    packed = np.take_along_axis(matrix, order, 1)
    last = np.take_along_axis(packed, np.maximum(counts - 1, 0)[:, None], 1)
    filled = np.where(np.arange(matrix.shape[1]) < counts[:, None], packed, np.nan_to_num(last))
    return filled, counts, order


def _first_deviation(values: Array, counts: Positions) -> Array:
    """Return the noise's deviation from differences of neighbours, which steps and drift hardly touch."""
    differences = np.abs(np.diff(values, axis=1))
    # What fills a series up has no differences: the median is taken among as many as there are.
    ranked = np.sort(differences, axis=1)
    middle = differences.shape[1] - np.maximum(counts - 1, 1) + np.maximum(counts - 1, 1) // 2
    median = np.take_along_axis(ranked, np.minimum(middle, ranked.shape[1] - 1)[:, None], 1)[:, 0]
    return np.maximum(median / (0.6745 * math.sqrt(2)), _smallest(values))


def _smallest(values: Array) -> Array:
    """Return a deviation that is as good as none, so that equal values are divided by something."""
    smallest = np.finfo(np.float64)
    return np.asarray(smallest.eps * np.maximum(np.abs(values).max(axis=1), smallest.tiny * 1e20))


def _running_median(values: Array) -> Array:
    """Return the median of each value and two to either side; at the ends they are repeated from inside."""
    padded = np.concatenate([values[:, 1:2], values[:, :1], values, values[:, -1:], values[:, -2:-1]], axis=1)
    a, b, c, d, e = (padded[:, i : i + values.shape[1]] for i in range(5))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray(np.maximum(np.minimum(low, high), np.minimum(e, np.maximum(low, high))))


def _trimmed(positions: Positions, counts: Positions) -> Positions:
    """Return the array without the columns in which no series has a position, except one."""
    used = int((positions < counts[:, None]).sum(axis=1).max(initial=0))
    return positions[:, : max(used, 1)]


def _cleaned(
    values: Array, positions: Positions, sums: Sums, parameters: PartitionParameters
) -> tuple[Array, SeriesNoise]:
    """Return the values with residuals cut to what noise could be, and the noise that then is left."""
    counts = sums.counts
    means, index = levels(positions, sums)
    fitted = np.take_along_axis(means, index, 1)
    there = np.arange(values.shape[1]) < counts[:, None]
    residual = np.where(there, values - fitted, 0.0)
    used = 1 + (positions < counts[:, None]).sum(axis=1)
    free = np.maximum(counts - used, 1)
    mean = np.abs(residual).sum(axis=1) / free * math.sqrt(math.pi / 2)
    tails = _tails(mean, np.sqrt((residual**2).sum(axis=1) / free), _smallest(values))
    cut = ((CUT + (CUT_TAILED - CUT) * tails) * np.maximum(mean, _smallest(values)))[:, None]
    residual = np.clip(residual, -cut, cut)
    squares = (residual**2).sum(axis=1)
    deviation = np.maximum(np.sqrt(squares / free), _smallest(values))
    products = (residual[:, 1:] * residual[:, :-1]).sum(axis=1)
    # Residuals around estimated levels correlate by minus one over the nights of a level.
    correlation = products / np.maximum(
        squares, deviation**2 + np.finfo(np.float64).tiny
    ) + used / np.maximum(counts, 1)
    inflation = _inflation(correlation, np.maximum(counts, 1))
    required = parameters.required + (parameters.required_tailed - parameters.required) * tails
    return fitted + residual, SeriesNoise(deviation, inflation, required)


def _tails(mean: Array, root: Array, smallest: Array) -> Array:
    """Return how heavy the tails of residuals are that were not cut yet: 0, as Gaussian ones, to 1.

    `mean` is what their mean size says of Gaussian noise's deviation, `root` what their mean square says.
    """
    lacking = math.sqrt(2 / math.pi) * (1 - mean / np.maximum(root, smallest))
    return np.clip(lacking / TAILED, 0, 1)


def _inflation(correlation: Array, counts: Positions) -> Array:
    """Return ar1_inflation, with no correlation where it may be chance, else with half an error more."""
    variance = 1 / counts
    unbiased = np.clip(correlation, 1e-6, 0.9)
    doubt = 2.5 * variance / unbiased**2
    believed = np.minimum((unbiased + 0.5 * np.sqrt(variance)) / (1 + doubt**2), MAX_CORRELATION)
    return np.asarray(ar1_inflation(believed))


def _without_equal_levels(positions: Positions, sums: Sums, noise: SeriesNoise) -> Positions:
    """Return the positions without those between levels that can be equal, the weakest first.

    What a drift explains was left out, so that levels lie beside each other that were not compared before.
    """
    while True:
        start, end = neighbours(positions, sums.counts)
        is_real = positions < sums.counts[:, None]
        variance = np.where(is_real, noise.variance[:, None], 1.0)  # a series without values has none
        strength = np.where(is_real, gain(start, positions, end, sums) / variance, np.inf)
        weakest = strength.argmin(axis=1)
        rows = np.flatnonzero(strength[np.arange(len(positions)), weakest] <= STANDARD_ERRORS**2)
        if not len(rows):
            return _trimmed(positions, sums.counts)
        positions = positions.copy()
        positions[rows, weakest[rows]] = sums.counts[rows]
        positions = np.sort(positions, axis=1)


def _described(
    positions: Positions, sums: Sums, noise: SeriesNoise, nights: Positions
) -> Iterator[tuple[int, ChangePoint]]:
    """Each change with its row, in order: its range from the likelihood of the positions around it."""
    start, end = neighbours(positions, sums.counts)
    rows, columns = np.nonzero(positions < sums.counts[:, None])
    if not len(rows):
        return
    start, end = start[rows, columns][:, None], end[rows, columns][:, None]
    position = positions[rows, columns][:, None]
    of_rows = Sums(sums.sums[rows], sums.counts[rows])
    tried = np.clip(position + np.arange(-SPREAD, SPREAD + 1), start + 1, end - 1)
    fits = gain(start, tried, end, of_rows) / noise.variance[rows, None]
    fits[:, 1:][tried[:, 1:] == tried[:, :-1]] = -np.inf  # what lies beyond a neighbour counts once
    strength = np.maximum(gain(start, position, end, of_rows)[:, 0] / noise.variance[rows], 0)
    weights = np.cumsum(np.exp((fits - fits.max(axis=1, keepdims=True)) / 2), axis=1)
    tail = (1 - COVERAGE) / 2 * weights[:, -1:]
    lowest = np.minimum(np.take_along_axis(tried, (weights < tail).sum(axis=1)[:, None], 1), position)
    highest = np.take_along_axis(tried, (weights < weights[:, -1:] - tail).sum(axis=1)[:, None], 1)
    before = of_rows.between(start, position) / (position - start)
    after = of_rows.between(position, end) / (end - position)
    errors = np.sqrt(noise.variance[rows, None] * (1 / (position - start) + 1 / (end - position)))
    size, margin = after - before, STANDARD_ERRORS * errors
    chance = [math.erfc(math.sqrt(score / 2)) for score in strength.tolist()]
    confidence = np.maximum(1 - sums.counts[rows] * np.array(chance), 0.0)[:, None]
    table = np.concatenate([before, after, size - margin, size + margin, confidence], axis=1)
    where = np.concatenate([position, lowest - 1, np.maximum(highest, position)], axis=1)
    where = np.take_along_axis(nights[rows], where, 1)
    found = zip(rows.tolist(), where.tolist(), table.tolist(), strict=True)
    for row, (index, first, last), (old, new, low, high, sure) in found:
        yield row, ChangePoint(index, first, last, old, new, low, high, sure, None)
