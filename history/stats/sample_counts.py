"""Intervals of differences between counts of samples, such as those of functions in two profiles.

Samples are counts: between rounds that are alike they scatter as Poisson's distribution has it. Rounds are
not quite alike, and a checkpoint falls into one of them alone: the scatter beyond the counts is estimated
from the rounds, with the help of all other functions (quasi-Poisson dispersion, McCullagh & Nelder,
Generalized Linear Models, 1989, section 6.2.3; moderated as in history.stats.noise_model).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from history.stats.distributions import student_quantile
from history.stats.estimators import MINIMUM_REPETITIONS, variance
from history.stats.noise_model import Noise, pooled_noise
from history.stats.repeated_intervals import moderated

CONFIDENCE = 0.95
"""The probability that all intervals of a table hold together."""

MIN_ROUNDS = MINIMUM_REPETITIONS
"""The rounds that an interval needs at least: fewer do not show how rounds differ."""

MIN_COUNT = 10
"""The samples of a function, in both versions together, from which it has an interval: fewer cannot tell."""

Bounds = tuple[float, float]
"""The lower and the upper end of an interval."""


@dataclass(frozen=True)
class Side:
    """What is the same for all counts of a version: by round, in the same order for both versions."""

    weights: Sequence[float]
    """What one sample of each round stands for, such as µs per query."""

    weight: float
    """What one sample stands for when all rounds are taken together."""


Counts = tuple[Sequence[int], Sequence[int]]
"""The samples of a function in each round of base and contender."""


def intervals(counts: Mapping[str, Counts], base: Side, contender: Side) -> Mapping[str, Bounds]:
    """Return the intervals of contender minus base by function, which hold together with CONFIDENCE.

    Functions with fewer samples than MIN_COUNT are left out, and share in no error. Empty below MIN_ROUNDS.
    """
    if len(base.weights) < MIN_ROUNDS:
        return {}
    tested = {name: of for name, of in counts.items() if sum(map(sum, of)) >= MIN_COUNT}
    scaled = {name: _scaled(of, base, contender) for name, of in tested.items()}
    priors = pooled_noise(list(scaled.values()))
    return {
        name: _bounds(tested[name], scaled[name], base, contender, prior, len(tested))
        for name, prior in zip(tested, priors, strict=True)
    }


def interval(counts: Counts, base: Side, contender: Side) -> Bounds | None:
    """Return the interval of one difference by its own rounds alone; None below MIN_ROUNDS and MIN_COUNT."""
    if len(base.weights) < MIN_ROUNDS or sum(map(sum, counts)) < MIN_COUNT:
        return None
    return _bounds(counts, _scaled(counts, base, contender), base, contender, None, 1)


def _scaled(counts: Counts, base: Side, contender: Side) -> list[float]:
    """Return the difference of each round, in standard deviations of what the counts alone let it scatter."""
    before, after = counts
    # Each round has its share of all samples by its share of the queries, to which the weight is inverse.
    expected = [
        weight * side.weight * sum(of)
        for of, side in ((before, base), (after, contender))
        for weight in side.weights
    ]
    rounds = len(base.weights)
    deviations = [math.sqrt(expected[place] + expected[rounds + place]) for place in range(rounds)]
    differences = (
        new * after_weight - old * before_weight
        for old, new, before_weight, after_weight in zip(
            before, after, base.weights, contender.weights, strict=True
        )
    )
    return [difference / deviation for difference, deviation in zip(differences, deviations, strict=True)]


def _bounds(
    counts: Counts, scaled: Sequence[float], base: Side, contender: Side, prior: Noise | None, family: int
) -> Bounds:
    """Return the interval of one of a `family` of differences; Bonferroni's share of the error is its own."""
    before, after = map(sum, counts)
    change = after * contender.weight - before * base.weight
    of_counts = after * contender.weight**2 + before * base.weight**2
    dispersion, df = moderated(variance(scaled), len(scaled) - 1, prior)
    error = math.sqrt(of_counts * max(1.0, dispersion))
    margin = student_quantile(df, 1 - (1 - CONFIDENCE) / family / 2) * error
    return change - margin, change + margin
