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
from statistics import median

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

SURE_ROUNDS = 3
"""Of a position before its median widens the grid: one stalled round must not."""

FLOOR = 1e-300

RULED_OUT = 12.0
"""Nats by which a scale of noise has to be behind the likeliest to be left out."""


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
        return np.asarray(np.clip(found, 0, len(self.values) - 1))


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
    """Log-likelihoods of the levels of measured positions, for every scale of noise that is still likely."""

    def __init__(self, wobble: float) -> None:
        self._wobble = wobble
        self._rounds: dict[int, list[float]] = {}
        self._medians: dict[int, float] = {}
        self._doublings = 0
        self._raw: dict[int, Array] = {}
        self._scale_weights: dict[int, Array] = {}
        self._scales: NDArray[np.intp] = np.arange(len(SCALES))
        self._blurred: dict[int, dict[float, Array]] = {}

    def add(self, position: int, log_ratio: float) -> None:
        """One round of a position."""
        rounds = self._rounds.setdefault(position, [])
        rounds.append(log_ratio)
        if len(rounds) >= SURE_ROUNDS:
            self._medians[position] = abs(median(rounds))
        doublings = self._needed()
        if doublings != self._doublings:
            self._doublings = doublings
            for each, values in self._rounds.items():
                self._take(each, self._likelihood(values))
        elif position in self._raw:
            self._take(position, self._raw[position] + self._likelihood([log_ratio]))
        else:
            self._take(position, self._likelihood([log_ratio]))
        self._look_at_scales()

    @property
    def grid(self) -> Grid:
        """The levels that likelihoods are for."""
        return grid_of(self._doublings, self._wobble)

    @property
    def positions(self) -> tuple[int, ...]:
        """The measured ones, ascending."""
        return tuple(sorted(self._rounds))

    @property
    def scales(self) -> Array:
        """(scales,) of the noise, those that are still likely."""
        return np.asarray(SCALES[self._scales])

    @property
    def scale_prior(self) -> Array:
        """(scales,) their log-probabilities before any round."""
        return np.asarray(scale_prior()[self._scales])

    @property
    def total(self) -> int:
        """Rounds of all positions."""
        return sum(len(each) for each in self._rounds.values())

    def rounds(self, position: int) -> int:
        """How many a position has."""
        return len(self._rounds.get(position, ()))

    def likelihood(self, position: int, deviation: float = 0.0) -> Array:
        """(scales, levels): of a level that positions share, from which each lies off by its wobble.

        `deviation` is what they lie off by when it is more.
        """
        if position not in self._raw:
            return self.of_position(position)
        deviation = max(deviation, self.grid.wobble)
        kept = self._blurred[position]
        if deviation not in kept:
            kept[deviation] = blurred(self.of_position(position), self._doublings, deviation)
        return kept[deviation]

    def of_position(self, position: int) -> Array:
        """(scales, levels): of the position's own level, wobble included; flat without rounds."""
        if position not in self._raw:
            return np.zeros((len(self._scales), POINTS))
        return np.asarray(self._raw[position][self._scales])

    def distribution(self, position: int) -> Array:
        """(levels,) probabilities of the position's own level by its own rounds, from a flat prior."""
        density = total(self.of_position(position) + self.scale_prior[:, None], axis=0)
        weights = np.exp(density - density.max())
        return np.asarray(weights / weights.sum())

    def _take(self, position: int, raw: Array) -> None:
        self._raw[position] = raw
        self._scale_weights[position] = total(raw, axis=1)
        self._blurred[position] = {}

    def _look_at_scales(self) -> None:
        """Leave out scales that the rounds rule out, whatever the levels are."""
        weights = sum(self._scale_weights.values()) + scale_prior()
        scales = np.flatnonzero(weights >= weights.max() - RULED_OUT)
        if not np.array_equal(scales, self._scales):
            self._scales = scales
            self._blurred = {each: {} for each in self._raw}

    def _likelihood(self, rounds: Sequence[float]) -> Array:
        """(scales, levels) summed round by round, in order, so that a replay is exact."""
        summed: Array = np.zeros((len(SCALES), POINTS))
        values = self.grid.values
        for each in rounds:
            squares = (each - values) ** 2
            summed = summed - (FREEDOM + 1) / 2 * np.log1p(
                squares[None, :] / (FREEDOM * SCALES[:, None] ** 2)
            )
            summed = summed - np.log(SCALES)[:, None]
        return summed

    def _needed(self) -> int:
        """Doublings of the grid that reach the medians of all positions with enough rounds to have one."""
        reach = 1.2 * max(self._medians.values(), default=0.0) + 0.1
        if reach <= HALF_WIDTH:
            return 0
        return min(math.ceil(math.log2(reach / HALF_WIDTH)), MOST_DOUBLINGS)


def total(logs: Array, axis: int | None = None) -> Array:
    """The logarithm of the sum of exp(logs)."""
    highest = logs.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(logs - highest).sum(axis=axis, keepdims=True)) + highest
    return np.asarray(summed.reshape(()) if axis is None else np.squeeze(summed, axis))
