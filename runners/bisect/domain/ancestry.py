"""Which candidates each commit has among its ancestors, when the candidates are no single line."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Parents = Sequence[Sequence[int]]
"""The parents of positions 1, 2, ... n as positions; 0 is good, and whatever is older than good."""


@dataclass(frozen=True)
class Ancestry:
    """The candidates between good (position 0) and bad (position n), ancestors before descendants."""

    parents: tuple[tuple[int, ...], ...]

    @property
    def length(self) -> int:
        """The number of candidates, n."""
        return len(self.parents)

    @cached_property
    def contains(self) -> NDArray[np.bool_]:
        """(n + 1, n) whether a position has candidate k + 1 among its ancestors, or is it; never good."""
        rows = np.zeros((self.length + 1, self.length), bool)
        for position, parents in enumerate(self.parents, 1):
            for parent in parents:
                rows[position] |= rows[parent]
            rows[position, position - 1] = True
        return rows

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """`contains` as numbers, for sums of probabilities over ancestors."""
        return self.contains.astype(np.float32)

    def parent(self, position: int) -> int:
        """Return the first parent of a position."""
        return next(iter(self.parents[position - 1]), 0)

    def trunk(self) -> tuple[int, ...]:
        """Return a line of positions to bad, without good: of parents, it has those with most candidates."""
        line = [self.length]
        while line[-1]:
            line.append(max(self.parents[line[-1] - 1], key=self._count, default=0))
        return tuple(reversed(line[:-1]))

    def new_in(self, position: int, before: int) -> tuple[int, ...]:
        """Return the candidates that a position has among its ancestors, or is, and `before` has not."""
        return tuple(map(int, np.flatnonzero(self.contains[position] & ~self.contains[before]) + 1))

    def _count(self, position: int) -> int:
        return int(self.contains[position].sum())


@lru_cache(maxsize=4)
def _shared(parents: tuple[tuple[int, ...], ...]) -> Ancestry:
    return Ancestry(parents)


def ancestry_of(parents: Parents) -> Ancestry | None:
    """Return the ancestry of a range that is no single line, shared by all searches of it; None for a line.

    Raises ValueError if a parent does not come before its child, or a position is no ancestor of the last.
    """
    if not parents:
        return None
    found = tuple(tuple(ups) for ups in parents)
    for position, ups in enumerate(found, 1):
        if not all(0 <= up < position for up in ups):
            raise ValueError(f"the parents of position {position} must come before it, got {ups}")
    ancestry = _shared(found)
    if not ancestry.contains[-1].all():
        raise ValueError("every candidate must be an ancestor of bad")
    return ancestry
