"""The posterior probability of every hypothesis about where and how the metric changed.

Hypotheses: no change at all; one step at commit k; several steps with levels of their own between them; a
slope from good to bad; levels that vary all along, which none of these fits; ratios that move while the
search goes on, whatever the commit. What counts is which steps make bad differ from good: see
explanations.py. Levels, noise and the wobble of positions are integrated out on the grids of
level_likelihood.py. All commits between two neighbouring measured positions explain the rounds
equally well, so that probabilities are computed for cells: cell c lies between the measured positions c and
c + 1, good being the first.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from runners.bisect.domain.rules import Rules
from runners.bisect.inference.commit_prior import CommitPrior
from runners.bisect.inference.explanations import MAX_STEPS, RunEvidence, StepExplanation, Weighed, explain
from runners.bisect.inference.level_likelihood import NEVER, Array, Grid, Levels, total
from runners.bisect.inference.moving_ratios import moving_evidence
from runners.bisect.inference.varying_levels import COARSE, varying_evidence

PRIOR_CHANGE = 0.5
PRIOR_TWO_STEPS = 0.03
PRIOR_SLOPE = 0.003
PRIOR_VARYING = 0.003
PRIOR_MOVING = 0.05
"""The prior probability of any change, and given a change of two steps, a slope, varying levels, and ratios
that move."""

PRIOR_FURTHER = 0.3
"""The prior odds of each further step."""

SHAPES = (0.6, 1.0, 1.6)
"""The exponents of slopes: the level at a share x of the way is the last level times x to this power."""

SLOPE_SPREAD = 0.05
"""The deviation of commits on a slope from its line, as a share of the whole change."""


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

    explanations: tuple[StepExplanation, ...]
    """By one step or several, with their probabilities."""

    none: float
    slope: float
    varying: float
    """That levels vary all along: see varying_levels.py."""

    moving: float
    """That ratios move while the search goes on: see moving_ratios.py."""

    after: float
    """The estimated level after a single step."""

    end_of_slope: float
    """The estimated level of bad at the end of a slope."""

    moved_to: float
    """The estimated level that ratios move to."""

    scale: float
    """The estimated scale of the noise."""

    @property
    def cell_count(self) -> int:
        """The number of cells, c."""
        return len(self.measured) - 1

    @cached_property
    def answers(self) -> dict[tuple[int, ...], float]:
        """Cells of the steps that make bad differ from good -> probability, likeliest first."""
        found: dict[tuple[int, ...], float] = {}
        for explanation in self.explanations:
            found[explanation.answer] = found.get(explanation.answer, 0.0) + explanation.weight
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @cached_property
    def single(self) -> Array:
        """(c,): that one step in that cell makes bad differ, whatever dips and small steps there are."""
        masses = np.zeros(self.cell_count)
        for answer, weight in self.answers.items():
            if len(answer) == 1:
                masses[answer[0]] += weight
        return masses

    @cached_property
    def several(self) -> float:
        """The probability that two or more steps, none much smaller than the others, make bad differ."""
        return sum(weight for answer, weight in self.answers.items() if len(answer) != 1)

    def lesser(self, cell: int) -> Array:
        """Return (c,) probabilities of a much smaller step in that cell beside the one in `cell`."""
        masses = np.zeros(self.cell_count)
        for explanation in self.explanations:
            if explanation.answer == (cell,):
                for small in explanation.lesser:
                    masses[small] += explanation.weight
        return masses

    def likeliest(self, answer: tuple[int, ...]) -> StepExplanation:
        """Return the likeliest explanation with that answer. Raises ValueError when there is none."""
        alike = (found for found in self.explanations if found.answer == answer)
        return max(alike, key=lambda found: found.weight)


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
        alone = 1 - PRIOR_TWO_STEPS / (1 - PRIOR_FURTHER) - PRIOR_SLOPE - PRIOR_VARYING - PRIOR_MOVING
        shares = self.commits.shares(self.measured)
        single = np.log(PRIOR_CHANGE * alone * shares)[:, None] + self.before[:-1] + self.after[:-1] + prior
        last = self._last_level(single)
        none = np.log(1 - PRIOR_CHANGE) + self.before[-1] + prior
        way = np.array(self.measured[1:]) / self.length
        slope, end = slope_evidence(self.levels, self.priors, self.measured[1:], way, abs(last))
        slope = np.log(PRIOR_CHANGE * PRIOR_SLOPE) + slope + prior
        varying = np.log(PRIOR_CHANGE * PRIOR_VARYING) + varying_evidence(self.levels, self.measured) + prior
        moving, moved_to = moving_evidence(
            self.levels, self.measured[1:], self.priors.before, self.priors.after
        )
        moving = np.log(PRIOR_CHANGE * PRIOR_MOVING) + moving + prior
        weighed = self._explanations(single)
        whole = total(np.concatenate([weighed.logs.ravel(), none, slope, varying, moving]))
        scales = total(weighed.logs, axis=0)
        return Belief(
            self.length,
            self.commits,
            self.measured,
            tuple(weighed.normalised(float(whole))),
            float(np.exp(total(none) - whole)),
            float(np.exp(total(slope) - whole)),
            float(np.exp(total(varying) - whole)),
            float(np.exp(total(moving) - whole)),
            last,
            end,
            moved_to,
            float(np.exp(np.exp(scales - total(scales)) @ np.log(self.levels.scales))),
        )

    def _explanations(self, single: Array) -> Weighed:
        """Return the explanations by one step and by several; `single`: (c, scales) log-weights of one step.

        The level after the first step is another than good's, in both directions; later ones may be good's.
        """
        cells, scales = single.shape
        back, other = self._between_priors()
        scale = int(np.argmax(single.max(axis=0)))
        opening, between = np.full((cells, cells, scales), NEVER), np.full((cells, cells, scales), NEVER)
        opening_means, means = np.zeros((cells, cells)), np.zeros((cells, cells))
        values, logs = self.grid.values[::COARSE], self.logs[:, :, ::COARSE]
        for first in range(cells - 1):
            runs = forward(logs[first:-1])[1:]
            good, away = (total(runs + prior, axis=2) for prior in (back, other))
            place = first, slice(first + 1, None)
            opening[place], opening_means[place] = away - total(other), _means(runs[:, scale] + other, values)
            between[place] = np.logaddexp(good, away)
            returned = _means(runs[:, scale] + back, values)
            # A mean over both would be a level that neither has.
            means[place] = np.where(good[:, scale] > away[:, scale], returned, opening_means[place])
        ends = np.array([self._level_after(cell, scale) for cell in range(cells)])
        counts = PRIOR_CHANGE * PRIOR_TWO_STEPS * PRIOR_FURTHER ** np.arange(MAX_STEPS - 1)
        return explain(
            RunEvidence(self.before, opening, between, self.after, opening_means, means, ends),
            np.diff(self.measured) / self.length,
            single,
            np.log(counts)[:, None] + self.levels.scale_prior,
            math.log1p(self.rules.threshold),
        )

    def _between_priors(self) -> tuple[Array, Array]:
        """Return (levels,) log-priors, on the coarse grid, of good's level again and of any other."""
        back, asked, opposite = (np.exp(prior[::COARSE]) for prior in astuple(self.priors))
        shares = np.stack([back / back.sum(), asked + opposite])
        logs = np.log(np.maximum(shares / shares.sum(), np.exp(-700.0)))
        return logs[0], logs[1]

    def _last_level(self, single: Array) -> float:
        """Return the mean of the level after the likeliest single step."""
        cell, scale = np.unravel_index(int(np.argmax(single)), single.shape)
        return self._level_after(int(cell), int(scale))

    def _level_after(self, cell: int, scale: int) -> float:
        """Return the mean of the level that the measured positions from the end of this cell on share."""
        logs = self.logs[cell:, scale].sum(axis=0) + self.priors.after
        weights = np.exp(logs - logs.max())
        return float(weights @ self.grid.values / weights.sum())


