"""The search: it takes observations, and returns what to measure next or a verdict. Deterministic, no I/O."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.rules import Direction, Kind, LevelStep, Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.commit_prior import CommitPrior, uniform
from runners.bisect.inference.level_likelihood import Levels, quantiles
from runners.bisect.inference.next_probe import Costs, choose, is_exhausted, may_vary, nearest_usable, widest
from runners.bisect.inference.posterior import Belief, believe
from runners.bisect.inference.sequential_test import SequentialResult, confirm
from runners.bisect.inference.stopping import decide, give_up, unconfirmed

__all__ = ["Direction", "Kind", "Measure", "Observation", "Rules", "Search", "LevelStep", "SearchVerdict"]

CONFIRMING_SHARE = 10
"""While bad is being confirmed, it is tested after every round at first, later after a tenth more rounds."""


class Search:
    """Noisy binary search for the commit between good (position 0) and bad (position `length`).

    Its answers are a function of length, rules, build cost, and of the observations, exclusions and builds
    that it was given: a replay in the same order gives the same answers to the last bit. The order says
    whether ratios move while the search goes on, and nothing else.

    length: candidates, bad included; at least 1. build_cost_rounds: what compiling a new position costs, in
    rounds. Raises ValueError for positions out of range.
    """

    def __init__(self, length: int, rules: Rules | None = None, build_cost_rounds: float = 2.5) -> None:
        if length < 1 or build_cost_rounds < 0:
            raise ValueError(
                f"length must be at least 1 and build cost at least 0, got {length} and {build_cost_rounds}"
            )
        self.length, self.rules = length, rules or Rules()
        self._build_cost_rounds = build_cost_rounds
        self._levels = Levels(self.rules)
        self._bad = Levels(self.rules)
        self._prior = uniform(length)
        self._excluded: set[int] = set()
        self._built = {0, length}
        self._belief: Belief | None = None
        self._confirmation: SequentialResult | None = None

    def observe(self, observation: Observation) -> None:
        """Add one round of one position. Raises ValueError for position 0 or beyond bad."""
        self._check(observation.position)
        self._levels.add(observation.position, observation.log_ratio)
        self._built.add(observation.position)
        self._belief = None
        if observation.position == self.length:
            self._bad.add(observation.position, observation.log_ratio)
            self._confirmation = None

    def observe_all(self, observations: Iterable[Observation]) -> None:
        """Add several observations in order, for a replay."""
        for observation in observations:
            self.observe(observation)

    def exclude(self, position: int) -> None:
        """Exclude a position that does not compile or start. Raises ValueError for bad, which has to."""
        self._check(position)
        if position == self.length:
            raise ValueError("bad cannot be excluded: it has to compile and start")
        self._excluded.add(position)

    def built(self, position: int) -> None:
        """Mark a position as compiled, so that measuring it costs rounds only."""
        self._check(position)
        self._built.add(position)

    def expect(self, prior: CommitPrior | None) -> None:
        """Take `prior` as what is known of the commits apart from the rounds; None for nothing."""
        self._prior = uniform(self.length) if prior is None else prior
        self._belief = None

    @property
    def is_confirmed(self) -> bool:
        """Whether the rounds of bad have confirmed that it differs in the direction that was asked for."""
        return self._tested().state == "change"

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The posterior probabilities, (length + 1,), with a sum of 1.

        At index k >= 1 that there is one change, which first appears at position k; at index 0 that there is
        no single culprit but none, several steps or a slope. Before bad has a round it is the prior.
        """
        belief = self._believed()
        single = self._prior.of_commits(belief.single, belief.measured)
        return np.concatenate([[max(1.0 - float(belief.single.sum()), 0.0)], single])

    @property
    def alternatives(self) -> dict[str, float]:
        """The probabilities of the hypotheses, by their names; their sum is 1."""
        belief = self._believed()
        return {
            "single": float(belief.single.sum()),
            "none": belief.none,
            "several-steps": belief.several,
            "slope": belief.slope,
            "varying": belief.varying,
            "moving": belief.moving,
        }

    def rounds(self, position: int) -> int:
        """Return the number of rounds of a position."""
        return self._levels.rounds(position)

    def is_built(self, position: int) -> bool:
        """Return whether a position is known to be compiled."""
        return position in self._built

    def level(self, position: int) -> tuple[float, float, float]:
        """Return the ratio of a measured position to good: median and interval, by the rules.

        Only the rounds of the position itself count. Raises ValueError for one without rounds.
        """
        if not self._levels.rounds(position):
            raise ValueError(f"position {position} has no rounds")
        weights = self._levels.distribution(position)
        middle, low, high = quantiles(self._levels.grid.values, weights, self.rules.confidence)
        return float(np.exp(middle)), float(np.exp(low)), float(np.exp(high))

    def next(self) -> Measure | SearchVerdict:
        """Return what to measure next, or the verdict; takes well under a second for 4,096 candidates."""
        bad = Measure((self.length,))
        rounds = self._levels.rounds(self.length)
        if rounds < self.rules.least_rounds:
            return Measure(bad.positions, self.rules.least_rounds - rounds)
        tested = self._tested()
        spent = self._levels.total >= self.rules.most_rounds
        if tested.state == "open" and not spent and rounds < self.rules.most_confirming:
            return Measure(bad.positions, 1 + rounds // CONFIRMING_SHARE)
        if tested.state != "change":
            return unconfirmed(tested, self._levels, self.rules, self.length)
        return self._among_candidates(spent=spent)

    def _among_candidates(self, *, spent: bool) -> Measure | SearchVerdict:
        """Return what to measure next, or the verdict, once bad is known to differ."""
        belief = self._believed()
        decided = decide(belief, self._levels, self.rules, self._excluded)
        if isinstance(decided, SearchVerdict) or (decided is not None and not spent):
            return decided
        if spent:
            return give_up(belief, self._levels, self.rules)
        costs = Costs(self._build_cost_rounds, self._built)
        probe = choose(belief, self._levels, self.rules, self._excluded, costs)
        if probe is not None and not is_exhausted(belief, probe):
            return probe.measure
        more = widest(belief, self._excluded) if may_vary(belief) else None
        return give_up(belief, self._levels, self.rules) if more is None else Measure((more,))

    def likely_next(self, count: int) -> tuple[int, ...]:
        """Return at most `count` positions that are worth compiling ahead, likeliest first; none is built.

        The median of the posterior, then the medians of the halves that its answer would leave, and so on.
        """
        posterior = self.posterior[1:]
        # Rounding must not decide between neighbours.
        sums = np.cumsum(posterior) / max(float(posterior.sum()), 1e-300) + 1e-9
        positions: list[int] = []
        parts = 2
        while len(positions) < count and parts <= 2 * self.length:
            for share in np.arange(1, parts, 2) / parts:
                position = self._near(int(np.searchsorted(sums, share)) + 1, positions)
                if position is not None and len(positions) < count:
                    positions.append(position)
            parts *= 2
        return tuple(positions)

    def _tested(self) -> SequentialResult:
        self._confirmation = self._confirmation or confirm(self._bad, self.length, self.rules)
        return self._confirmation

    def _near(self, wanted: int, known: list[int]) -> int | None:
        """Return the usable position closest to `wanted` in its cell that is neither built nor in `known`."""
        measured = np.array(self._believed().measured)
        cell = min(int(np.searchsorted(measured, wanted)), len(measured) - 1)
        unusable = self._excluded | self._built | set(known)
        return nearest_usable(int(measured[cell - 1]), int(measured[cell]), wanted, unusable)

    def _believed(self) -> Belief:
        if self._belief is None:
            self._belief = self._believe()
        return self._belief

    def _believe(self) -> Belief:
        return believe(self._levels, self.rules, self._prior)

    def _check(self, position: int) -> None:
        if not 1 <= position <= self.length:
            raise ValueError(f"position must lie between 1 and {self.length}, got {position}")
