"""The posterior probability of every hypothesis about where and how the metric changed.

Hypotheses: no change at all; one step at commit k; two steps with a level of their own between them; a slope
from good to bad. Two steps of which one is much smaller count as one, where the larger one lies. Levels,
noise and the wobble of positions are integrated out on the grids of level_likelihood.py. All commits between
two neighbouring measured positions explain the rounds equally well, so that probabilities are computed for
cells: cell c lies between the measured positions c and c + 1, good being the first.
"""

from dataclasses import dataclass

import numpy as np

from runners.bisect.domain.rules import Rules
from runners.bisect.inference.commit_prior import CommitPrior
from runners.bisect.inference.level_likelihood import Array, Grid, Levels, total

PRIOR_CHANGE = 0.5
PRIOR_TWO_STEPS = 0.03
PRIOR_SLOPE = 0.01
"""The prior probability of any change, and of two steps and a slope given a change."""

SHAPES = (0.6, 1.0, 1.6)
"""The exponents of slopes: the level at a share x of the way is the last level times x to this power."""

SLOPE_SPREAD = 0.05
"""The deviation of commits on a slope from its line, as a share of the whole change."""

LESSER = 0.25
"""A step of at most this share of the other one, in logarithms, does not delay the verdict: a long range
nearly always has one, and locating it takes many times the rounds."""

NEVER = -1e30


@dataclass(frozen=True)
class LevelPriors:
    """Log-probabilities of the levels of the grid, (levels,); NEVER for impossible levels."""

    before: Array
    """For commits before the change: the wobble of good."""

    after: Array
    """For bad, in the direction that is searched for."""

    opposite: Array
    """For bad in the other direction; NEVER everywhere when the direction is either."""


def priors(grid: Grid, rules: Rules) -> LevelPriors:
    """Return the priors: levels after a change are log-uniform from the threshold to the end of the grid."""
    values = grid.values
    before = -0.5 * (values / grid.wobble) ** 2
    before = np.where(np.abs(values) <= 5 * grid.wobble, before, NEVER)
    size = np.abs(values)
    smallest = np.log1p(rules.threshold) - grid.spacing / 2
    change = np.where(size >= smallest, -np.log(np.maximum(size, grid.spacing)), NEVER)
    asked = np.ones(len(values), bool) if rules.sign == 0 else np.sign(values) == rules.sign
    return LevelPriors(
        normalised(before),
        normalised(np.where(asked, change, NEVER)),
        np.full(len(values), NEVER) if rules.sign == 0 else normalised(np.where(asked, NEVER, change)),
    )


def normalised(logs: Array) -> Array:
    """Return log-probabilities normalised to a sum of 1."""
    return np.asarray(logs - total(logs))


@dataclass(frozen=True)
class Belief:
    """The probabilities of all hypotheses after some rounds; c is the number of measured positions."""

    length: int
    prior: CommitPrior
    measured: tuple[int, ...]
    """The measured positions, (c + 1,) ascending, with good and bad."""

    single: Array
    """(c,): one step in that cell, possibly with a much smaller one elsewhere."""

    lesser: Array
    """(c, c): the step in the cell of the row, and a much smaller one in the cell of the column."""

    pairs: Array
    """(c, c): two steps, none much smaller than the other, the first in the cell of the row, the second in
    the cell of the column."""

    between: Array
    """(c, c): the estimated level between these two steps."""

    none: float
    slope: float

    after: float
    """The estimated level after a single step."""

    after_two: float
    """The estimated level after the second of two steps."""

    end_of_slope: float
    """The estimated level of bad at the end of a slope."""

    scale: float
    """The estimated scale of the noise."""

    @property
    def two_steps(self) -> float:
        """The probability of two steps, neither much smaller than the other."""
        return float(self.pairs.sum())


def believe(levels: Levels, rules: Rules, prior: CommitPrior) -> Belief:
    """Return the probabilities after the rounds in `levels`; bad counts as measured even without rounds."""
    return Evidence(levels, rules, prior).belief()


