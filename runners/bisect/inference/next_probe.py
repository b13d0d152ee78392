"""Which position to measure next: the one with the most expected information per unit of machine time.

A round at a position gives the less information the more certain it is which side of the change the position
lies on; a position that is not compiled costs a build as well. The information of a batch of rounds is the
mutual information between its mean and the level there, approximated by the Gaussian formula and bounded by
the entropy of the level. Measuring at the median of the posterior is Horstein's scheme (1963); weighing by
costs is ours.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.rules import Measure, Rules
from runners.bisect.inference.level_likelihood import INFORMATION, Array, Levels
from runners.bisect.inference.posterior import Belief

BATCHES = np.array([1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
"""The numbers of rounds over which the build of a position may pay off."""

MAX_AT_ONCE = 8
"""The most rounds that are measured before the search is asked again."""

MAX_INFORMATION = 0.15
"""The most information, in nats, of a batch: with more, stopping late costs more than asking again."""

SHARE_AT_ONCE = 0.3
"""The most information of a batch, as a share of the doubt that is left at its position."""

ALIKE = 0.01
"""Levels that differ by less, as log ratios, are not told apart."""

LIKELY_ALTERNATIVES = 0.15
"""Several steps and a slope influence the choice when they are likelier than this, a little above
their prior."""

NEGLIGIBLE = 1e-6
"""Cells with less posterior probability than this are not worth measuring."""

SHARE_OF_DOUBT = 0.5
"""They also influence it when they exceed this share of the remaining uncertainty."""

NO_PROMISE = 0.01
"""The share of the doubt about what holds below which what rounds are expected to tell is nothing."""

SATURATED = 10.0
"""How many times smaller than its wobble, as variances, the noise of a position's level is when its further
rounds tell nothing."""


@dataclass(frozen=True)
class BestProbe:
    """The measurement with the most information per cost."""

    measure: Measure
    promise: float
    """The most information, in nats, that all rounds that are left are expected to give at one position."""


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


def choose(
    belief: Belief, levels: Levels, rules: Rules, unusable: Set[int], cost: "Costs"
) -> BestProbe | None:
    """Return the position with the most information per cost, and how many rounds it should get.

    None where rounds of none tell more.
    """
    return best_of(_places(belief, unusable, cost.compiled), levels, belief.scale, rules, cost)


def best_of(
    places: Iterable[ProbeCandidate], levels: Levels, scale: float, rules: Rules, cost: "Costs"
) -> BestProbe | None:
    """Return the place with the most information per cost, and how many rounds; `scale` is that of noise.

    None where rounds of none tell more.
    """
    best: tuple[float, ProbeCandidate] | None = None
    promise, left = 0.0, np.array([max(rules.most_rounds - levels.total, 1.0)])
    for place in places:
        known = levels.rounds(place.position)
        if known * rules.wobble**2 >= SATURATED * scale**2:
            continue
        promise = max(promise, float(_information(place, known, left, scale, rules.wobble)[0]))
        gains = _information(place, known, BATCHES, scale, rules.wobble)
        rate = float(np.max(gains / (cost.build(place.position) + BATCHES)))
        if best is None or rate > best[0]:
            best = rate, place
    if best is None:
        return None
    place = best[1]
    at_once = np.arange(1.0, MAX_AT_ONCE + 1)
    gains = _information(place, levels.rounds(place.position), at_once, scale, rules.wobble)
    enough = min(MAX_INFORMATION, SHARE_AT_ONCE * place.entropy)
    measure = Measure((place.position,), int(max(at_once[gains <= enough], default=1)))
    return BestProbe(measure, promise)


def may_vary(belief: Belief) -> bool:
    """Return whether most of the doubt is whether levels vary."""
    likeliest = max(belief.answers.values(), default=0.0)
    return belief.varying > SHARE_OF_DOUBT * (1 - likeliest)


def is_exhausted(belief: Belief, probe: BestProbe) -> bool:
    """Return whether rounds of no position tell more of what holds, so that levels that vary remain likely.

    Steps predict the level of a position that has no rounds yet, and levels that vary do not.
    """
    if not may_vary(belief):
        return False
    kinds = [*belief.answers.values(), belief.none, belief.slope, belief.varying]
    return probe.promise < NO_PROMISE * entropy(np.array(kinds))


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


def is_steered(belief: Belief) -> bool:
    """Return whether several steps and a slope are likely enough to influence what is measured."""
    others = belief.several + belief.slope
    return others > min(LIKELY_ALTERNATIVES, SHARE_OF_DOUBT * (1 - float(belief.single.max())))


def _places(belief: Belief, unusable: Set[int], compiled: Set[int]) -> Iterator[ProbeCandidate]:
    """Yield all measured and all compiled positions, and in every cell the one that halves the posterior."""
    steers = is_steered(belief)
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
    """Return the candidate at `share` of the way into a cell; 0 is the measured position at its lower end.

    What a dip does to the level there counts only as far as it tells answers apart.
    """
    labels: dict[tuple[tuple[int, ...], bool], int] = {}
    levels, weights, classes = [], [], []

    def add(level: float, weight: float, answer: tuple[int, ...], after: bool) -> None:
        levels.append(level)
        weights.append(weight)
        classes.append(labels.setdefault((answer, after), len(labels)))

    for found in belief.explanations:
        if len(found.answer) != 1 and not steers:
            continue
        start = bisect_left(found.cells, cell)
        inside = start < len(found.cells) and found.cells[start] == cell and share > 0
        asked = inside and cell in found.answer
        add(found.levels[start], found.weight * (1 - share if inside else 1), found.answer, False)
        if inside:
            add(found.levels[start + 1], found.weight * share, found.answer, asked)
    add(0.0, belief.none, (), False)
    if steers:
        add(belief.end_of_slope * position / belief.length, belief.slope, (), True)
    return candidate(position, np.array(levels), np.array(weights), np.array(classes))


def candidate(position: int, levels: Array, weights: Array, classes: NDArray[np.intp]) -> ProbeCandidate:
    """Return the candidate whose level says which of the classes, (levels,), it belongs to."""
    weights = weights / weights.sum()
    shares = np.bincount(classes, weights)
    means = np.bincount(classes, weights * levels) / np.maximum(shares, 1e-300)
    # Classes whose levels are alike are not told apart there.
    groups = np.unique(np.rint(means / ALIKE), return_inverse=True)[1]
    variance = float(shares @ (means - shares @ means) ** 2)
    return ProbeCandidate(position, variance, entropy(np.bincount(groups, weights=shares).astype(np.float64)))


def entropy(weights: Array) -> float:
    """Return the entropy of a distribution, in nats."""
    positive = weights[weights > 0]
    return float(-(positive @ np.log(positive)))
