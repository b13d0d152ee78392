"""A search that can go on: after the first answer, the rest of the range is searched for the next step.

The first answer names what most of the difference is. What it leaves of the range, before the first step,
between steps and behind the last, are parts whose ends differ or not; each is searched like a range of its
own, in either direction, and a part with a step leaves parts again. It ends when no part's ends differ.
Where single rounds all but show levels, a line from good to bad is halved instead, whatever the first answer
is: see halving.py. Then only branches that it meets are such parts.
Deterministic, no I/O.
"""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.ancestry import Ancestry, ancestry_of
from runners.bisect.domain.rules import Kind, LevelStep, Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.guided_search import GuidedSearch
from runners.bisect.inference.search import Search
from runners.bisect.inference.whole.halving import ExactLevels, Halving, is_exact
from runners.bisect.inference.whole.parts import (
    Knowledge,
    PartSearch,
    RangePart,
    RelativeLevel,
    branched_part,
    level_of,
    parts_between,
)
from runners.bisect.inference.whole.sizes import StepRatios

LOCATED = ("culprit", "range", "two-steps", "several-steps")
"""The verdicts with steps, which leave parts of the range to be searched."""

DIFFERING = (*LOCATED, "slope", "varying", "undecided")
"""The verdicts after which halving may find steps."""


@dataclass(frozen=True)
class FoundSteps:
    """What parts have shown."""

    steps: list[LevelStep]
    unnamed: list[LevelStep]
    """The parts whose ends differ, and of which no step is named."""

    todo: list[RangePart]
    """The parts that are still to be searched."""


