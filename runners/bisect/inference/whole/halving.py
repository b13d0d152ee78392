"""The search of a line of commits for all of its steps, by levels that single rounds all but show.

Where the noise of a round is far below the threshold, as of counts, a step between two neighbouring measured
positions is a fact, whatever else changed in the range: no model has to tell steps from levels that vary. So
every gap whose ends differ by the threshold is halved until none is left with a commit to measure. Steps of
which a gap has several, at levels that all differ, are all found.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, median

from runners.bisect.domain.rules import LevelStep, Measure, Rules
from runners.bisect.inference.next_probe import nearest_usable
from runners.bisect.inference.whole.parts import Knowledge, RangePart, RelativeLevel

CLEAR = 2.0
"""The standard deviations of noise by which a difference has to miss the threshold to be settled."""

MAX_ROUNDS = 8
"""The rounds of a position after which differences at the threshold are taken as they are."""

TYPICAL_PAIRS = 4
"""The pairs of rounds that what is known of the noise beforehand counts for."""

EXACT_SHARE = 0.25
"""The share of the threshold that the typical noise of a round may have for levels to count as exact."""

_QUARTILE = NormalDist().inv_cdf(0.75)


def is_exact(rules: Rules) -> bool:
    """Return whether single rounds all but show levels, so that no model of noise has to find steps."""
    return rules.typical_scale <= EXACT_SHARE * rules.threshold


class ExactLevels:
    """The levels of measured positions: medians of their rounds, with the noise of all of them."""

    def __init__(self, known: Knowledge, rules: Rules) -> None:
        self._rules = rules
        self.rounds: dict[int, list[float]] = {}
        """Position -> its log ratios to good, in order."""

        for seen in known.observations:
            if not seen.counted:
                self.rounds.setdefault(seen.position, []).append(seen.log_ratio)
        self._noise = self._estimated()

    def of(self, position: int) -> RelativeLevel:
        """Return the level of good or of a position with rounds. Raises KeyError for others."""
        if position == 0:
            return RelativeLevel(0.0, 0.0)
        rounds = self.rounds[position]
        return RelativeLevel(median(rounds), self._noise / math.sqrt(len(rounds)))

    def _estimated(self) -> float:
        """Return the standard deviation of a round, from the differences between rounds of one position.

        By their median, as one pass that failed to do its work must not make all levels uncertain.
        """
        typical = [_QUARTILE * math.sqrt(2) * self._rules.typical_scale] * TYPICAL_PAIRS
        apart = [abs(after - before) for rounds in self.rounds.values() for before, after in pairwise(rounds)]
        return max(self._rules.least_scale, median([*typical, *apart]) / _QUARTILE / math.sqrt(2))


@dataclass(frozen=True)
class LevelGap:
    """Two neighbouring measured positions, and what is known of the difference of their levels."""

    low: int
    high: int
    among: tuple[int, ...]
    """The candidates that `high` has and `low` has not, ascending."""

    change: float
    """The level of `high` minus that of `low`, as a log ratio."""

    deviation: float
    """The standard deviation of `change`, by the noise of rounds."""

    middle: int | None
    """The position between them to measure next; None when none can be measured."""


class Halving:
    """The search of one part, a line, for all of its steps, in either direction.

    Its answers are a function of what is known when it is made.
    """

    def __init__(self, part: RangePart, known: Knowledge) -> None:
        self._known, self._rules = known, known.whole.rules
        self.levels = ExactLevels(known, self._rules)
        self._least = math.log1p(self._rules.threshold)
        line = [part.base, *part.places]
        while line[-1] in known.excluded and not self._is_measured(line[-1]):
            line.pop()
        self._line = line

    def next(self) -> Measure | None:
        """Return what to measure next, in positions of the whole range; None when nothing is left."""
        if len(self._known.observations) - self._known.before >= self._rules.most_rounds:
            return None
        for end in (self._line[0], self._line[-1]):
            if not self._is_measured(end):
                return None if end in self._known.excluded else Measure((end,))
        for gap in self._widest_first(self._gaps()):
            asked = self._asked_of(gap)
            if asked is not None:
                return Measure((asked,))
        return None

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions that are worth compiling ahead; none is compiled."""
        middles = (gap.middle for gap in self._widest_first(self._differing()))
        wanted = [place for place in middles if place is not None and place not in self._known.built]
        return tuple(wanted[:count])

    def likely_level(self, position: int) -> float:
        """Return a level that a position of the line may turn out to have: that of what is measured next."""
        behind = self._line[self._line.index(position) :]
        return next((self.levels.of(place).value for place in behind if self._is_measured(place)), 0.0)

    def steps(self) -> tuple[LevelStep, ...]:
        """Return the steps between positions that have none to measure between them, in order."""
        return tuple(self._step(gap) for gap in self._differing() if gap.middle is None)

    def unnamed(self) -> tuple[LevelStep, ...]:
        """Return the gaps whose ends differ, with positions between them that were not measured, in order."""
        return tuple(self._step(gap) for gap in self._differing() if gap.middle is not None)

    # --- gaps

    def _gaps(self) -> Iterator[LevelGap]:
        """Yield the gaps between measured neighbours, in order; none before the line's ends are measured."""
        if not all(map(self._is_measured, (self._line[0], self._line[-1]))):
            return
        measured = (place for place, position in enumerate(self._line) if self._is_measured(position))
        for low, high in pairwise(measured):
            ends = self._line[low], self._line[high]
            before, after = map(self.levels.of, ends)
            yield LevelGap(
                *ends,
                tuple(self._line[low + 1 : high + 1]),
                after.value - before.value,
                math.hypot(before.deviation, after.deviation),
                self._middle(low, high),
            )

    def _differing(self) -> Iterator[LevelGap]:
        return (gap for gap in self._gaps() if abs(gap.change) >= self._least)

    @staticmethod
    def _widest_first(gaps: Iterable[LevelGap]) -> list[LevelGap]:
        """Return gaps in the order in which they are halved.

        Of several, the next one is then mostly not a half of this one, and known before this one's middle is
        measured, so that what it needs can be compiled ahead.
        """
        return sorted(gaps, key=lambda gap: (-len(gap.among), -abs(gap.change), gap.low))

    def _asked_of(self, gap: LevelGap) -> int | None:
        """Return the position to measure because of a gap; None when its difference, or none, is settled."""
        ends = sorted((place for place in (gap.low, gap.high) if self._is_repeatable(place)), key=self._count)
        beyond = abs(gap.change) - self._least
        if abs(beyond) < CLEAR * gap.deviation and ends:
            return ends[0]
        if beyond < 0:
            return None
        if gap.middle is not None:
            return gap.middle
        return next((place for place in ends if not self._is_confirmed(place)), None)

    def _middle(self, low: int, high: int) -> int | None:
        """Return the position in the middle between two places of the line, or a compiled one near it."""
        middle = (low + high) / 2
        unusable = {place for place in range(low, high) if self._line[place] in self._known.excluded}
        compiled = [
            place
            for place in range(low + 1, high)
            if abs(place - middle) <= (high - low) / 4
            and place not in unusable
            and self._line[place] in self._known.built
        ]
        near = nearest_usable(low, high, middle, unusable)
        place = min(compiled, key=lambda place: (abs(place - middle), place), default=near)
        return None if place is None else self._line[place]

    def _step(self, gap: LevelGap) -> LevelStep:
        noise = math.hypot(gap.deviation, math.sqrt(2) * self._rules.wobble)
        confidence = 1 - 2 * NormalDist().cdf(-abs(gap.change) / noise)
        size = math.exp(gap.change)
        is_run = gap.among == tuple(range(gap.low + 1, gap.high + 1))
        return LevelStep(gap.low, gap.high, confidence, size, (size, size), () if is_run else gap.among)

    # --- positions

    def _count(self, position: int) -> int:
        return len(self.levels.rounds.get(position, ()))

    def _is_measured(self, position: int) -> bool:
        return position == 0 or position in self.levels.rounds

    def _is_repeatable(self, position: int) -> bool:
        return position not in self._known.excluded and position > 0 and self._count(position) < MAX_ROUNDS

    def _is_confirmed(self, position: int) -> bool:
        """Return whether rounds of a position agree, or there is one more, so that the median is of most."""
        rounds = self.levels.rounds[position]
        apart = max(rounds) - min(rounds)
        return len(rounds) >= self._rules.least_rounds + (apart >= self._least)
