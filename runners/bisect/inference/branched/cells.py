"""Cells of candidates that no measured commit tells apart, when candidates are no single line.

A measured commit has the candidates among its ancestors, or not. Candidates that the same measured commits
have explain the rounds equally well: they are a cell. On a line, these are the commits between two measured
ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.inference.level_likelihood import Array

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """The cells, k of them, after c positions were measured, bad the last of them."""

    ancestry: Ancestry
    measured: tuple[int, ...]
    """(c,) the measured positions, ascending, without good."""

    prior: Array
    """(n,) the prior probabilities of the candidates, in any unit."""

    @cached_property
    def _split(self) -> tuple[Bools, NDArray[np.intp]]:
        rows = self.ancestry.contains[list(self.measured)]
        labels = np.zeros(self.ancestry.length, np.intp)
        for row in rows:
            labels = np.unique(2 * labels + row, return_inverse=True)[1]
        # In the order of their first candidates.
        firsts = np.unique(labels, return_index=True)[1]
        order = np.argsort(np.argsort(firsts))
        return rows[:, np.sort(firsts)].T, order[labels]

    @property
    def after(self) -> Bools:
        """(k, c) whether a measured position has the candidates of a cell."""
        return self._split[0]

    @property
    def labels(self) -> NDArray[np.intp]:
        """(n,) the cell of every candidate."""
        return self._split[1]

    @property
    def count(self) -> int:
        """The number of cells, k."""
        return len(self.after)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """(k,) the number of candidates of each cell."""
        return np.bincount(self.labels, minlength=self.count)

    @cached_property
    def shares(self) -> Array:
        """(k,) the prior probabilities of the cells; their sum is 1."""
        return np.asarray(np.bincount(self.labels, self.prior, self.count) / self.prior.sum())

    @cached_property
    def inside(self) -> Array:
        """(n,) the prior probability of every candidate within its cell."""
        return np.asarray(self.prior / (self.shares * self.prior.sum())[self.labels])

    @cached_property
    def fractions(self) -> Array:
        """(n + 1, k) the share of each cell among the ancestors of each position: 0, 1, or between."""
        weights = np.zeros((self.ancestry.length, self.count), np.float32)
        weights[np.arange(self.ancestry.length), self.labels] = self.inside
        found = np.asarray(self.ancestry.weights @ weights, np.float64)
        # Sums of single precision miss 0 and 1 by a little.
        found[found < 1e-5] = 0.0
        found[found > 1 - 1e-5] = 1.0
        return found

    def members(self, cell: int) -> tuple[int, ...]:
        """Return the positions of the candidates of a cell, ascending."""
        return tuple(int(place) + 1 for place in np.flatnonzero(self.labels == cell))

    def splits(self, unusable: set[int]) -> Bools:
        """Return (n + 1, k) whether measuring a position would divide a cell; never for unusable ones."""
        found = np.asarray((self.fractions > 0) & (self.fractions < 1))
        found[sorted({0, *unusable})] = False
        return found
