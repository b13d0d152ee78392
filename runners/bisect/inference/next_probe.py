"""Which position to measure next: the one with the most expected information per unit of machine time.

A round at a position gives the less information the more certain it is which side of the change the position
lies on; a position that is not compiled costs a build as well. The information of a batch of rounds is the
mutual information between its mean and the level there, approximated by the Gaussian formula and bounded by
the entropy of the level. Measuring at the median of the posterior is Horstein's scheme (1963); weighing by
costs is ours.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from runners.bisect.domain.rules import Measure, Rules
from runners.bisect.inference.level_likelihood import INFORMATION, Array, Levels
from runners.bisect.inference.posterior import Belief

BATCHES = np.array([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""The numbers of rounds over which the build of a position may pay off."""

MAX_AT_ONCE = 8
"""The most rounds that are measured before the search is asked again."""

MAX_INFORMATION = 0.15
"""The most information, in nats, of a batch: with more, stopping late costs more than asking again."""

LIKELY_ALTERNATIVES = 0.15
"""Two steps and a slope influence the choice when they are likelier than this, a little above their prior."""

NEGLIGIBLE = 1e-6
"""Cells with less posterior probability than this are not worth measuring."""

SHARE_OF_DOUBT = 0.5
"""They also influence it when they exceed this share of the remaining uncertainty."""


@dataclass(frozen=True)
class ProbeCandidate:
    """What is known about a position before its next round."""

    position: int
    variance: float
    """The variance of its level over the hypotheses."""

    entropy: float
    """The entropy, in nats, of which level it has."""


def widest(belief: Belief, unusable: Set[int]) -> int | None:
    """Return the middle of the widest cell with a usable position; None when there is no such cell."""
    ends = zip(belief.measured[:-1], belief.measured[1:], strict=True)
    middles = [(high - low, nearest_usable(low, high, (low + high) / 2, unusable)) for low, high in ends]
    return max(((width, at) for width, at in middles if at is not None), default=(0, None))[1]


def choose(belief: Belief, levels: Levels, rules: Rules, unusable: Set[int], cost: "Costs") -> Measure:
    """Return the position with the most information per cost, and how many rounds it should get."""
    best: tuple[float, ProbeCandidate] | None = None
    for place in _places(belief, unusable, cost.compiled):
        gains = _information(place, levels.rounds(place.position), BATCHES, belief.scale, rules.wobble)
        rate = float(np.max(gains / (cost.build(place.position) + BATCHES)))
        if best is None or rate > best[0]:
            best = rate, place
    if best is None:
        raise AssertionError("bad can always be measured")
    place = best[1]
    at_once = np.arange(1.0, MAX_AT_ONCE + 1)
    gains = _information(place, levels.rounds(place.position), at_once, belief.scale, rules.wobble)
    return Measure((place.position,), int(max(at_once[gains <= MAX_INFORMATION], default=1)))


@dataclass(frozen=True)
class Costs:
    """The cost of a build, in rounds, and the positions that need none."""

    build_rounds: float
    compiled: Set[int]

    def build(self, position: int) -> float:
        """Return the cost of compiling a position, in rounds; 0 when it is compiled."""
        return 0.0 if position in self.compiled else self.build_rounds


def _information(place: ProbeCandidate, rounds: int, more: Array, scale: float, wobble: float) -> Array:
    """Return the expected information, (batches,) in nats, of `more` rounds after `rounds`."""
    if place.entropy <= 0:
        return np.zeros(len(more))
    noise = scale**2 / INFORMATION
    known = rounds / (rounds * wobble**2 + noise)
    precision = (rounds + more) / ((rounds + more) * wobble**2 + noise) - known
    return np.asarray(place.entropy * (1 - (1 + place.variance * precision) ** (-0.5 / place.entropy)))


def _places(belief: Belief, unusable: Set[int], compiled: Set[int]) -> Iterator[ProbeCandidate]:
    """Yield all measured and all compiled positions, and in every cell the one that halves the posterior."""
    others = belief.two_steps + belief.slope
    steers = others > min(LIKELY_ALTERNATIVES, SHARE_OF_DOUBT * (1 - float(belief.single.max())))
    for index, position in enumerate(belief.measured[1:], 1):
        yield _place(belief, position, index, 0.0, steers)
    below, half = 0.0, float(belief.single.sum()) / 2
    for cell, mass in enumerate(belief.single):
        low, high = belief.measured[cell], belief.measured[cell + 1]
        share = (half - below) / mass if below < half < below + mass else 0.5
        below += mass
        if mass < NEGLIGIBLE and not steers:
            continue
        dividing = nearest_usable(low, high, belief.prior.dividing(low, high, share), unusable)
        inside = {at for at in compiled if low < at < high and at not in unusable}
        for position in sorted(inside if dividing is None else inside | {dividing}):
            yield _place(belief, position, cell, belief.prior.share(low, position, high), steers)


def nearest_usable(low: int, high: int, wanted: float, unusable: Set[int]) -> int | None:
    """Return the usable position strictly between `low` and `high` that is closest to `wanted`, or None."""
    start = min(max(round(wanted), low + 1), high - 1)
    for distance in range(high - low):
        for position in (start - distance, start + distance):
            if low < position < high and position not in unusable:
                return position
    return None


def _place(belief: Belief, position: int, cell: int, share: float, steers: bool) -> ProbeCandidate:
    """Return the candidate at `share` of the way into a cell; 0 is the measured position at its lower end."""
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
    """Return the probability that a position is after two steps, and (c, c) that it is between them."""
    passed = np.where(np.arange(len(belief.single)) < cell, 1.0, 0.0)
    if share:
        passed[cell] = share
    both = passed[:, None] * passed[None, :]
    middle = np.maximum(passed[:, None] - both, 0.0)
    return float((belief.pairs * both).sum()), belief.pairs * middle


def entropy(weights: Array) -> float:
    """Return the entropy of a distribution, in nats."""
    positive = weights[weights > 0]
    return float(-(positive @ np.log(positive)))
