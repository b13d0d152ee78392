"""Which position to measure next: the one that is expected to tell most per unit of machine time.

A round at a position tells the less the surer it is already which side of the change it lies on; a position
that is not compiled costs a build as well. What a batch of rounds tells is the mutual information between
its mean and the level there, approximated by the Gaussian formula and kept below the entropy of the question.
Measuring where the posterior's median lies is Horstein's scheme (1963); weighing by costs is ours.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from runners.bisect.belief import Belief
from runners.bisect.levels import INFORMATION, Array, Levels
from runners.bisect.terms import Measure, Rules

BATCHES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""Rounds over which a position's build is thought to pay off."""

MOST_AT_ONCE = 8
"""Rounds until the next question at most."""

TOLD_AT_ONCE = 0.15
"""Nats that a batch may tell before the next question: beyond that stopping late costs more than asking."""

LIKELY_OTHERS = 0.15
"""Two steps and a slope steer when they are more likely than this, which is a little more than beforehand."""

SHARE_OF_DOUBT = 0.5
"""They also do when they are more than this share of what is left to doubt."""


@dataclass(frozen=True)
class Place:
    """What is known of one position before it is measured (again)."""

    position: int
    variance: float
    """Of its level, over the hypotheses."""

    entropy: float
    """Of the question which level it has, in nats."""


def choose(belief: Belief, levels: Levels, rules: Rules, unusable: Set[int], cost: "Costs") -> Measure:
    """The position with the best rate of information, and how many rounds it should get."""
    best: tuple[float, Place] | None = None
    for place in _places(belief, levels, unusable):
        gains = _told(place, levels.rounds(place.position), BATCHES, belief.scale, rules.wobble)
        rate = float(np.max(gains / (cost.build(place.position) + BATCHES)))
        if best is None or rate > best[0]:
            best = rate, place
    if best is None:
        raise AssertionError("bad is always there to be measured")
    place = best[1]
    at_once = np.arange(1, MOST_AT_ONCE + 1)
    gains = _told(place, levels.rounds(place.position), at_once, belief.scale, rules.wobble)
    return Measure((place.position,), int(max(at_once[gains <= TOLD_AT_ONCE], default=1)))


@dataclass(frozen=True)
class Costs:
    """In rounds."""

    build_rounds: float
    compiled: Set[int]

    def build(self, position: int) -> float:
        """Of compiling a position, 0 when it is."""
        return 0.0 if position in self.compiled else self.build_rounds


def _told(place: Place, rounds: int, more: Array, scale: float, wobble: float) -> Array:
    """(batches,) nats that so many `more` rounds are expected to tell, after `rounds`."""
    if place.entropy <= 0:
        return np.zeros(len(more))
    noise = scale**2 / INFORMATION
    known = rounds / (rounds * wobble**2 + noise)
    precision = (rounds + more) / ((rounds + more) * wobble**2 + noise) - known
    return np.asarray(place.entropy * (1 - (1 + place.variance * precision) ** (-0.5 / place.entropy)))


def _places(belief: Belief, levels: Levels, unusable: Set[int]) -> Iterator[Place]:
    """All measured positions, and in each cell the usable one that divides the posterior best."""
    others = belief.two_steps + belief.slope
    steers = others > min(LIKELY_OTHERS, SHARE_OF_DOUBT * (1 - float(belief.single.max())))
    for index, position in enumerate(belief.measured[1:], 1):
        yield _place(belief, position, index, 0.0, steers)
    below = 0.0
    for cell, mass in enumerate(belief.single):
        low, high = belief.measured[cell], belief.measured[cell + 1]
        share = (0.5 - below) / mass if below < 0.5 < below + mass else 0.5
        below += mass
        dividing = nearest_usable(low, high, low + share * (high - low), unusable)
        if dividing is not None and (mass > 1e-6 or steers):
            yield _place(belief, dividing, cell, (dividing - low) / (high - low), steers)


def nearest_usable(low: int, high: int, wanted: float, unusable: Set[int]) -> int | None:
    """The position strictly between that is closest to `wanted` and not unusable, the lower one of two."""
    start = min(max(round(wanted), low + 1), high - 1)
    for distance in range(high - low):
        for position in (start - distance, start + distance):
            if low < position < high and position not in unusable:
                return position
    return None


def _place(belief: Belief, position: int, cell: int, share: float, steers: bool) -> Place:
    """Of a position at `share` of the way into a cell; 0 is the measured position at its lower end."""
    after = float(belief.single[:cell].sum()) + (share * float(belief.single[cell]) if share else 0.0)
    before = max(float(belief.single.sum()) - after, 0.0) + belief.none
    levels, weights = np.array([0.0, belief.after]), np.array([before, after])
    if steers:
        more_levels, more_weights = _levels_of_two(belief, cell, share)
        slope = belief.after * position / belief.length
        levels = np.concatenate([levels, more_levels, [slope]])
        weights = np.concatenate([weights, more_weights, [belief.slope]])
    weights = weights / weights.sum()
    mean = weights @ levels
    classes = np.array([weights[0], weights[1], weights[2:].sum()])
    return Place(position, float(weights @ (levels - mean) ** 2), entropy(classes))


def _levels_of_two(belief: Belief, cell: int, share: float) -> tuple[Array, Array]:
    """Levels of a position under every pair of steps, and the probabilities of these."""
    cells = len(belief.single)
    passed = np.where(np.arange(cells) < cell, 1.0, 0.0)
    if share:
        passed[cell] = share
    first, second = passed[:, None], passed[None, :]
    both = first * second
    middle = np.maximum(first - both, 0.0)
    levels = np.concatenate([[0.0, belief.after], belief.between.ravel()])
    weights = np.concatenate(
        [
            [float((belief.pairs * (1 - both - middle)).sum()), float((belief.pairs * both).sum())],
            (belief.pairs * middle).ravel(),
        ]
    )
    return levels, np.maximum(weights, 0.0)


def entropy(weights: Array) -> float:
    """Of a distribution, in nats."""
    positive = weights[weights > 0]
    return float(-(positive @ np.log(positive)))