def slope_evidence(
    levels: Levels, prior: LevelPriors, positions: Sequence[int], way: Array, size: float
) -> tuple[Array, float]:
    """Return (scales,) log-evidence of a slope, averaged over shapes, and the mean level at its end.

    way: (c,) which share of the way to bad each of the measured `positions` is. size: about how much bad
    differs.
    """
    grid = levels.grid
    deviation = grid.spacing * 2.0 ** np.ceil(np.log2(SLOPE_SPREAD * size / grid.spacing))
    logs = [levels.likelihood(position, float(deviation)) for position in positions]
    far = np.flatnonzero(prior.after > NEVER / 2)
    shapes = []
    for shape in SHAPES:
        at = grid.index(grid.values[None, far] * way[:, None] ** shape)
        along = sum(log[:, where] for log, where in zip(logs, at, strict=True))
        shapes.append(along + prior.after[far])
    everything = np.stack(shapes)
    densities = np.exp(everything - everything.max()).sum(axis=(0, 1))
    end = float(densities @ grid.values[far] / densities.sum())
    return total(total(everything, axis=2), axis=0) - np.log(len(SHAPES)), end


def _means(logs: Array, values: Array) -> Array:
    """Return the mean levels of (runs, levels) log-weights."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights @ values / weights.sum(axis=1))


def forward(logs: Array) -> Array:
    """Return (c + 1, ...): the sums of the first 0, 1, ... c."""
    return np.concatenate([np.zeros((1, *logs.shape[1:])), np.cumsum(logs, axis=0)])


def backward(logs: Array) -> Array:
    """Return (c + 1, ...): the sums of the last c, c - 1, ... 0."""
    return np.concatenate([np.cumsum(logs[::-1], axis=0)[::-1], np.zeros((1, *logs.shape[1:]))])
