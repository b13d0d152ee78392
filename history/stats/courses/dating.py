"""When series that changed together changed: one date for all of them, from all of their nights.

The nights of each series become shares of its step, 0 at the old level and 1 at the new one, and their mean
over the series, weighted by what each knows, is dated. A night that lies between the levels belongs to
neither: two steps on neighbouring nights look like that, and the range then holds both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import COVERAGE

Array = NDArray[np.float64]

AROUND = 60
"""Nights to either side that the noise is estimated from."""

MIN_AROUND = 5
"""Nights with a value to either side without which nothing is dated anew."""

BETWEEN = 2.0
"""Standard deviations by which a night has to be off a level, towards the other, to belong to neither."""

CUT = 5.0
"""Standard deviations to which a night's distance from a level is cut."""

_DEVIATION = 1.4826


@dataclass(frozen=True)
class StepLevels:
    """A step of a series: its row, its levels, and the nights that its own range has."""

    row: int
    before: float
    after: float
    first: int
    """The last night that is surely before it."""

    last: int
    """The first night that is surely after it."""


def dated(logs: Array, steps: Sequence[StepLevels], since: int, until: int) -> tuple[int, int] | None:
    """Return the last night before and the first night after steps that several series made together.

    `logs` is [series, nights], nan in a gap; the old levels have lasted since night `since`, the new ones
    until `until`, inclusive. None where too few nights tell. The range of a single series is only widened.
    """
    first, last = min(step.first for step in steps), max(step.last for step in steps)
    since, until = max(since, first - AROUND), min(until, last + AROUND)
    shares = _shares(logs, steps, since, until, first, last)
    if shares is None:
        return None
    share, deviation = shares
    begin, end = first - since, last - since
    if len(steps) > 1:
        begin, end = _likely(share, deviation, begin, end)
    begin, end = _widened(share, deviation, begin, end)
    return since + begin, since + end


def _shares(
    logs: Array, steps: Sequence[StepLevels], since: int, until: int, first: int, last: int
) -> tuple[Array, float] | None:
    """Return the mean share of the steps in each night since `since`, and its standard deviation."""
    shares, weights = [], []
    for step in steps:
        share = (logs[step.row, since : until + 1] - step.before) / (step.after - step.before)
        noise = _noise(share, first - since, last - since)
        if noise is not None:
            shares.append(share)
            weights.append(noise**-2)
    if not shares:
        return None
    weight = np.where(np.isfinite(shares), np.array(weights)[:, None], 0.0)
    with np.errstate(invalid="ignore"):
        mean = np.where(np.isfinite(shares), shares, 0.0) * weight
        pooled = mean.sum(axis=0) / weight.sum(axis=0)
    noise = _noise(pooled, first - since, last - since)
    return None if noise is None else (pooled, noise)


def _noise(share: Array, begin: int, end: int) -> float | None:
    """Return the standard deviation of shares around their levels; None if too few nights tell."""
    before, after = share[: begin + 1], share[end:] - 1
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if min(len(before), len(after)) < MIN_AROUND:
        return None
    return max(_DEVIATION * float(np.median(np.abs(np.concatenate([before, after])))), 1e-9)


def _likely(share: Array, deviation: float, begin: int, end: int) -> tuple[int, int]:
    """Return the range that has COVERAGE of the likelihood over the first nights of the new level."""
    nights = np.arange(begin + 1, end + 1)
    to_old = np.minimum(np.abs(share[nights]) / deviation, CUT) ** 2
    to_new = np.minimum(np.abs(share[nights] - 1) / deviation, CUT) ** 2
    # With the step at one of the nights, those before it are off the old level, the others off the new one.
    off = np.where(np.isfinite(share[nights]), to_old - to_new, 0.0)
    squares = np.concatenate([[0.0], np.cumsum(off)[:-1]])
    weights = np.exp(-(squares - squares.min()) / 2)
    weights = np.cumsum(weights) / weights.sum()
    tail = (1 - COVERAGE) / 2
    earliest = int(np.searchsorted(weights, tail))
    latest = int(np.searchsorted(weights, 1 - tail))
    return begin + earliest, begin + 1 + min(latest, len(nights) - 1)


def _widened(share: Array, deviation: float, begin: int, end: int) -> tuple[int, int]:
    """Return a range widened over nights at its ends that lie between both levels."""
    while begin > 0 and _is_between(share[begin], deviation):
        begin -= 1
    while end < len(share) - 1 and _is_between(share[end], deviation):
        end += 1
    return begin, end


def _is_between(share: float, deviation: float) -> bool:
    off = BETWEEN * deviation
    return bool(math.isfinite(share) and off < share < 1 - off)
