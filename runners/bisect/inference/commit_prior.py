"""How likely each commit is to be the culprit before its rounds: equally, or as something else suggests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CommitPrior:
    """The prior probability of one step at each commit, given that there is one."""

    cumulative: Array
    """(length + 1,): the sums over the first 0, 1, ... commits, in units in which a mean commit has 1."""

    @property
    def length(self) -> int:
        """The number of commits."""
        return len(self.cumulative) - 1

    def shares(self, measured: tuple[int, ...]) -> Array:
        """Return the probabilities, (cells,), of the cells between these positions."""
        return np.asarray(np.diff(self.cumulative[list(measured)]) / self.length)

    def share(self, low: int, position: int, high: int) -> float:
        """Return which share of the cell from `low` to `high` lies up to `position`."""
        whole = self.cumulative[high] - self.cumulative[low]
        return float((self.cumulative[position] - self.cumulative[low]) / whole)

    def dividing(self, low: int, high: int, share: float) -> float:
        """Return the place, between positions, up to which `share` of the cell from `low` to `high` lies."""
        sums = self.cumulative[low : high + 1]
        wanted = sums[0] + share * (sums[-1] - sums[0])
        return float(np.interp(wanted, sums, np.arange(low, high + 1, dtype=float)))

    def of_commits(self, cells: Array, measured: tuple[int, ...]) -> Array:
        """Return the probabilities, (length,), of the commits from those of the cells that they lie in."""
        sizes = np.diff(measured)
        inside = np.repeat(np.diff(self.cumulative[list(measured)]), sizes)
        return np.asarray(np.repeat(cells, sizes) * np.diff(self.cumulative) / inside)


def uniform(length: int) -> CommitPrior:
    """Return the prior by which every one of `length` commits is equally likely."""
    return CommitPrior(np.arange(length + 1, dtype=float))


def suggested(weights: Array, trust: float) -> CommitPrior:
    """Return the prior by which the culprit is as `weights` say with probability `trust`, else any commit.

    `weights` are probabilities, (length,), with a sum of 1.
    """
    length = len(weights)
    mixed = trust * length * weights + (1 - trust)
    return CommitPrior(np.concatenate([[0.0], np.cumsum(mixed)]))
