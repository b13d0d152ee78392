"""Memory that a server takes and keeps with every query, where its base does not: a leak."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from history.comparison.pairs import StepPairs
from history.stats.distributions import student_quantile
from suites.metrics import BUFFER_POOL, EQUAL_WORK, MEMORY_GROWTH

PRIOR_ROUNDS = 10
"""The rounds whose weight the expected scatter has, in degrees of freedom."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval."""

    value: float
    low: float
    high: float


def moderated(values: Sequence[float], expected: float, error: float) -> Estimate:
    """Return the mean of rounds, and an interval that misses it with a probability of `error` in all.

    `expected` is the standard deviation of a round that is known beforehand. Raises ValueError without
    values.
    """
    if not values:
        raise ValueError("no rounds")
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    freedom = PRIOR_ROUNDS + len(values) - 1
    deviation = math.sqrt((PRIOR_ROUNDS * expected**2 + squares) / freedom)
    margin = student_quantile(freedom, 1 - error / 2) * deviation / math.sqrt(len(values))
    return Estimate(mean, mean - margin, mean + margin)


FALSE_FINDINGS = 0.00025
"""How often a contender that equals its base may have a finding in any step, in either direction: 0.1 % in a
session of a base and four contenders."""

CONFIDENCE = 0.98
"""That of the intervals that are told of both versions."""

MIN_GROWTH = 20.0
"""The difference in bytes per query that is worth a person's time: a gigabyte in 50 million queries."""

MIN_SHARE = 0.5
"""The share of the base's own growth that it is at least: a server that still fills its caches grows by what
it puts there, of which a little more is no leak."""

EXPECTED_KIB, EXPECTED_KIB_WITH_POOL = 64, 128
"""The standard deviation of the difference of two equal servers over the queries of a round, and of servers
with a buffer pool in their own memory, whose used part is read a moment later."""

MIN_ROUNDS = 2


@dataclass(frozen=True)
class MemoryGrowth:
    """The growth of memory of two versions in the rounds of one step."""

    pairs: StepPairs
    error: float
    """The probability up to which equal versions may be told apart, in either direction."""

    @property
    def is_worse(self) -> bool:
        """Whether the contender certainly grows by more than the base."""
        base, contender = self._rounds
        return self._is_more(contender, base)

    @property
    def is_better(self) -> bool:
        """Whether the base certainly grows by more than the contender."""
        base, contender = self._rounds
        return self._is_more(base, contender)

    @property
    def text(self) -> str:
        """The growth of both versions with its interval, in one line."""
        base, contender = map(self._grows, self._rounds)
        return f"server memory grows by {contender}, base {base}".replace(" (", " bytes a query (", 1)

    @property
    def _rounds(self) -> tuple[list[float], list[float]]:
        return self.pairs.values(MEMORY_GROWTH)

    @property
    def _expected(self) -> float:
        """The standard deviation of a difference that equal versions have, in bytes per query."""
        work, _ = self.pairs.values(EQUAL_WORK)
        has_pool = any(
            BUFFER_POOL in side for pair in self.pairs.pairs for side in (pair.base, pair.contender)
        )
        expected = EXPECTED_KIB_WITH_POOL if has_pool else EXPECTED_KIB
        return expected * 1024 * len(work) / sum(work)

    def _is_more(self, grown: Sequence[float], others: Sequence[float]) -> bool:
        apart = [
            more - less - max(MIN_GROWTH, MIN_SHARE * less) for more, less in zip(grown, others, strict=True)
        ]
        return moderated(apart, self._expected, self.error).low > 0

    def _grows(self, rounds: Sequence[float]) -> str:
        grown = moderated(rounds, self._expected, 1 - CONFIDENCE)
        value, low, high = (f"{round(number):,}" for number in (grown.value, grown.low, grown.high))
        return f"{value} ({low} to {high})"


def memory_growth(paired: Sequence[StepPairs]) -> Iterator[MemoryGrowth]:
    """Yield the steps in which memory certainly grows with the queries of one version alone."""
    measured = [
        step for step in paired if len(step.rounds(MEMORY_GROWTH)) >= MIN_ROUNDS and step.rounds(EQUAL_WORK)
    ]
    for step in measured:
        growth = MemoryGrowth(step, FALSE_FINDINGS / len(measured))
        if growth.is_worse or growth.is_better:
            yield growth
