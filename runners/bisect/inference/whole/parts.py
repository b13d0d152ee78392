"""Parts of a range: what steps that were found leave of it, each searched for a step of its own.

A part begins at a position whose level is known and ends at a later one. Rounds measure every position beside
good; minus the level of its beginning, they are rounds beside the beginning. So rounds and passes of the
search before count in it too, and no position is measured again because its part began.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import NormalDist

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.domain.rules import LevelStep, Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.guided_search import GuidedSearch

Level = Callable[[int], tuple[float, float, float]]
"""Returns the ratio of a measured position to good: median and interval."""


@dataclass(frozen=True)
class RelativeLevel:
    """The level of a position as a log ratio to good, with its standard deviation."""

    value: float
    deviation: float


def level_of(level: Level, position: int, confidence: float) -> RelativeLevel:
    """Return the level of a position that has rounds, without the wobble of its code layout; good's is 0."""
    if position == 0:
        return RelativeLevel(0.0, 0.0)
    middle, low, high = map(math.log, level(position))
    reach = NormalDist().inv_cdf((1 + confidence) / 2)
    return RelativeLevel(middle, (high - low) / (2 * reach))


@dataclass(frozen=True)
class RangePart:
    """A part of a range: the candidates from one position to another."""

    base: int
    """The position that it begins at: good, or one that has the step before."""

    places: tuple[int, ...]
    """The positions of its candidates, ascending, its end as the last one; never empty."""

    parents: tuple[tuple[int, ...], ...] = ()
    """The parents of the candidates, numbered from 1 within the part; empty for a line."""

    @property
    def end(self) -> int:
        """The position that it ends at."""
        return self.places[-1]

    def outer(self, verdict: SearchVerdict) -> tuple[LevelStep, ...]:
        """Return the steps of a verdict about this part, with the positions of the whole range."""
        return tuple(
            replace(
                step,
                low=self._outer(step.low),
                high=self._outer(step.high),
                among=tuple(map(self._outer, step.among)),
            )
            for step in verdict.steps
        )

    def _outer(self, place: int) -> int:
        return self.places[place - 1] if place else self.base


def parts_between(
    steps: Sequence[LevelStep], whole: RangePart, ancestry: Ancestry | None
) -> Iterator[RangePart]:
    """Yield what steps of a part leave of it, in order: before the first, between them, after the last.

    Of merged branches only parts are left of which every candidate descends from the beginning: others have
    not all of the steps before.
    """
    ends = [whole.base, *(place for step in steps for place in (step.low, step.high)), whole.end]
    for base, end in list(pairwise(ends))[::2]:
        if base == end:
            continue
        if ancestry is None:
            yield RangePart(base, tuple(range(base + 1, end + 1)))
        elif (part := branched_part(base, end, ancestry)) is not None:
            yield part


def branched_part(base: int, end: int, ancestry: Ancestry) -> RangePart | None:
    """Return the candidates that `end` has and `base` has not; None unless all of them have `base`."""
    has, places = ancestry.contains, ancestry.new_in(end, base)
    if not places or (base and not all(has[place, base - 1] for place in places)):
        return None
    inner = {place: number for number, place in enumerate(places, 1)}
    parents = tuple(
        tuple(sorted({inner.get(up, 0) for up in ancestry.parents[place - 1]})) for place in places
    )
    is_line = all(ups == (number,) for number, ups in enumerate(parents))
    return RangePart(base, places, () if is_line else parents)


@dataclass
class Knowledge:
    """What the rounds and passes of the whole range have shown so far."""

    whole: GuidedSearch
    """It has every observation, for levels."""

    build_cost_rounds: float
    observations: list[Observation] = field(default_factory=list)
    before: int = 0
    """How many of them the first answer took, which has used up rounds of its own."""

    excluded: set[int] = field(default_factory=set)
    uncounted: set[int] = field(default_factory=set)
    built: set[int] = field(default_factory=set)

    def rounds(self, position: int, *, counted: bool) -> int:
        """Return the rounds, or counted passes, of a position."""
        search = self.whole.counts if counted else self.whole.timed
        return 0 if search is None else search.rounds(position)

    def reference(self, base: int, *, counted: bool) -> RelativeLevel:
        """Return the level of a position with rounds, or passes, from which others are measured."""
        level = self.whole.counted_level if counted else self.whole.level
        return level_of(level, base, self.whole.rules.confidence)


