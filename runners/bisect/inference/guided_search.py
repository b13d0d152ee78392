"""A search by rounds that counts of instructions guide: they say where to time, and timing decides.

Counts of single passes locate a change among many commits without a round of any of them. What they say is
taken as the prior of the search by rounds, and for no more than TRUST of it: the commit that counts name is
not named before its rounds, and those of the commit before it, have confirmed it, and where they contradict,
the search goes on among all commits, as it does without counts. Deterministic, no I/O.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.domain.rules import Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.branched.search import BranchedSearch
from runners.bisect.inference.commit_prior import CommitPrior, suggested
from runners.bisect.inference.explanations import LESSER
from runners.bisect.inference.search import Search

TRUST = 0.8
"""The prior probability that a change of the metric is where the counts change, if both differ at the ends.

Below the posterior at which a search stops, so that counts alone never name a commit."""

MIN_SHARE = LESSER
"""The share of the metric's change, in logarithms, that counts must change by to be taken for its cause."""


class GuidedSearch:
    """A Search, and one by counts that comes first where counts differ; without the latter, just the Search.

    length, rules, build_cost_rounds: as of Search. counted_rules: of the search by counts; None for none.
    ancestry: of candidates that are no single line; None for a line.
    """

    def __init__(
        self,
        length: int,
        rules: Rules,
        build_cost_rounds: float,
        counted_rules: Rules | None = None,
        ancestry: Ancestry | None = None,
    ) -> None:
        def search(rules: Rules) -> Search:
            if ancestry is None:
                return Search(length, rules, build_cost_rounds)
            return BranchedSearch(ancestry, rules, build_cost_rounds)

        self.timed = search(rules)
        self.counts = None if counted_rules is None else search(counted_rules)
        self.length, self.rules, self._ancestry = length, rules, ancestry
        self.is_counting = self.counts is not None
        """Whether anything can be counted; what was counted before still says where to measure."""

    def observe(self, observation: Observation) -> None:
        """Add one round, or one counted pass, of one position. Raises ValueError as Search does."""
        self.observe_all((observation,))

    def observe_all(self, observations: Iterable[Observation]) -> None:
        """Add several rounds or passes in order. Raises ValueError as Search does."""
        for observation in observations:
            if not observation.counted:
                self.timed.observe(observation)
            elif self.counts is not None:
                self.counts.observe(observation)
        self.timed.expect(self._suggestion())

    def exclude(self, position: int) -> None:
        """Exclude a position that does not compile or start. Raises ValueError for bad."""
        self.timed.exclude(position)
        self.leave_uncounted(position)

    def leave_uncounted(self, position: int) -> None:
        """Leave a position to rounds, as its pass failed; without good or bad nothing more is counted."""
        if position in (0, self.length):
            self.is_counting = False
        elif self.counts is not None:
            self.counts.exclude(position)

    def built(self, position: int) -> None:
        """Mark a position as compiled, so that measuring it costs rounds only."""
        self.timed.built(position)
        if self.counts is not None:
            self.counts.built(position)

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The posterior probabilities, as of Search, with what counts say as the prior."""
        return self.timed.posterior

    @property
    def alternatives(self) -> dict[str, float]:
        """The probabilities of the hypotheses, as of Search; their sum is 1."""
        return self.timed.alternatives

    def level(self, position: int) -> tuple[float, float, float]:
        """Return the ratio of a position with rounds to good: median and interval."""
        return self.timed.level(position)

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions that are worth compiling ahead, likeliest first."""
        return self.timed.likely_next(count)

    def foreseen(self, wanted: Measure) -> int | None:
        """Return the position that is likely to come after a measurement, and is not compiled; None without.

        The position is supposed to have the level of good or that of bad, whichever is likelier.
        """
        position, search = wanted.positions[0], self.counts if wanted.counted else self.timed
        if search is None or not search.rounds(self.length):
            return None
        ancestors = slice(position) if self._ancestry is None else self._ancestry.contains[position]
        has_change = float(search.posterior[1:][ancestors].sum()) >= 0.5
        level = math.log(search.level(self.length)[0]) if has_change else 0.0
        supposed = copy.deepcopy(self)
        for _ in range(wanted.rounds):
            supposed.observe(Observation(position, level, wanted.counted))
        after = supposed.next()
        if not isinstance(after, Measure) or self.timed.is_built(after.positions[0]):
            return None
        return after.positions[0]

    def next(self) -> Measure | SearchVerdict:
        """Return what to measure or count next, or the verdict."""
        answer = self.timed.next()
        if isinstance(answer, SearchVerdict) or not self.timed.is_confirmed:
            return answer
        if self.counts is None or not self.is_counting:
            return answer
        wanted = self.counts.next()
        if isinstance(wanted, SearchVerdict) or (self.counts.is_confirmed and not self._is_cause()):
            return answer
        return replace(wanted, counted=True)

    def counted_level(self, position: int) -> tuple[float, float, float]:
        """Return the ratio of a counted position's instructions to good's: median and interval."""
        if self.counts is None:
            raise ValueError("nothing is counted")
        return self.counts.level(position)

    def _is_cause(self) -> bool:
        """Whether bad's counts changed enough to be the cause of what its rounds show."""
        assert self.counts is not None
        counted, timed = self.counts.level(self.length)[0], self.timed.level(self.length)[0]
        return abs(math.log(counted)) >= MIN_SHARE * abs(math.log(timed))

    def _suggestion(self) -> CommitPrior | None:
        """Return what the counts say of the commits so far; None when it is nothing."""
        counts = self.counts
        if counts is None or not (self.timed.is_confirmed and counts.is_confirmed and self._is_cause()):
            return None
        verdict = counts.next()
        weights = np.zeros(self.length)
        if isinstance(verdict, SearchVerdict):
            # Of one step, of several, or of none.
            for step in verdict.steps:
                places = [place - 1 for place in step.suspects]
                weights[places] += 1 / len(places) / len(verdict.steps)
        else:
            weights = counts.posterior[1:]
        return suggested(weights / weights.sum(), TRUST) if weights.sum() > 0 else None
