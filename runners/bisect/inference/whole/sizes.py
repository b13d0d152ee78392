"""The sizes of the steps of a range, so that their product and what is left unexplained are the difference.

A step is the ratio of the level right after it to the level right before it. Neighbours that share a level
are pooled, nearest first, for as long as that makes it known better than equal code is alike. Every size is a
sum of levels of positions with weights, so that the interval of what is left over is that of such a sum.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.domain.rules import LevelStep, Rules, WholeDifference
from runners.bisect.inference.whole.parts import RelativeLevel

Weights = Mapping[int, float]
"""Position -> its weight in a sum of levels."""

SURE = 3.0
"""The standard deviations beyond which two levels are taken to differ."""


class StepRatios:
    """The levels of the measured positions of a range, and what they say of its steps.

    `levels`: position -> its level, good at 0 included. `length` is the position of bad.
    """

    def __init__(
        self, levels: Mapping[int, RelativeLevel], length: int, rules: Rules, ancestry: Ancestry | None
    ) -> None:
        self._levels, self._length, self._rules, self._ancestry = levels, length, rules, ancestry

    def steps(self, found: Sequence[LevelStep]) -> tuple[LevelStep, ...]:
        """Return the steps with their sizes, without those that later rounds have shown not to be there."""
        sized = self._sized(found)
        least = math.log1p(self._rules.threshold) / 2
        there = [step for step in sized if abs(math.log(step.size)) >= least]
        return self._sized(there) if there else sized

    def whole(
        self, steps: Sequence[LevelStep], parts: Iterable[LevelStep], *, is_searched: bool
    ) -> WholeDifference:
        """Return how these steps, which `steps` returned, make up the difference between good and bad."""
        bad = {self._length: 1.0}
        explained: dict[int, float] = {}
        for step in steps:
            for position, weight in self._weights(step, steps).items():
                explained[position] = explained.get(position, 0.0) + weight
        rest = {place: bad.get(place, 0.0) - explained.get(place, 0.0) for place in {**explained, **bad}}
        return WholeDifference(
            *self._ratio(bad), *self._ratio(explained), *self._ratio(rest), tuple(parts), is_searched
        )

    def between(self, part: LevelStep) -> LevelStep:
        """Return a part of the range with the ratio of its ends as its size."""
        size, interval = self._ratio({part.high: 1.0, part.low: -1.0} if part.low else {part.high: 1.0})
        return replace(part, size=size, interval=interval)

    def differs(self, low: int, high: int) -> bool:
        """Return whether the levels of two positions surely differ; False when one has no rounds."""
        if low not in self._levels or high not in self._levels:
            return False
        before, after = self._levels[low], self._levels[high]
        apart = abs(after.value - before.value)
        noise = math.hypot(before.deviation, after.deviation, self._rules.wobble)
        return apart >= max(math.log1p(self._rules.threshold), SURE * noise)

    # --- sums of levels

    def _sized(self, found: Sequence[LevelStep]) -> tuple[LevelStep, ...]:
        sized = []
        for step in found:
            size, interval = self._ratio(self._weights(step, found))
            sized.append(replace(step, size=size, interval=interval))
        return tuple(sized)

    def _weights(self, step: LevelStep, steps: Sequence[LevelStep]) -> Weights:
        """Return the weights of the difference between the levels after and before a step."""
        weights = dict(self._pool(step.high, steps))
        for position, weight in self._pool(step.low, steps).items():
            weights[position] = weights.get(position, 0.0) - weight
        return weights

    def _pool(self, end: int, steps: Sequence[LevelStep]) -> Weights:
        """Return the weights of positions that share the level of `end`; their sum is 1."""
        has = self._having(steps)
        alike = [place for place in self._levels if has(place) == has(end)]
        alike.sort(key=lambda place: (abs(place - end), place))
        if not alike:
            return {}
        first = self._levels[alike[0]]
        precisions: dict[int, float] = {}
        for place in alike:
            level = self._levels[place]
            noise = math.hypot(level.deviation, first.deviation, self._rules.wobble)
            if abs(level.value - first.value) > max(math.log1p(self._rules.threshold), SURE * noise):
                continue  # in a dip
            precisions[place] = 1 / (level.deviation**2 + self._rules.wobble**2)
            if self._is_known(precisions):
                break
        total = sum(precisions.values())
        return {place: precision / total for place, precision in precisions.items()}

    def _is_known(self, places: Iterable[int]) -> bool:
        noise = sum(1 / max(self._levels[place].deviation, 1e-9) ** 2 for place in places)
        return 1 / noise <= self._rules.wobble**2

    def _having(self, steps: Sequence[LevelStep]) -> Callable[[int], tuple[bool, ...]]:
        """Return which of the steps a position has."""
        ancestry = self._ancestry
        if ancestry is None:
            return lambda place: tuple(place >= step.high for step in steps)
        rows = ancestry.contains
        columns = [[suspect - 1 for suspect in step.suspects] for step in steps]
        return lambda place: tuple(bool(rows[place, members].all()) for members in columns)

    def _ratio(self, weights: Weights) -> tuple[float, tuple[float, float]]:
        """Return the ratio that a sum of levels is, with its interval; good adds its wobble."""
        value = sum(weight * self._levels[place].value for place, weight in weights.items())
        # Levels are ratios to good, so that its own code layout is in every one that is not a difference.
        of_good = {0: weights.get(0, 0.0) - sum(weights.values())}
        variance = sum(
            weight**2 * (self._levels[place].deviation ** 2 + self._rules.wobble**2)
            for place, weight in {**weights, **of_good}.items()
        )
        reach = NormalDist().inv_cdf((1 + self._rules.confidence) / 2) * math.sqrt(variance)
        return math.exp(value), (math.exp(value - reach), math.exp(value + reach))
