"""When a search among commits of merged branches stops, and with which verdict."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from runners.bisect.domain.rules import Kind, LevelStep, Measure, Rules, SearchVerdict
from runners.bisect.inference.branched.belief import BranchedBelief, unsplit
from runners.bisect.inference.branched.probes import widest
from runners.bisect.inference.explanations import StepExplanation
from runners.bisect.inference.level_likelihood import Levels
from runners.bisect.inference.next_probe import LIKELY_ALTERNATIVES
from runners.bisect.inference.stopping import (
    LEFT_OVER_SHARE,
    SLOPE_POSITIONS,
    bad_again,
    change_between,
    difference,
    may_move,
    moved,
    of_bad,
    shared_level,
)


@dataclass(frozen=True)
class Stopping:
    """What the probabilities of one moment allow to say."""

    belief: BranchedBelief
    levels: Levels
    rules: Rules
    unusable: Set[int]

    def decide(self) -> SearchVerdict | Measure | None:
        """Return the verdict, the measurement that it still needs, or None to go on."""
        belief, rules = self.belief, self.rules
        closed = unsplit(belief.cells, self.unusable)
        answers = ((cells, mass) for cells, mass in belief.answers.items() if closed[list(cells)].all())
        answer, mass = next(answers, ((), 0.0))
        if len(answer) == 1 and mass >= rules.stop:
            return self._once_more(answer[0]) or self._single(answer[0], mass)
        if belief.none >= rules.stop:
            return of_bad("none", belief.none, self.levels, rules, belief.length)
        if belief.moving >= rules.stop:
            return moved(belief, self.levels, rules)
        if belief.slope + belief.varying >= rules.stop:
            more = len(belief.measured) < SLOPE_POSITIONS + 2 and widest(belief.cells, self.unusable)
            if more:
                return Measure((more,))
            kind: Kind = "slope" if belief.slope > belief.varying else "varying"
            return of_bad(kind, belief.slope + belief.varying, self.levels, rules, belief.length)
        if mass >= rules.stop:
            return self._several(answer)
        if may_move(belief, self.levels, rules, mass):
            return bad_again(belief, self.levels)
        return self._anywhere() if belief.varying > LIKELY_ALTERNATIVES else None

    def give_up(self) -> SearchVerdict:
        """Return the verdict when the rounds are used up, or no further ones help."""
        belief = self.belief
        if belief.several >= self.rules.confidence:
            return self._several(next(cells for cells in belief.answers if len(cells) > 1))
        posterior = belief.single[belief.cells.labels] * belief.cells.inside
        order = np.argsort(-posterior, kind="stable")
        sums = np.cumsum(posterior[order])
        held = int(np.searchsorted(sums, self.rules.confidence * sums[-1])) + 1
        among = tuple(sorted(int(place) + 1 for place in order[:held]))
        size, interval, seen = difference(self.levels, belief.length, self.rules)
        return SearchVerdict(
            "undecided", 0, belief.length, float(sums[held - 1]), size, interval, seen, self.levels.total,
            among=among,
        )  # fmt: skip

    def _anywhere(self) -> Measure | None:
        """Return what tells levels that vary from steps: second rounds, then positions between others."""
        for position in self.belief.measured[1:]:
            if self.levels.rounds(position) < 2:
                return Measure((position,))
        more = widest(self.belief.cells, self.unusable)
        return None if more is None else Measure((more,))

    def _once_more(self, cell: int) -> Measure | None:
        """Return rounds of bad, or of others after the change, if bad seems to differ; else None."""
        found, bad = self.belief.likeliest((cell,)), self.belief.length
        large = [step for step in found.cells if step not in found.lesser]
        rows = np.asarray(self.belief.cells.after[large].all(axis=0))
        others = [at for at, has in zip(self.belief.measured[1:], rows, strict=True) if has and at != bad]
        if not others:
            return None
        values = self.levels.grid.values
        shared = shared_level(self.levels, self.rules, others, near_good=False)
        after = float(shared @ values / shared.sum())
        off = abs(float(self.levels.distribution(bad) @ values) - after)
        if off < max(math.log1p(self.rules.threshold), LEFT_OVER_SHARE * abs(after)):
            return None
        known = sum(self.levels.rounds(position) for position in others)
        place = others[0] if known < self.levels.rounds(bad) else bad
        return Measure((place,), 1 + self.levels.rounds(place) // 4)

    def _single(self, cell: int, mass: float) -> SearchVerdict:
        found = self.belief.likeliest((cell,))
        step = self._step(found, cell, mass)
        undone = tuple(self._step(found, other, mass) for cells in found.undone for other in cells)
        kind: Kind = "culprit" if len(step.among) == 1 else "range"
        seen = difference(self.levels, self.belief.length, self.rules)[2]
        return SearchVerdict(
            kind, step.low, step.high, mass, step.size, step.interval, seen, self.levels.total, (step,),
            undone=undone, among=step.among,
        )  # fmt: skip

    def _several(self, answer: Sequence[int]) -> SearchVerdict:
        belief = self.belief
        found = belief.likeliest(tuple(answer))
        mass = belief.answers[tuple(answer)]
        steps = tuple(self._step(found, cell, mass) for cell in answer)
        undone = tuple(self._step(found, other, mass) for cells in found.undone for other in cells)
        size, interval, seen = difference(self.levels, belief.length, self.rules)
        kind: Kind = "two-steps" if len(answer) == 2 else "several-steps"
        return SearchVerdict(
            kind, 0, belief.length, belief.several, size, interval, seen, self.levels.total, steps,
            undone=undone,
        )  # fmt: skip

    def _step(self, found: StepExplanation, cell: int, mass: float) -> LevelStep:
        """Return the change from positions with the steps before this one to those that have it as well."""
        which = found.cells.index(cell)
        groups = self.belief.groups(found.cells)
        measured = np.array(self.belief.measured[1:])
        without = list(map(int, measured[groups == (1 << which) - 1]))
        with_it = list(map(int, measured[groups == (2 << which) - 1]))
        low = shared_level(self.levels, self.rules, without, near_good=which == 0)
        high = shared_level(self.levels, self.rules, with_it, near_good=False)
        size, interval = change_between(self.levels, self.rules, low, high)
        members = self.belief.cells.members(cell)
        return LevelStep(*self._ends(members), mass, size, interval, members)

    def _ends(self, members: Sequence[int]) -> tuple[int, int]:
        """Return a position without these candidates, the parent of a single one, and a measured one with."""
        ancestry, measured = self.belief.cells.ancestry, self.belief.measured[1:]
        contains = ancestry.contains
        columns = [member - 1 for member in members]
        having = [at for at in measured if contains[at, columns].all()]
        last = members[-1]
        high = last if last in measured else min(having, key=lambda at: int(contains[at].sum()))
        if len(members) == 1 and ancestry.parent(last) not in self.unusable:
            return ancestry.parent(last), high
        lacking = [at for at in measured if contains[high, at - 1] and not contains[at, columns].any()]
        return max(lacking, key=lambda at: int(contains[at].sum()), default=0), high
