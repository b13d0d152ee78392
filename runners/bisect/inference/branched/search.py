"""The search among commits of merged branches: a Search for which ancestors say what a commit has."""

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.domain.rules import Measure, Rules, SearchVerdict
from runners.bisect.inference.branched.belief import BranchedBelief, BranchedEvidence
from runners.bisect.inference.branched.probes import likely, places, widest
from runners.bisect.inference.branched.stopping import Stopping
from runners.bisect.inference.next_probe import Costs, best_of, is_exhausted, may_vary
from runners.bisect.inference.search import Search


class BranchedSearch(Search):
    """A Search whose candidates have the parents that `ancestry` says.

    A measurement says of a commit whether it has the culprit among its ancestors, or is it.
    """

    def __init__(
        self, ancestry: Ancestry, rules: Rules | None = None, build_cost_rounds: float = 2.5
    ) -> None:
        super().__init__(ancestry.length, rules, build_cost_rounds)
        self._ancestry = ancestry

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The posterior probabilities, as of Search."""
        belief = self._branched()
        single = belief.single[belief.cells.labels] * belief.cells.inside
        return np.concatenate([[max(1.0 - float(belief.single.sum()), 0.0)], single])

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions that are worth compiling ahead, likeliest first; none is built."""
        usable = np.ones(self.length + 1, bool)
        usable[sorted({0} | self._excluded | self._built)] = False
        return likely(self.posterior[1:], self._ancestry.weights, usable, count)

    def _among_candidates(self, *, spent: bool) -> Measure | SearchVerdict:
        belief = self._branched()
        stopping = Stopping(belief, self._levels, self.rules, self._excluded)
        decided = stopping.decide()
        if isinstance(decided, SearchVerdict) or (decided is not None and not spent):
            return decided
        if spent:
            return stopping.give_up()
        costs = Costs(self._build_cost_rounds, self._built)
        asked = places(belief, self._excluded, self._built)
        probe = best_of(asked, self._levels, belief.scale, self.rules, costs)
        if probe is not None and not is_exhausted(belief, probe):
            return probe.measure
        more = widest(belief.cells, self._excluded) if may_vary(belief) else None
        return stopping.give_up() if more is None else Measure((more,))

    def _branched(self) -> BranchedBelief:
        belief = self._believed()
        assert isinstance(belief, BranchedBelief)
        return belief

    def _believe(self) -> BranchedBelief:
        return BranchedEvidence(self._levels, self.rules, self._prior, self._ancestry).belief()
