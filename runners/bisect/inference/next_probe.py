"""Which position to measure next: the one that is expected to tell most per unit of machine time.

A round at a position tells the less the surer it is already which side of the change it lies on; a position
that is not compiled costs a build as well. What a batch of rounds tells is the mutual information between
its mean and the level there, approximated by the Gaussian formula and kept below the entropy of the question.
Measuring where the posterior's median lies is Horstein's scheme (1963); weighing by costs is ours.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from runners.bisect.domain.rules import Measure, Rules
from runners.bisect.inference.level_likelihood import INFORMATION, Array, Levels
from runners.bisect.inference.posterior import Belief

BATCHES = np.array([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""Rounds over which a position's build is thought to pay off."""

MOST_AT_ONCE = 8
"""Rounds until the next question at most."""

TOLD_AT_ONCE = 0.15
"""Nats that a batch may tell before the next question: beyond that stopping late costs more than asking."""

LIKELY_OTHERS = 0.15
"""Two steps and a slope steer when they are more likely than this, which is a little more than beforehand."""

NEGLIGIBLE = 1e-6
"""Cells with less of the posterior have nothing new to tell."""

SHARE_OF_DOUBT = 0.5
"""They also do when they are more than this share of what is left to doubt."""


@dataclass(frozen=True)
class ProbeCandidate:
    """What is known of one position before it is measured (again)."""

    position: int
    variance: float
    """Of its level, over the hypotheses."""

    entropy: float
    """Of the question which level it has, in nats."""


def widest(belief: Belief, unusable: Set[int]) -> int | None:
    """The position in the middle of the widest cell that has any left."""
    ends = zip(belief.measured[:-1], belief.measured[1:], strict=True)
    middles = [(high - low, nearest_usable(low, high, (low + high) / 2, unusable)) for low, high in ends]
    return max(((width, at) for width, at in middles if at is not None), default=(0, None))[1]


def choose(belief: Belief, levels: Levels, rules: Rules, unusable: Set[int], cost: "Costs") -> Measure:
    """The position with the best rate of information, and how many rounds it should get."""
    best: tuple[float, ProbeCandidate] | None = None
    for place in _places(belief, unusable, cost.compiled):
        gains = _told(place, levels.rounds(place.position), BATCHES, belief.scale, rules.wobble)
        rate = float(np.max(gains / (cost.build(place.position) + BATCHES)))
        if best is None or rate > best[0]:
            best = rate, place
    if best is None:
        raise AssertionError("bad is always there to be measured")
    place = best[1]
    at_once = np.arange(1.0, MOST_AT_ONCE + 1)
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


def _told(place: ProbeCandidate, rounds: int, more: Array, scale: float, wobble: float) -> Array:
    """(batches,) nats that so many `more` rounds are expected to tell, after `rounds`."""
    if place.entropy <= 0:
        return np.zeros(len(more))
    noise = scale**2 / INFORMATION
    known = rounds / (rounds * wobble**2 + noise)
    precision = (rounds + more) / ((rounds + more) * wobble**2 + noise) - known
    return np.asarray(place.entropy * (1 - (1 + place.variance * precision) ** (-0.5 / place.entropy)))


def _places(belief: Belief, unusable: Set[int], compiled: Set[int]) -> Iterator[ProbeCandidate]:
    """All measured positions, all compiled, and in each cell the one that divides the posterior best."""
    others = belief.two_steps + belief.slope
    steers = others > min(LIKELY_OTHERS, SHARE_OF_DOUBT * (1 - float(belief.single.max())))
    for index, position in enumerate(belief.measured[1:], 1):
        yield _place(belief, position, index, 0.0, steers)
    below, half = 0.0, float(belief.single.sum()) / 2
    for cell, mass in enumerate(belief.single):
        low, high = belief.measured[cell], belief.measured[cell + 1]
        share = (half - below) / mass if below < half < below + mass else 0.5
        below += mass
        if mass < NEGLIGIBLE and not steers:
            continue
        dividing = nearest_usable(low, high, low + share * (high - low), unusable)
        inside = {at for at in compiled if low < at < high and at not in unusable}
        for each in sorted(inside if dividing is None else inside | {dividing}):
            yield _place(belief, each, cell, (each - low) / (high - low), steers)


def nearest_usable(low: int, high: int, wanted: float, unusable: Set[int]) -> int | None:
    """The position strictly between that is closest to `wanted` and not unusable, the lower one of two."""
    start = min(max(round(wanted), low + 1), high - 1)
    for distance in range(high - low):
        for position in (start - distance, start + distance):
            if low < position < high and position not in unusable:
                return position
    return None


def _place(belief: Belief, position: int, cell: int, share: float, steers: bool) -> ProbeCandidate:
    """Of a position at `share` of the way into a cell; 0 is the measured position at its lower end."""
    after = float(belief.single[:cell].sum()) + (share * float(belief.single[cell]) if share else 0.0)
    before = max(float(belief.single.sum()) - after, 0.0) + belief.none
    levels, weights = np.array([0.0, belief.after]), np.array([before, after])
    classes = weights
    if steers:
        both, middle = _of_two(belief, cell, share)
        neither = max(belief.two_steps - both - float(middle.sum()), 0.0)
        slope = belief.end_of_slope * position / belief.length
        levels = np.concatenate([levels, [0.0, belief.after_two, slope], belief.between.ravel()])
        weights = np.concatenate([weights, [neither, both, belief.slope], middle.ravel()])
        classes = np.array([before + neither, after, both, belief.slope, float(middle.sum())])
    weights = weights / weights.sum()
    mean = weights @ levels
    return ProbeCandidate(position, float(weights @ (levels - mean) ** 2), entropy(classes / classes.sum()))


def _of_two(belief: Belief, cell: int, share: float) -> tuple[float, Array]:
    """Probabilities that a position is after both of two steps, and (c, c) that it is between them."""
    passed = np.where(np.arange(len(belief.single)) < cell, 1.0, 0.0)
    if share:
        passed[cell] = share
    both = passed[:, None] * passed[None, :]
    middle = np.maximum(passed[:, None] - both, 0.0)
    return float((belief.pairs * both).sum()), belief.pairs * middle


def entropy(weights: Array) -> float:
    """Of a distribution, in nats."""
    positive = weights[weights > 0]
    return float(-(positive @ np.log(positive)))
