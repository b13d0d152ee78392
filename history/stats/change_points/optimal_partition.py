"""The best division of finished series into levels, for many series at once.

Exact least squares over a series' candidate positions (Auger & Lawrence 1989; Jackson et al., An algorithm
for optimal partitioning, 2005), where candidates are the peaks of moving sums in windows of several lengths
(Eichinger & Kirch, A MOSUM procedure, Bernoulli 24, 2018). Robustness is the caller's: it passes values
without outliers.

Arrays are [series, night] and packed: the values of a series stand first, `counts` says how many there are,
and what follows them is of no meaning. A position is the index of the first value of a new level; a row of
positions rises and is padded with the series' count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

WINDOWS = (5, 10, 20, 40, 80)
"""Values on either side of a position that are compared there."""

CANDIDATES = 64
"""Positions of a series that are tried: the highest peaks. Long series have one for NIGHTS_A_CANDIDATE."""

NIGHTS_A_CANDIDATE = 8
"""Nights for each position that is tried in a long series: one step is a peak of several windows, so that a
fixed number of candidates leaves none for some of many steps."""

PEAK = 2.5
"""Standard errors below which a peak is no candidate."""

MIN_LEVEL = 5
"""Values that a level needs: fewer could be outliers."""

REACH = 8
"""Values to either side within which a position is moved to where it fits best."""


@dataclass(frozen=True)
class Sums:
    """Sums of the first k values of every series, k from 0 on: [series, nights + 1]."""

    sums: Array
    counts: Positions
    """Values of each series, [series]."""

    def between(self, start: Positions, end: Positions) -> Array:
        """Return the sums of the values from `start` to before `end`; both are [series, any]."""
        return np.take_along_axis(self.sums, end, 1) - np.take_along_axis(self.sums, start, 1)


def sums_of(values: Array, counts: Positions) -> Sums:
    """Return the sums of packed values."""
    there = np.arange(values.shape[1]) < counts[:, None]
    sums = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(np.where(there, values, 0.0), axis=1, out=sums[:, 1:])
    return Sums(sums, counts)


def candidates(sums: Sums, deviation: Array) -> Positions:
    """Return the highest peaks of the moving sums, [series, positions]; `deviation` is [series]."""
    highest = np.zeros_like(sums.sums)
    ends = np.arange(sums.sums.shape[1])
    for window in WINDOWS:
        if sums.sums.shape[1] <= 2 * window:
            break
        middle = slice(window, -window)
        difference = sums.sums[:, 2 * window :] + sums.sums[:, : -2 * window] - 2 * sums.sums[:, middle]
        size = np.abs(difference) / (np.sqrt(2 * window) * deviation[:, None])
        size[ends[middle] > sums.counts[:, None] - window] = 0
        peak = size > PEAK
        peak[:, 1:] &= size[:, 1:] >= size[:, :-1]
        peak[:, :-1] &= size[:, :-1] > size[:, 1:]
        np.maximum(highest[:, middle], size * peak, out=highest[:, middle])
    nights = highest.shape[1] - 1
    most = min(max(CANDIDATES, nights // NIGHTS_A_CANDIDATE), nights)
    top = np.argpartition(-highest, most, axis=1)[:, :most]
    found = np.take_along_axis(highest, top, 1) > 0
    return np.sort(np.where(found, top, sums.counts[:, None]), axis=1)


def best_partition(positions: Positions, sums: Sums, penalty: Array) -> Positions:
    """Return the positions that minimise the squared residuals plus `penalty` [series] per position."""
    nodes = np.concatenate([np.zeros_like(positions[:, :1]), positions, sums.counts[:, None]], axis=1)
    at = np.ascontiguousarray(np.take_along_axis(sums.sums, nodes, 1).T)
    place = np.ascontiguousarray(nodes.T.astype(np.float64))
    best = np.full(at.shape, np.inf)
    best[0] = 0
    came = np.zeros(at.shape, dtype=np.int64)
    for node in range(1, len(at)):
        length = place[node] - place[:node]
        cost = np.where(
            length >= MIN_LEVEL, best[:node] - (at[node] - at[:node]) ** 2 / np.maximum(length, 1), np.inf
        )
        came[node] = cost.argmin(axis=0)
        best[node] = np.take_along_axis(cost, came[node][None], 0)[0] + penalty
    chosen = np.zeros(at.shape, dtype=bool)
    reached = np.full(at.shape[1], len(at) - 1)
    every = np.arange(at.shape[1])
    while reached.any():
        reached = came[reached, every]
        chosen[reached, every] = True
    return np.sort(np.where(chosen[1:-1].T, positions, sums.counts[:, None]), axis=1)


def neighbours(positions: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Return where the level before each position begins, and where the one after it ends."""
    before = np.concatenate([np.zeros_like(positions[:, :1]), positions[:, :-1]], axis=1)
    after = np.concatenate([positions[:, 1:], counts[:, None]], axis=1)
    return before, after


def gain(start: Positions, position: Positions, end: Positions, sums: Sums) -> Array:
    """Return how much a change at `position` reduces the squares from `start` to `end`; 0 at the ends."""
    left = (position - start).astype(np.float64)
    right = (end - position).astype(np.float64)
    inside = (left > 0) & (right > 0)
    left, right = np.where(inside, left, 1), np.where(inside, right, 1)
    difference = sums.between(position, end) / right - sums.between(start, position) / left
    return np.where(inside, difference**2 * left * right / (left + right), 0.0)


def moved(positions: Positions, sums: Sums) -> Positions:
    """Return each position where it fits best, up to REACH away, while its neighbours stay."""
    start, end = neighbours(positions, sums.counts)
    real = positions < sums.counts[:, None]
    best, where = np.full(positions.shape, -1.0), positions
    for shift in range(-REACH, REACH + 1):
        tried = positions + shift
        allowed = real & (tried - start >= MIN_LEVEL) & (end - tried >= MIN_LEVEL)
        tried = np.where(allowed, tried, positions)
        fits = np.where(allowed, gain(start, tried, end, sums), -1.0)
        best, where = np.maximum(best, fits), np.where(fits > best, tried, where)
    return np.sort(where, axis=1)


def levels(positions: Positions, sums: Sums) -> tuple[Array, Positions]:
    """Return the means of the levels, [series, levels], and the level index of nights, [series, nights]."""
    start = np.concatenate([np.zeros_like(positions[:, :1]), positions], axis=1)
    end = np.concatenate([positions, sums.counts[:, None]], axis=1)
    means = sums.between(start, end) / np.maximum(end - start, 1)
    marks = np.zeros((len(positions), sums.sums.shape[1]), dtype=np.int64)
    np.add.at(marks, (np.arange(len(positions))[:, None], positions), 1)
    index = np.minimum(np.cumsum(marks[:, :-1], axis=1), positions.shape[1])
    return means, index
