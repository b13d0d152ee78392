"""How likely each level of a measured position is, for every size of noise: the only place that sees rounds.

A level is the log ratio to good that a commit would have without noise. Noise is Student's t with a scale
that nobody knows, the same everywhere; both live on grids, so that levels and noise are integrated out by
sums. A position's own wobble is integrated out first, so that ever more rounds of one position do not make
its neighbours certain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FREEDOM = 5.0
"""Degrees of freedom of the noise: as heavy as tails of rounds get; costs Gaussian noise a twentieth."""

INFORMATION = (FREEDOM + 1) / (FREEDOM + 3)
"""What one round tells of a level, in units of 1 / scale^2 (Fisher's information of Student's t)."""

SCALES = 0.004 * 1.3 ** np.arange(16)
"""The grid of the noise's scale: 0.4 to 20 % a round."""

TYPICAL_SCALE = 0.025
SCALE_SPREAD = 0.7
"""The prior of the scale is lognormal: 0.6 to 10 % in 95 of 100 cases."""

POINTS = 321
HALF_WIDTH = 0.4
"""The grid of levels reaches from -0.4 to 0.4, or twice, four times ... as far when positions lie beyond."""

MOST_DOUBLINGS = 4
FLOOR = 1e-300


@dataclass(frozen=True)
class Grid:
    """Evenly spaced levels around zero."""

    values: Array
    """(POINTS,) ascending."""

    wobble: float
    """Of a position, but at least one spacing, so that no likelihood is narrower than the grid."""

    @property
    def spacing(self) -> float:
        """Between neighbours."""
        return float(self.values[1] - self.values[0])

    def index(self, levels: Array) -> NDArray[np.intp]:
        """Of the nearest grid point; levels beyond the grid get its end."""
        found = np.rint((levels - self.values[0]) / self.spacing).astype(np.intp)
        return np.clip(found, 0, len(self.values) - 1)


@lru_cache(maxsize=16)
def grid_of(doublings: int, wobble: float) -> Grid:
    """The grid that is 2 ** doublings times the narrowest."""
    half = HALF_WIDTH * 2**doublings
    values = np.linspace(-half, half, POINTS)
    return Grid(values, max(wobble, float(values[1] - values[0])))


@lru_cache(maxsize=64)
def kernel(doublings: int, deviation: float) -> Array:
    """(POINTS, POINTS): row g has the probabilities of grid points around g, normal with `deviation`."""
    values = grid_of(doublings, deviation).values
    weights = np.exp(-0.5 * ((values[:, None] - values[None, :]) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def blurred(logs: Array, doublings: int, deviation: float) -> Array:
    """(..., POINTS) log-likelihoods of levels that a normal deviation was added to."""
    highest = logs.max(axis=-1, keepdims=True)
    mixed = np.exp(logs - highest) @ kernel(doublings, deviation).T
    return np.asarray(np.log(np.maximum(mixed, FLOOR)) + highest)


def scale_prior() -> Array:
    """(scales,) log-probabilities."""
    logs = -0.5 * (np.log(SCALES / TYPICAL_SCALE) / SCALE_SPREAD) ** 2
    return np.asarray(logs - np.logaddexp.reduce(logs))


class Levels:
    """Log-likelihoods of the levels of measured positions."""

    def __init__(self, wobble: float) -> None:
        self._wobble = wobble
        self._rounds: dict[int, list[float]] = {}
        self._doublings = 0
        self._raw: dict[int, Array] = {}
        self._smooth: dict[int, Array] = {}

    def add(self, position: int, log_ratio: float) -> None:
        """One round of a position."""
        self._rounds.setdefault(position, []).append(log_ratio)
        self._smooth.pop(position, None)
        doublings = self._needed()
        if doublings != self._doublings:
            self._doublings = doublings
            self._raw = {each: self._likelihood(rounds) for each, rounds in self._rounds.items()}
            self._smooth.clear()
        elif position in self._raw:
            self._raw[position] = self._raw[position] + self._likelihood([log_ratio])
        else:
            self._raw[position] = self._likelihood([log_ratio])

    @property
    def grid(self) -> Grid:
        """The levels that likelihoods are for."""
        return grid_of(self._doublings, self._wobble)

    @property
    def doublings(self) -> int:
        """How often the grid was widened."""
        return self._doublings

    @property
    def positions(self) -> tuple[int, ...]:
        """The measured ones, ascending."""
        return tuple(sorted(self._rounds))

    def rounds(self, position: int) -> int:
        """How many a position has."""
        return len(self._rounds.get(position, ()))

    @property
    def total(self) -> int:
        """Rounds of all positions."""
        return sum(len(each) for each in self._rounds.values())

    def likelihood(self, position: int) -> Array:
        """(scales, levels): of the level that the position shares with others like it, its wobble apart."""
        if position not in self._smooth:
            self._smooth[position] = blurred(self._raw[position], self._doublings, self.grid.wobble)
        return self._smooth[position]

    def of_position(self, position: int) -> Array:
        """(scales, levels): of the position's own level, wobble included."""
        return self._raw[position]

    def _likelihood(self, rounds: Sequence[float]) -> Array:
        """(scales, levels) summed round by round, in order, so that a replay is exact."""
        total: Array = np.zeros((len(SCALES), POINTS))
        values = self.grid.values
        for each in rounds:
            squares = (each - values) ** 2
            total = total - (FREEDOM + 1) / 2 * np.log1p(squares[None, :] / (FREEDOM * SCALES[:, None] ** 2))
            total = total - np.log(SCALES)[:, None]
        return total

    def _needed(self) -> int:
        """Doublings of the grid that reach the medians of all positions with three rounds or more."""
        medians = [abs(float(np.median(each))) for each in self._rounds.values() if len(each) >= 3]
        reach = 1.2 * max(medians, default=0.0) + 0.1
        if reach <= HALF_WIDTH:
            return 0
        return min(math.ceil(math.log2(reach / HALF_WIDTH)), MOST_DOUBLINGS)
