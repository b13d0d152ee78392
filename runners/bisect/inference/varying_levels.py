"""The evidence that the levels of commits vary all along the range, so that no few steps explain the rounds.

Levels vary in two ways, each with several sizes: every commit has a level of its own around a common one, as
code layouts give it, or every commit adds a small random change to the level before it.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from runners.bisect.inference.level_likelihood import FLOOR, Array, Levels, total

SCATTERS = (0.01, 0.02, 0.04, 0.08)
"""The standard deviations, as log ratios, of levels around a common one."""

WALKS = (0.05, 0.1, 0.2)
"""The standard deviations, as log ratios, of the sum of random changes over the whole range."""

COARSE = 2
"""Every so many levels of the grid are used, for random changes and between steps."""


def varying_evidence(levels: Levels, measured: Sequence[int]) -> Array:
    """Return (scales,) log-evidence, averaged over both ways and all sizes.

    measured: the measured positions, ascending, from good (0) to bad.
    """
    found = [_scattered(levels, measured[1:], size) for size in SCATTERS]
    found += [_walking(levels, measured, size) for size in WALKS]
    return np.asarray(total(np.stack(found), axis=0) - math.log(len(found)))


def _scattered(levels: Levels, positions: Sequence[int], size: float) -> Array:
    """Return (scales,) log-evidence of levels that scatter by `size` around one, as good's does."""
    around = np.exp(-0.5 * (levels.grid.values / size) ** 2)
    logs = np.log(np.maximum(around / around.sum(), FLOOR))[None, :]
    for position in positions:
        logs = logs + levels.likelihood(position, size)
    return total(logs, axis=1)


def _walking(levels: Levels, measured: Sequence[int], size: float) -> Array:
    """Return (scales,) log-evidence of a random walk from good whose deviation at bad is `size`."""
    values = levels.grid.values[::COARSE]
    states = np.where(values == values[len(values) // 2], 1.0, 0.0)[None, :]
    summed = np.zeros(len(levels.scales))
    for low, high in pairwise(measured):
        deviation = size * math.sqrt((high - low) / measured[-1])
        logs = levels.likelihood(high)[:, ::COARSE]
        highest = logs.max(axis=1, keepdims=True)
        states = states @ _spread(float(values[-1]), len(values), deviation) * np.exp(logs - highest)
        mass = np.maximum(states.sum(axis=1, keepdims=True), FLOOR)
        states = states / mass
        summed = summed + (np.log(mass) + highest)[:, 0]
    return np.asarray(summed)


def _spread(half: float, points: int, deviation: float) -> Array:
    """Return (points, points) transition probabilities, for a deviation rounded to a power of 1.2."""
    return _rounded(half, points, round(math.log(deviation, 1.2)))


@lru_cache(maxsize=128)
def _rounded(half: float, points: int, exponent: int) -> Array:
    deviation = max(1.2**exponent, half / points)  # half of the spacing
    values = np.linspace(-half, half, points)
    weights = np.exp(-0.5 * ((values[:, None] - values[None, :]) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