class Evidence:
    """The sums over levels and noise from which a Belief is computed."""

    def __init__(self, levels: Levels, rules: Rules, prior: CommitPrior) -> None:
        self.levels, self.rules, self.commits, self.length = levels, rules, prior, prior.length
        self.grid = levels.grid
        self.priors = priors(self.grid, rules)
        self.measured = (0, *sorted({*levels.positions, self.length}))
        self.logs = np.stack([levels.likelihood(position) for position in self.measured[1:]])
        near = self.priors.before > NEVER / 2
        far = self.priors.after > NEVER / 2
        self.before = total(forward(self.logs[:, :, near]) + self.priors.before[near], axis=2)
        """(c + 1, scales) log-evidence that the first 0, 1, ... c measured positions are before the
        change."""
        self.after = total(backward(self.logs[:, :, far]) + self.priors.after[far], axis=2)
        """(c + 1, scales) log-evidence that all but these are after the change."""

    def belief(self) -> Belief:
        """Return the normalised probabilities of all hypotheses."""
        prior = self.levels.scale_prior
        alone = 1 - PRIOR_TWO_STEPS - PRIOR_SLOPE
        shares = self.commits.shares(self.measured)
        single = np.log(PRIOR_CHANGE * alone * shares)[:, None] + self.before[:-1] + self.after[:-1] + prior
        last = self._last_level(single)
        none = np.log(1 - PRIOR_CHANGE) + self.before[-1] + prior
        slope, end = self._slope(abs(last))
        slope = np.log(PRIOR_CHANGE * PRIOR_SLOPE) + slope + prior
        pairs, between = self._pairs(last)
        pairs = pairs + prior + np.log(PRIOR_CHANGE * PRIOR_TWO_STEPS)
        second, scale = np.unravel_index(int(np.argmax(pairs)), pairs.shape)[1:]
        whole = total(np.concatenate([single.ravel(), pairs.ravel(), none, slope]))
        scales = total(single, axis=0)
        two = np.exp(total(pairs, axis=2) - whole)
        lesser = self._lesser(two, between, int(scale))
        return Belief(
            self.length,
            self.commits,
            self.measured,
            np.exp(total(single, axis=1) - whole) + lesser.sum(axis=1),
            lesser,
            two - np.triu(lesser + lesser.T, 1),
            between,
            float(np.exp(total(none) - whole)),
            float(np.exp(total(slope) - whole)),
            last,
            self._level_after(int(second), int(scale)),
            end,
            float(np.exp(np.exp(scales - total(scales)) @ np.log(self.levels.scales))),
        )

    def _last_level(self, single: Array) -> float:
        """Return the mean of the level after the likeliest single step."""
        cell, scale = np.unravel_index(int(np.argmax(single)), single.shape)
        return self._level_after(int(cell), int(scale))

    def _level_after(self, cell: int, scale: int) -> float:
        """Return the mean of the level that the measured positions from the end of this cell on share."""
        logs = self.logs[cell:, scale].sum(axis=0) + self.priors.after
        weights = np.exp(logs - logs.max())
        return float(weights @ self.grid.values / weights.sum())

    def _lesser(self, two: Array, between: Array, scale: int) -> Array:
        """Return (c, c) probabilities of two steps; the one in the cell of the column is much smaller."""
        ends = np.array([self._level_after(cell, scale) for cell in range(len(two))])
        first, second = np.abs(between), np.abs(ends[None, :] - between)
        apart = np.triu(two, 1)
        behind = np.where(second <= LESSER * first, apart, 0.0)
        ahead = np.where((first <= LESSER * second) & (behind == 0), apart, 0.0)
        return np.asarray(behind + ahead.T)

    def _slope(self, size: float) -> tuple[Array, float]:
        """Return (scales,) log-evidence of a slope, averaged over shapes, and the mean level at its end."""
        deviation = self.grid.spacing * 2.0 ** np.ceil(np.log2(SLOPE_SPREAD * size / self.grid.spacing))
        positions = self.measured[1:]
        logs = [self.levels.likelihood(position, float(deviation)) for position in positions]
        far = np.flatnonzero(self.priors.after > NEVER / 2)
        shares = np.array(positions) / self.length
        shapes = []
        for shape in SHAPES:
            at = self.grid.index(self.grid.values[None, far] * shares[:, None] ** shape)
            along = sum(log[:, where] for log, where in zip(logs, at, strict=True))
            shapes.append(along + self.priors.after[far])
        everything = np.stack(shapes)
        densities = np.exp(everything - everything.max()).sum(axis=(0, 1))
        end = float(densities @ self.grid.values[far] / densities.sum())
        return total(total(everything, axis=2), axis=0) - np.log(len(SHAPES)), end

    def _pairs(self, last: float) -> tuple[Array, Array]:
        """Return (c, c, scales) log-evidence of two steps, prior included, and (c, c) the level between them.

        The level between has to differ from both others by the threshold; otherwise it would be one step.
        """
        cells = len(self.logs)
        values, logs = self.grid.values[::2], self.logs[:, :, ::2]
        prior = self._prior_between(values, last)
        weights = np.full((cells, cells, self.logs.shape[1]), NEVER)
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
        """Return (c, c) log-probabilities: every pair of commits is equally likely."""
        sizes = np.diff(self.measured).astype(float)
        pairs = np.triu(np.outer(sizes, sizes), 1) + np.diag(sizes * (sizes - 1) / 2)
        possible = max(self.length * (self.length - 1) / 2, 1.0)
        return np.log(np.maximum(pairs / possible, np.exp(-700.0)))


def forward(logs: Array) -> Array:
    """Return (c + 1, ...): the sums of the first 0, 1, ... c."""
    return np.concatenate([np.zeros((1, *logs.shape[1:])), np.cumsum(logs, axis=0)])


def backward(logs: Array) -> Array:
    """Return (c + 1, ...): the sums of the last c, c - 1, ... 0."""
    return np.concatenate([np.cumsum(logs[::-1], axis=0)[::-1], np.zeros((1, *logs.shape[1:]))])
