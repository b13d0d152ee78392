"""What the rounds say about where and how metrics changed: probabilities of every hypothesis.

Hypotheses: no change at all; one step, which commit k brings; two steps with a level of their own between;
a slope from good to bad. Levels, noise and the wobble of each position are integrated out on the grids of
levels.py. Commits between two neighbouring measured positions all explain the rounds alike, so that what is
computed are cells: cell c lies between the measured positions c and c + 1, good being the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runners.bisect.levels import SCALES, Array, Grid, Levels, blurred, scale_prior
from runners.bisect.terms import Rules

PRIOR_CHANGE = 0.5
PRIOR_TWO_STEPS = 0.1
PRIOR_SLOPE = 0.03
"""Of those with a change."""

SHAPES = (0.6, 1.0, 1.6)
"""Of slopes: the level at a share x of the way is the last level times x to this power."""

SLOPE_SPREAD = 0.08
"""How far commits on a slope lie off its line, as a share of the whole change."""

LEAST_SCALE_WEIGHT = 1e-3
"""Scales of noise that are less likely than this, relative to the likeliest, are left out."""

NEVER = -1e30


@dataclass(frozen=True)
class Priors:
    """Log-probabilities of levels on the grid (levels,); NEVER where there can be none."""

    before: Array
    """Of commits before the change: good's own wobble."""

    after: Array
    """Of bad, in the direction that is asked for."""

    opposite: Array
    """Of bad in the other direction; NEVER everywhere when either was asked for."""


def priors(grid: Grid, rules: Rules) -> Priors:
    """Levels after a change are log-uniform from the threshold to the end of the grid."""
    values = grid.values
    before = -0.5 * (values / grid.wobble) ** 2
    before = np.where(np.abs(values) <= 5 * grid.wobble, before, NEVER)
    size = np.abs(values)
    smallest = np.log1p(rules.threshold) - grid.spacing / 2
    change = np.where(size >= smallest, -np.log(np.maximum(size, grid.spacing)), NEVER)
    asked = np.ones(len(values), bool) if rules.sign == 0 else np.sign(values) == rules.sign
    return Priors(
        normalised(before),
        normalised(np.where(asked, change, NEVER)),
        np.full(len(values), NEVER) if rules.sign == 0 else normalised(np.where(asked, NEVER, change)),
    )


def normalised(logs: Array) -> Array:
    """Log-probabilities whose sum is 1."""
    return np.asarray(logs - total(logs))


def total(logs: Array, axis: int | None = None) -> Array:
    """The logarithm of the sum of exp(logs)."""
    highest = logs.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(logs - highest).sum(axis=axis, keepdims=True)) + highest
    return np.asarray(summed.reshape(()) if axis is None else np.squeeze(summed, axis))


@dataclass(frozen=True)
class Belief:
    """Probabilities of all hypotheses after some rounds. c is the number of measured positions."""

    length: int
    measured: tuple[int, ...]
    """(c + 1,) ascending, good and bad included."""

    single: Array
    """(c,): that there is one step, in that cell."""

    pairs: Array
    """(c, c): that there are two, the first in the cell of the row, the second in that of the column."""

    between: Array
    """(c, c): the level between these two steps, estimated."""

    none: float
    slope: float

    after: float
    """The level of commits after one step, estimated."""

    scale: float
    """Of the noise, estimated."""

    @property
    def two_steps(self) -> float:
        """That there are two."""
        return float(self.pairs.sum())


def believe(levels: Levels, rules: Rules, length: int) -> Belief:
    """Probabilities after the rounds in `levels`, among which bad has some."""
    evidence = Evidence(levels, rules, length)
    return evidence.belief()