class WholeSearch:
    """A GuidedSearch that `go_on` makes search what its answer leaves of the range.

    It is a function of the observations, exclusions, builds, and of when it was made to go on. Parameters are
    those of GuidedSearch.
    """

    def __init__(
        self,
        length: int,
        rules: Rules,
        build_cost_rounds: float,
        counted_rules: Rules | None = None,
        ancestry: Ancestry | None = None,
    ) -> None:
        self._first = GuidedSearch(length, rules, build_cost_rounds, counted_rules, ancestry)
        self._known = Knowledge(self._first, build_cost_rounds)
        self.length, self.rules, self._ancestry = length, rules, ancestry
        self._answer: SearchVerdict | None = None
        self._posterior: NDArray[np.float64] | None = None
        self._alternatives: dict[str, float] = {}
        self._todo: list[RangePart] = []
        self._steps: list[LevelStep] = []
        self._undone: list[LevelStep] = []
        self._unnamed: list[LevelStep] = []
        self._searching: PartSearch | Halving | None = None
        self._is_exact = is_exact(rules)
        self._more_after = DIFFERING if self._is_exact else LOCATED

    # --- what is known

    def observe(self, observation: Observation) -> None:
        """Add one round, or one counted pass, of one position. Raises ValueError as Search does."""
        if self._answer is None:
            self._first.observe(observation)
        elif not observation.counted:
            self._first.timed.observe(observation)
        elif self._first.counts is not None:
            self._first.counts.observe(observation)
        self._known.observations.append(observation)
        self._known.built.add(observation.position)
        self._searching = None

    def exclude(self, position: int) -> None:
        """Exclude a position that does not compile or start. Raises ValueError for bad."""
        self._first.exclude(position)
        self._known.excluded.add(position)
        self._searching = None

    def leave_uncounted(self, position: int) -> None:
        """Leave a position to rounds, as its pass failed; without good or bad nothing more is counted."""
        self._first.leave_uncounted(position)
        self._known.uncounted.add(position)
        self._searching = None

    def built(self, position: int) -> None:
        """Mark a position as compiled, so that measuring it costs rounds only."""
        self._first.built(position)
        self._known.built.add(position)
        self._searching = None

    @property
    def counts(self) -> Search | None:
        """The search by counts that guides this one; None without one."""
        return self._first.counts

    @property
    def is_counting(self) -> bool:
        """Whether anything can be counted."""
        return self._first.is_counting

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The posterior probabilities of the first answer, as of Search."""
        return self._first.posterior if self._posterior is None else self._posterior

    @property
    def alternatives(self) -> dict[str, float]:
        """The probabilities of the hypotheses of the first answer, as of Search."""
        return self._first.alternatives if self._answer is None else self._alternatives

    def level(self, position: int) -> tuple[float, float, float]:
        """Return the ratio of a position with rounds to good: median and interval."""
        return self._first.level(position)

    def counted_level(self, position: int) -> tuple[float, float, float]:
        """Return the ratio of a counted position's instructions to good's: median and interval."""
        return self._first.counted_level(position)

    # --- what comes next

    def next(self) -> Measure | SearchVerdict:
        """Return what to measure or count next, or the verdict on what is searched now.

        That is the whole range at first, then one part after another; `has_more` says whether any is left.
        """
        if self._answer is None:
            return self._first.next()
        wanted = self._current().next() if self._todo else None
        return wanted if isinstance(wanted, Measure) else self._verdict()

    @property
    def is_first(self) -> bool:
        """Whether it is the whole range that is searched, for the first answer."""
        return self._answer is None

    @property
    def has_more(self) -> bool:
        """Whether, after a verdict, anything is left that `go_on` would have searched."""
        if self._answer is not None:
            return bool(self._outcome().todo)
        answer = self._first.next()
        return isinstance(answer, SearchVerdict) and answer.kind in self._more_after

    def go_on(self) -> None:
        """Take the verdict on what is searched now as final, and begin with the next part.

        Raises ValueError while there is no verdict.
        """
        if self._answer is None:
            self._begin()
        elif self._todo:
            self._end_part()
        self._searching = None

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions that are worth compiling ahead, likeliest first."""
        if self._answer is None:
            return self._first.likely_next(count)
        return self._current().likely_next(count) if self._todo else ()

    def foreseen(self, wanted: Measure) -> int | None:
        """Return the position that is likely to come after a measurement, and is not compiled; None without.

        Of a part, the position is supposed to have the level of where the part, or the gap, ends.
        """
        if self._answer is None:
            return self._first.foreseen(wanted)
        position, counted, end = wanted.positions[0], wanted.counted, self._todo[0].end
        if not self._known.rounds(end, counted=counted):
            return None
        search = self._current()
        if isinstance(search, Halving):
            level = search.likely_level(position)
        else:
            level = self._known.reference(end, counted=counted).value
        supposed = copy.deepcopy(self)
        for _ in range(wanted.rounds):
            supposed.observe(Observation(position, level, counted))
        after = supposed.next()
        if not isinstance(after, Measure) or after.positions[0] in self._known.built:
            return None
        return after.positions[0]

    # --- parts

    def _begin(self) -> None:
        answer = self._first.next()
        if not isinstance(answer, SearchVerdict):
            raise ValueError("there is no verdict yet after which the search could go on")
        self._posterior, self._alternatives = self._first.posterior, self._first.alternatives
        self._answer, self._known.before = answer, len(self._known.observations)
        whole = tuple(range(1, self.length + 1))
        if self._is_exact:
            self._todo = [RangePart(0, whole if self._ancestry is None else self._ancestry.trunk())]
            return
        self._undone += answer.undone
        self._leave(RangePart(0, whole), answer.steps)

    def _end_part(self) -> None:
        search = self._current()
        found = search.next()
        if isinstance(found, Measure):
            raise ValueError("there is no verdict yet on the part that is searched")
        if isinstance(search, Halving):
            outcome = self._outcome()
            self._steps, self._unnamed, self._todo = outcome.steps, outcome.unnamed, outcome.todo
            return
        part = self._todo.pop(0)
        steps = () if found is None else part.outer(found)
        if not steps and (found is None or found.kind != "none"):
            confidence = 0.0 if found is None else found.confidence
            self._unnamed.append(_ends_of(part, confidence, self._ancestry))
        elif steps:
            self._leave(part, steps)

    def _outcome(self) -> FoundSteps:
        """Return what was found so far, with what halving found if it is at its end: that leaves no parts."""
        search = self._current() if self._todo else None
        if not isinstance(search, Halving) or search.next() is not None:
            return FoundSteps(self._steps, self._unnamed, self._todo)
        found, inside = self._of_line(search.steps())
        steps = sorted((*self._steps, *found), key=_place)
        return FoundSteps(steps, [*self._unnamed, *search.unnamed()], [*inside, *self._todo[1:]])

    def _of_line(self, steps: tuple[LevelStep, ...]) -> tuple[list[LevelStep], list[RangePart]]:
        """Return the steps of a line, and the branches that were merged where it steps, to be searched.

        A branch that does not begin where the line was before its merge is a step at one of its commits: at
        that of the first answer, if that one makes up the change.
        """
        ancestry = self._ancestry
        if ancestry is None:
            return list(steps), []
        found, inside = list[LevelStep](), list[RangePart]()
        for step in steps:
            new = ancestry.new_in(step.high, step.low)
            part = branched_part(step.low, step.high, ancestry)
            if set(new) == set(step.suspects):
                found.append(step)
            elif part is None:
                found.append(self._answered(step, new) or replace(step, among=new))
            else:
                inside.append(part)
        return found, inside

    def _answered(self, step: LevelStep, new: tuple[int, ...]) -> LevelStep | None:
        """Return the step of the first answer that is in a branch and is what its merge changes, or None."""
        assert self._answer is not None
        inside = [known for known in self._answer.steps if set(known.suspects) <= set(new)]
        if len(inside) != 1 or abs(math.log(inside[0].size / step.size)) >= math.log1p(self.rules.threshold):
            return None
        return inside[0]

    def _leave(self, part: RangePart, steps: tuple[LevelStep, ...]) -> None:
        """Take in the steps of a part, and what they leave of it, largest difference first."""
        self._steps = sorted((*self._steps, *steps), key=_place)
        parts = sorted(parts_between(steps, part, self._ancestry), key=self._difference, reverse=True)
        self._todo = [*parts, *self._todo]

    def _difference(self, part: RangePart) -> float:
        """Return by how much the ends of a part differ, as an absolute log ratio; 0 for unmeasured ones."""
        ends = [place for place in (part.base, part.end) if place]
        if not all(self._first.timed.rounds(place) for place in ends):
            return 0.0
        levels = [math.log(self.level(place)[0]) for place in ends]
        return abs(levels[-1] - (levels[0] if part.base else 0.0))

    def _current(self) -> PartSearch | Halving:
        if self._searching is None:
            part = self._todo[0]
            if self._is_exact and not part.parents:
                self._searching = Halving(part, self._known)
            else:
                self._searching = PartSearch(part, self._known, ancestry_of(part.parents))
        return self._searching

    # --- the answer

    def _verdict(self) -> SearchVerdict:
        """Return the first answer with all steps that were found, and how they make up the difference."""
        answer = self._answer
        assert answer is not None
        if answer.kind not in self._more_after:
            return answer
        outcome = self._outcome()
        sizes = StepRatios(self._levels(), self.length, self.rules, self._ancestry)
        steps = sizes.steps(outcome.steps or answer.steps)
        unnamed = [sizes.between(part) for part in outcome.unnamed if sizes.differs(part.low, part.high)]
        named = replace(
            answer,
            rounds=sum(1 for seen in self._known.observations if not seen.counted),
            undone=tuple(self._undone),
            rest=None,
            whole=sizes.whole(steps, unnamed, is_searched=not outcome.todo),
        )
        return _naming(named, steps, self.length) if steps else named

    def _levels(self) -> dict[int, RelativeLevel]:
        """Return the levels of good and of all positions with rounds."""
        if self._is_exact:
            exact = ExactLevels(self._known, self.rules)
            return {place: exact.of(place) for place in (0, *exact.rounds)}
        timed, confidence = self._first.timed, self.rules.confidence
        places = (place for place in range(self.length + 1) if place == 0 or timed.rounds(place))
        return {place: level_of(self.level, place, confidence) for place in places}


def _place(step: LevelStep) -> tuple[int, int]:
    return step.high, step.low


def _naming(verdict: SearchVerdict, steps: tuple[LevelStep, ...], length: int) -> SearchVerdict:
    """Return a verdict on the whole difference that names these steps, one or more."""
    whole = verdict.whole
    assert whole is not None
    named = replace(
        verdict, kind=_kind(steps), confidence=math.prod(step.confidence for step in steps), steps=steps
    )
    if len(steps) > 1:
        return replace(named, low=0, high=length, size=whole.size, interval=whole.interval, among=())
    step = steps[0]
    return replace(
        named, low=step.low, high=step.high, size=step.size, interval=step.interval, among=step.among
    )


def _kind(steps: tuple[LevelStep, ...]) -> Kind:
    if len(steps) > 1:
        return "two-steps" if len(steps) == 2 else "several-steps"
    return "culprit" if len(steps[0].suspects) == 1 else "range"


def _ends_of(part: RangePart, confidence: float, ancestry: Ancestry | None) -> LevelStep:
    """Return a part as a step that lies at any of its candidates; its size comes later."""
    among = () if ancestry is None else part.places
    return LevelStep(part.base, part.end, confidence, 1.0, (1.0, 1.0), among)
