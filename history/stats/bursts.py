"""Blocks that background work reached which comes in bursts: what they say of two versions is chance.

A vacuum writes as much log as thousands of queries, and comes to two versions in different blocks. How much
of it a few blocks have is a matter of when they began.
"""

from collections.abc import Collection, Iterable, Sequence

from history.stats.estimators import MINIMUM_REPETITIONS

AFTER = 1
"""The blocks after a burst that it still slows down: what it has dirtied is logged as whole pages, and comes
back into the cache."""

MIN_SHARE = 1 / 3
"""The share of the blocks that has to remain. Where less would, bursts are the usual, and belong to all."""


def are_alike(versions: Iterable[str]) -> bool:
    """Return whether versions are of one engine, and therefore do the same work in the background.

    InnoDB purges at all times. Beside it, a Postgres that is never seen at its vacuums would be too fast.
    """
    return len({version.partition("@")[0] for version in versions}) <= 1


def blocks_with_bursts(numbers: Sequence[int], bursts: Collection[int]) -> frozenset[int]:
    """Return those of the blocks `numbers` that are left out: in `bursts`, or at most AFTER of one of them.

    None is left out if fewer than MIN_SHARE of them, or than an interval needs, would remain. What decides
    is the work that was seen, not what was measured: with equal versions the estimate keeps its mean.
    """
    reached = {burst + later for burst in bursts for later in range(AFTER + 1)}
    found = frozenset(number for number in numbers if number in reached)
    remaining = len(numbers) - len(found)
    return found if remaining >= max(MINIMUM_REPETITIONS, MIN_SHARE * len(numbers)) else frozenset()
