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

from runners.bisect.domain.rules import Rules

Array = NDArray[np.float64]

FREEDOM = 5.0
"""Degrees of freedom of the noise, for the heaviest tails measured; Gaussian noise loses a twentieth."""

INFORMATION = (FREEDOM + 1) / (FREEDOM + 3)
"""The Fisher information of one round about a level, in units of 1 / scale^2, for Student's t."""

SCALES = 1.3 ** np.arange(16)
"""The grid of the noise's scale, in units of the smallest: 0.4 to 20 % a round of what is timed."""

POINTS = 321
HALF_WIDTH = 100.0
"""The grid of levels reaches so many of the smallest scales to both sides, or twice, four times ... as far
when positions lie beyond: from -0.4 to 0.4 for what is timed."""

WIDEST = 6.4
"""The farthest that it ever reaches, as a log ratio: 600 times as much, or as little."""

FLOOR = 1e-300

NEVER = -1e30
"""The log-probability of a level that is impossible."""

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
def grid_of(half: float, wobble: float) -> Grid:
    """Return the grid from -half to half."""
    values = np.linspace(-half, half, POINTS)
    return Grid(values, max(wobble, float(values[1] - values[0])))


@lru_cache(maxsize=64)
def kernel(half: float, deviation: float) -> Array:
    """Return (POINTS, POINTS): row g has the probabilities of a normal `deviation` around g."""
    values = grid_of(half, deviation).values
    weights = np.exp(-0.5 * ((values[:, None] - values[None, :]) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def blurred(logs: Array, half: float, deviation: float) -> Array:
    """Return (..., POINTS) log-likelihoods of levels to which a normal deviation was added."""
    highest = logs.max(axis=-1, keepdims=True)
    mixed = np.exp(logs - highest) @ kernel(half, deviation).T
    return np.asarray(np.log(np.maximum(mixed, FLOOR)) + highest)


def scales_of(rules: Rules) -> Array:
    """Return the (scales,) scales of noise that are possible, ascending."""
    return np.asarray(rules.least_scale * SCALES)


def scale_prior(rules: Rules) -> Array:
    """Return the (scales,) prior log-probabilities of the scales of noise."""
    logs = -0.5 * (np.log(scales_of(rules) / rules.typical_scale) / rules.scale_spread) ** 2
    return np.asarray(logs - np.logaddexp.reduce(logs))


def student(left: Array, scales: Array) -> Array:
    """Return (..., scales, levels) log-likelihoods of what levels leave of log ratios, (..., levels).

    By Student's t with FREEDOM degrees of freedom, without its constant.
    """
    squares = left[..., None, :] ** 2 / (FREEDOM * scales[:, None] ** 2)
    return np.asarray(-(FREEDOM + 1) / 2 * np.log1p(squares) - np.log(scales)[:, None])


class Levels:
    """Log-likelihoods of the levels of measured positions, for every scale of noise that is still likely."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._all_scales, self._all_priors = scales_of(rules), scale_prior(rules)
        self._rounds: dict[int, list[float]] = {}
        self._order: list[tuple[int, float]] = []
        self._medians: dict[int, float] = {}
        self._half = HALF_WIDTH * rules.least_scale
        self._raw: dict[int, Array] = {}
        self._scale_weights: dict[int, Array] = {}
        self._scales: NDArray[np.intp] = np.arange(len(SCALES))
        self._blurred: dict[int, dict[float, Array]] = {}

    def add(self, position: int, log_ratio: float) -> None:
        """Add one round of a position."""
        rounds = self._rounds.setdefault(position, [])
        rounds.append(log_ratio)
        self._order.append((position, log_ratio))
        # One slow round must not widen the grid.
        if len(rounds) >= self._rules.least_rounds:
            self._medians[position] = abs(median(rounds))
        half = self._needed()
        if half != self._half:
            self._half = half
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
        return grid_of(self._half, self._rules.wobble)

    @property
    def positions(self) -> tuple[int, ...]:
        """The measured positions, ascending."""
        return tuple(sorted(self._rounds))

    @property
    def scales(self) -> Array:
        """The scales of noise, (scales,), that are still likely."""
        return np.asarray(self._all_scales[self._scales])

    @property
    def scale_prior(self) -> Array:
        """The prior log-probabilities, (scales,), of the scales that are still likely."""
        return np.asarray(self._all_priors[self._scales])

    @property
    def total(self) -> int:
        """The number of rounds of all positions."""
        return sum(len(rounds) for rounds in self._rounds.values())

    @property
    def timeline(self) -> tuple[NDArray[np.intp], Array]:
        """The positions and the log ratios of all rounds in the order in which they were measured."""
        positions = np.array([position for position, _ in self._order], dtype=np.intp)
        return positions, np.array([log_ratio for _, log_ratio in self._order], dtype=np.float64)

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
            kept[deviation] = blurred(self.of_position(position), self._half, deviation)
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
        weights = sum(self._scale_weights.values()) + self._all_priors
        scales = np.flatnonzero(weights >= weights.max() - RULED_OUT)
        if not np.array_equal(scales, self._scales):
            self._scales = scales
            self._blurred = {position: {} for position in self._raw}

    def _likelihood(self, rounds: Sequence[float]) -> Array:
        """Return (scales, levels), summed round by round in order, so that a replay is exact."""
        summed: Array = np.zeros((len(SCALES), POINTS))
        values = self.grid.values
        for log_ratio in rounds:
            summed = summed + student(log_ratio - values, self._all_scales)
        return summed

    def _needed(self) -> float:
        """Return how far the grid has to reach to hold the medians of all positions."""
        narrowest = HALF_WIDTH * self._rules.least_scale
        reach = 1.2 * max(self._medians.values(), default=0.0) + narrowest / 4
        if reach <= narrowest:
            return narrowest
        most = math.floor(math.log2(WIDEST / narrowest))
        return float(narrowest * 2 ** min(math.ceil(math.log2(reach / narrowest)), most))


def total(logs: Array, axis: int | None = None) -> Array:
    """Return the logarithm of the sum of exp(logs)."""
    highest = logs.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(logs - highest).sum(axis=axis, keepdims=True)) + highest
    return np.asarray(summed.reshape(()) if axis is None else np.squeeze(summed, axis))


def quantiles(values: Array, weights: Array, confidence: float) -> tuple[float, float, float]:
    """Return median and ends of the central interval of a distribution on ascending values."""
    sums: Array = np.cumsum(weights) - weights / 2
    low, middle, high = np.interp(
        [(1 - confidence) / 2, 0.5, (1 + confidence) / 2], sums / weights.sum(), values
    )
    return float(middle), float(low), float(high)
