"""The likelihood of every level of a measured position, for every scale of noise, given its rounds.

A level is the log ratio to good that a commit would have without noise. Noise is Student's t with an unknown
scale that is the same at all positions; both are on grids, so that levels and noise are integrated out by
sums. The wobble of a position is integrated out first, so that any number of rounds of one position does not
make its neighbours certain.
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
"""Degrees of freedom of the noise, for the heaviest tails measured; Gaussian noise loses a twentieth."""

INFORMATION = (FREEDOM + 1) / (FREEDOM + 3)
"""The Fisher information of one round about a level, in units of 1 / scale^2, for Student's t."""

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
"""The rounds of a position before its median may widen the grid, so that one slow round does not."""

FLOOR = 1e-300

RULED_OUT = 12.0
"""The nats below the likeliest scale of noise from which on a scale is ignored."""


@dataclass(frozen=True)
class Grid:
    """Evenly spaced levels around zero."""

    values: Array
    """(POINTS,) ascending."""

    wobble: float
    """The wobble of a position, but at least one spacing, so that no likelihood is narrower than the grid."""

    @property
    def spacing(self) -> float:
        """The distance between neighbouring levels."""
        return float(self.values[1] - self.values[0])

    def index(self, levels: Array) -> NDArray[np.intp]:
        """Return the indices of the nearest grid points; levels beyond the grid get its end."""
        nearest = np.rint((levels - self.values[0]) / self.spacing).astype(np.intp)
        return np.asarray(np.clip(nearest, 0, len(self.values) - 1))


@lru_cache(maxsize=16)
def grid_of(doublings: int, wobble: float) -> Grid:
    """Return the grid that is 2 ** doublings times as wide as the narrowest one."""
    half = HALF_WIDTH * 2**doublings
    values = np.linspace(-half, half, POINTS)
    return Grid(values, max(wobble, float(values[1] - values[0])))


@lru_cache(maxsize=64)
def kernel(doublings: int, deviation: float) -> Array:
    """Return (POINTS, POINTS): row g has the probabilities of a normal `deviation` around g."""
    values = grid_of(doublings, deviation).values
    weights = np.exp(-0.5 * ((values[:, None] - values[None, :]) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def blurred(logs: Array, doublings: int, deviation: float) -> Array:
    """Return (..., POINTS) log-likelihoods of levels to which a normal deviation was added."""
    highest = logs.max(axis=-1, keepdims=True)
    mixed = np.exp(logs - highest) @ kernel(doublings, deviation).T
    return np.asarray(np.log(np.maximum(mixed, FLOOR)) + highest)


def scale_prior() -> Array:
    """Return the (scales,) prior log-probabilities of the scales of noise."""
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
        """Add one round of a position."""
        rounds = self._rounds.setdefault(position, [])
        rounds.append(log_ratio)
        if len(rounds) >= SURE_ROUNDS:
            self._medians[position] = abs(median(rounds))
        doublings = self._needed()
        if doublings != self._doublings:
            self._doublings = doublings
            for measured, values in self._rounds.items():
                self._store(measured, self._likelihood(values))
        elif position in self._raw:
            self._store(position, self._raw[position] + self._likelihood([log_ratio]))
        else:
            self._store(position, self._likelihood([log_ratio]))
        self._update_scales()

    @property
    def grid(self) -> Grid:
        """The levels that likelihoods are for."""
        return grid_of(self._doublings, self._wobble)

    @property
    def positions(self) -> tuple[int, ...]:
        """The measured positions, ascending."""
        return tuple(sorted(self._rounds))

    @property
    def scales(self) -> Array:
        """The scales of noise, (scales,), that are still likely."""
        return np.asarray(SCALES[self._scales])

    @property
    def scale_prior(self) -> Array:
        """The prior log-probabilities, (scales,), of the scales that are still likely."""
        return np.asarray(scale_prior()[self._scales])

    @property
    def total(self) -> int:
        """The number of rounds of all positions."""
        return sum(len(rounds) for rounds in self._rounds.values())

    def rounds(self, position: int) -> int:
        """Return the number of rounds of a position."""
        return len(self._rounds.get(position, ()))

    def likelihood(self, position: int, deviation: float = 0.0) -> Array:
        """Return (scales, levels) log-likelihoods of a level that positions share up to their wobble.

        `deviation` replaces the wobble when it is larger.
        """
        if position not in self._raw:
            return self.of_position(position)
        deviation = max(deviation, self.grid.wobble)
        kept = self._blurred[position]
        if deviation not in kept:
            kept[deviation] = blurred(self.of_position(position), self._doublings, deviation)
        return kept[deviation]

    def of_position(self, position: int) -> Array:
        """Return (scales, levels) log-likelihoods of a position's own level; flat without rounds."""
        if position not in self._raw:
            return np.zeros((len(self._scales), POINTS))
        return np.asarray(self._raw[position][self._scales])

    def distribution(self, position: int) -> Array:
        """Return (levels,) probabilities of the position's own level by its own rounds, with a flat prior."""
        density = total(self.of_position(position) + self.scale_prior[:, None], axis=0)
        weights = np.exp(density - density.max())
        return np.asarray(weights / weights.sum())

    def _store(self, position: int, raw: Array) -> None:
        self._raw[position] = raw
        self._scale_weights[position] = total(raw, axis=1)
        self._blurred[position] = {}

    def _update_scales(self) -> None:
        """Ignore scales that the rounds rule out whatever the levels are."""
        weights = sum(self._scale_weights.values()) + scale_prior()
        scales = np.flatnonzero(weights >= weights.max() - RULED_OUT)
        if not np.array_equal(scales, self._scales):
            self._scales = scales
            self._blurred = {position: {} for position in self._raw}

    def _likelihood(self, rounds: Sequence[float]) -> Array:
        """Return (scales, levels), summed round by round in order, so that a replay is exact."""
        summed: Array = np.zeros((len(SCALES), POINTS))
        values = self.grid.values
        for log_ratio in rounds:
            squares = (log_ratio - values) ** 2
            summed = summed - (FREEDOM + 1) / 2 * np.log1p(
                squares[None, :] / (FREEDOM * SCALES[:, None] ** 2)
            )
            summed = summed - np.log(SCALES)[:, None]
        return summed

    def _needed(self) -> int:
        """Return how often the grid has to be doubled to hold the medians of all positions."""
        reach = 1.2 * max(self._medians.values(), default=0.0) + 0.1
        if reach <= HALF_WIDTH:
            return 0
        return min(math.ceil(math.log2(reach / HALF_WIDTH)), MOST_DOUBLINGS)


def total(logs: Array, axis: int | None = None) -> Array:
    """Return the logarithm of the sum of exp(logs)."""
    highest = logs.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(logs - highest).sum(axis=axis, keepdims=True)) + highest
    return np.asarray(summed.reshape(()) if axis is None else np.squeeze(summed, axis))