class Evidence:
    """The sums over levels and noise behind a Belief; scales of noise that cannot be are left out."""

    def __init__(self, levels: Levels, rules: Rules, length: int) -> None:
        self.levels, self.rules, self.length = levels, rules, length
        self.grid = levels.grid
        self.priors = priors(self.grid, rules)
        self.measured = (0, *levels.positions)
        self.shares = np.diff(self.measured) / length
        logs = np.stack([levels.likelihood(each) for each in levels.positions])
        single = self._single(logs, np.arange(len(SCALES)))
        likely = total(single, axis=0)
        self.scales = np.flatnonzero(likely >= likely.max() + np.log(LEAST_SCALE_WEIGHT))
        self.logs = logs[:, self.scales]
        self.single = single[:, self.scales]

    def _single(self, logs: Array, scales: Sequence[int] | Array) -> Array:
        """(cells, scales): log-weights of one step in each cell."""
        self.before, self.after = self.sides(logs)
        weights = np.log(self.shares)[:, None] + self.before[:-1] + self.after[:-1]
        alone = np.log(PRIOR_CHANGE * (1 - PRIOR_TWO_STEPS - PRIOR_SLOPE))
        return np.asarray(weights + scale_prior()[scales] + alone)

    def sides(self, logs: Array) -> tuple[Array, Array]:
        """(c + 1, scales) log-evidence that the first i measured positions are before, and the others after."""
        near = self.priors.before > NEVER / 2
        far = self.priors.after > NEVER / 2
        return (
            total(forward(logs[:, :, near]) + self.priors.before[near], axis=2),
            total(backward(logs[:, :, far]) + self.priors.after[far], axis=2),
        )

    def belief(self) -> Belief:
        """All of it, normalised."""
        self.before, self.after = self.before[:, self.scales], self.after[:, self.scales]
        prior = scale_prior()[self.scales]
        last = self._last_level()
        none = np.log(1 - PRIOR_CHANGE) + self.before[-1] + prior
        slope = np.log(PRIOR_CHANGE * PRIOR_SLOPE) + self._slope(abs(last)) + prior
        pairs, between = self._pairs(last)
        pairs = pairs + prior + np.log(PRIOR_CHANGE * PRIOR_TWO_STEPS)
        everything = np.concatenate([self.single.ravel(), pairs.ravel(), none, slope])
        whole = total(everything)
        scales = total(self.single, axis=0)
        return Belief(
            self.length,
            self.measured,
            np.exp(total(self.single, axis=1) - whole),
            np.exp(total(pairs, axis=2) - whole),
            between,
            float(np.exp(total(none) - whole)),
            float(np.exp(total(slope) - whole)),
            last,
            float(np.exp(np.exp(scales - total(scales)) @ np.log(SCALES[self.scales]))),
        )

    def _last_level(self) -> float:
        """The mean of the level after the likeliest single step."""
        cell, scale = np.unravel_index(int(np.argmax(self.single)), self.single.shape)
        logs = self.logs[cell:, scale].sum(axis=0) + self.priors.after
        weights = np.exp(logs - logs.max())
        return float(weights @ self.grid.values / weights.sum())

    def _slope(self, size: float) -> Array:
        """(scales,) log-evidence of a slope, averaged over its shapes."""
        logs = blurred(self.logs, self.levels.doublings, max(SLOPE_SPREAD * size, self.grid.wobble))
        far = np.flatnonzero(self.priors.after > NEVER / 2)
        shares = np.array(self.measured[1:]) / self.length
        shapes = []
        for shape in SHAPES:
            at = self.grid.index(self.grid.values[None, far] * shares[:, None] ** shape)
            along = np.take_along_axis(logs, at[:, None, :], axis=2).sum(axis=0)
            shapes.append(total(along + self.priors.after[far], axis=1))
        return np.asarray(total(np.stack(shapes), axis=0) - np.log(len(SHAPES)))

    def _pairs(self, last: float) -> tuple[Array, Array]:
        """(c, c, scales) log-evidence of two steps with their prior, and (c, c) the level between them.

        The level between has to differ from both others by the threshold: else it would be one step.
        """
        cells = len(self.shares)
        values, logs = self.grid.values[::2], self.logs[:, :, ::2]
        prior = self._prior_between(values, last)
        weights = np.full((cells, cells, len(self.scales)), NEVER)
        between = np.full((cells, cells), last / 2)
        for first in range(cells):
            runs = forward(logs[first : cells - 1]) + prior
            highest = runs.max(axis=2, keepdims=True)
            densities = np.exp(runs - highest)
            sums = densities.sum(axis=2)
            evidence = np.log(sums) + highest[:, :, 0]
            weights[first, first:] = evidence + self.before[first] + self.after[first:cells]
            best = np.argmax(weights[first, first:], axis=1)
            rows = np.arange(cells - first)
            means = densities[rows, best] @ values / sums[rows, best]
            between[first, first + 1 :] = means[1:]
        return weights + self._prior_pairs()[:, :, None], between

    def _prior_between(self, values: Array, last: float) -> Array:
        least = np.log1p(self.rules.threshold)
        reach = max(abs(last), 2 * self.rules.threshold)
        allowed = (np.abs(values) >= least) & (np.abs(values - last) >= least)
        return normalised(np.where(allowed, -np.abs(values - last / 2) / reach, NEVER))

    def _prior_pairs(self) -> Array:
        """(c, c): every pair of commits is as likely."""
        sizes = np.diff(self.measured).astype(float)
        pairs = np.triu(np.outer(sizes, sizes), 1) + np.diag(sizes * (sizes - 1) / 2)
        possible = max(self.length * (self.length - 1) / 2, 1.0)
        return np.log(np.maximum(pairs / possible, np.exp(-700.0)))


def forward(logs: Array) -> Array:
    """(c + 1, ...): sums of the first 0, 1, ... c."""
    return np.concatenate([np.zeros((1, *logs.shape[1:])), np.cumsum(logs, axis=0)])


def backward(logs: Array) -> Array:
    """(c + 1, ...): sums of the last c, c - 1, ... 0."""
    return np.concatenate([np.cumsum(logs[::-1], axis=0)[::-1], np.zeros((1, *logs.shape[1:]))])