class PartSearch:
    """The search of one part for one step or more, in either direction, from what is known so far."""

    def __init__(self, part: RangePart, known: Knowledge, ancestry: Ancestry | None) -> None:
        self.part, self._known = part, known
        usable = list(part.places)
        while usable and ancestry is None and usable[-1] in known.excluded:
            usable.pop()
        self.is_possible = bool(usable) and not known.excluded & {part.base, usable[-1]}
        """Whether both of its ends can be measured."""
        self._search = self._made(tuple(usable), ancestry) if self.is_possible else None
        """None while the level where the part begins is not known well enough."""

    def next(self) -> Measure | SearchVerdict | None:
        """Return what to measure next, in positions of the whole range, or the verdict.

        The verdict has positions of the part. None when an end of the part cannot be measured.
        """
        base = self.part.base
        if not self.is_possible:
            return None
        if self._search is None:
            return Measure((base,), 1 + self._known.rounds(base, counted=False) // 4)
        wanted = self._search.next()
        if isinstance(wanted, SearchVerdict):
            return wanted
        places = tuple(self.part.places[place - 1] for place in wanted.positions)
        most = max(self._known.rounds(place, counted=wanted.counted) for place in places)
        if base and self._known.rounds(base, counted=wanted.counted) < max(most, 1):
            # All of the part is measured from here.
            return Measure((base,), wanted.rounds, counted=wanted.counted)
        return replace(wanted, positions=places)

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions of the whole range that are worth compiling ahead."""
        if self._search is None:
            return ()
        return tuple(self.part.places[place - 1] for place in self._search.likely_next(count))

    def _made(self, places: tuple[int, ...], ancestry: Ancestry | None) -> GuidedSearch | None:
        known, base = self._known, self.part.base
        if base and not known.rounds(base, counted=False):
            return None
        timed = known.reference(base, counted=False)
        rules = widened(known.whole.rules, timed.deviation)
        if rules is None:
            return None
        counts, counted_rules = RelativeLevel(0.0, 0.0), None
        is_counted = base == 0 or known.rounds(base, counted=True) > 0
        if known.whole.counts is not None:
            counts = known.reference(base, counted=True) if is_counted else counts
            counted_rules = widened(known.whole.counts.rules, counts.deviation)
        inner = {place: number for number, place in enumerate(places, 1)}
        made = GuidedSearch(len(places), rules, known.build_cost_rounds, counted_rules, ancestry)
        for position in sorted(known.built & inner.keys()):
            made.built(inner[position])
        for position in sorted(known.excluded & inner.keys()):
            made.exclude(inner[position])
        for position in sorted(known.uncounted & inner.keys()):
            made.leave_uncounted(inner[position])
        if not known.whole.is_counting or base in known.uncounted:
            made.leave_uncounted(0)
        made.observe_all(
            Observation(
                inner[seen.position],
                seen.log_ratio - (counts if seen.counted else timed).value,
                seen.counted,
            )
            for seen in known.observations
            if seen.position in inner and (is_counted or not seen.counted)
        )
        return made


def widened(rules: Rules, deviation: float) -> Rules | None:
    """Return the rules of a part whose beginning is known up to `deviation`; None when that is too little.

    What is not known of it is like a wobble of all other positions.
    """
    wobble = math.hypot(rules.wobble, deviation)
    most = rules.threshold / 2
    if wobble > max(most, math.sqrt(2) * rules.wobble):
        return None
    return replace(rules, direction="either", wobble=min(wobble, most))
