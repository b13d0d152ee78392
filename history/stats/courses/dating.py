"""When series that changed together changed: one date for all of them, from all of their nights.

The nights of each series become shares of its step, 0 at the old level and 1 at the new one, and their mean
over the series, weighted by what each knows, is dated. A night that lies between the levels belongs to
neither: two steps on neighbouring nights look like that, and the range then holds both. A series whose own
nights contradict that date is not dated with the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import COVERAGE
from history.stats.shared_steps import LIKELY

Array = NDArray[np.float64]

AROUND = 60
"""Nights to either side that the noise is estimated from."""

MIN_AROUND = 12
"""Nights with a value, of both sides together, without which nothing is dated anew."""

BETWEEN = 2.0
"""Standard deviations by which a night has to be off a level, towards the other, to belong to neither."""

CUT = 5.0
"""Standard deviations to which a night's distance from a level is cut."""

_DEVIATION = 1.4826
_MIN_SHARE = 1e-9


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


@dataclass(frozen=True)
class CommonDate:
    """The last night before and the first night after steps that several series made together."""

    first: int
    last: int
    steps: tuple[StepLevels, ...]
    """The steps that have this date; the others have their own."""


@dataclass(frozen=True)
class _Shares:
    """The shares of a step in the nights from `since` on, and their standard deviation around the levels."""

    values: Array
    deviation: float
    since: int

    def squares(self, first: int, last: int) -> Array:
        """Return how badly a step between two nights fits, by its first night after them.

        These are squared standard deviations, less those of a step at the night after `first`.
        """
        values = self.values[first + 1 - self.since : last + 1 - self.since]
        to_old = np.minimum(np.abs(values) / self.deviation, CUT) ** 2
        to_new = np.minimum(np.abs(values - 1) / self.deviation, CUT) ** 2
        off = np.where(np.isfinite(values), to_old - to_new, 0.0)
        return np.concatenate([[0.0], np.cumsum(off)[:-1]])

    def is_between(self, night: int) -> bool:
        """Return whether a night belongs to neither level."""
        share, off = float(self.values[night - self.since]), BETWEEN * self.deviation
        return math.isfinite(share) and off < share < 1 - off


def dated(logs: Array, steps: Sequence[StepLevels], since: int, until: int) -> CommonDate | None:
    """Return the date of steps that several series made together, and which of them have it.

    `logs` is [series, nights], nan in a gap; the old levels have lasted since night `since`, the new ones
    until `until`, inclusive. None where too few nights tell. The range of a single series is only widened.
    """
    first, last = min(step.first for step in steps), max(step.last for step in steps)
    since, until = max(since, first - AROUND), min(until, last + AROUND)
    known = [
        (step, shares)
        for step in steps
        if (shares := _shares(logs[step.row, since : until + 1], step, since, first, last)) is not None
    ]
    found = _range_of(known, first, last)
    if found is None:
        return None
    fitting = [(step, shares) for step, shares in known if _fits(step, shares, *found)]
    if 0 < len(fitting) < len(known):
        found = _range_of(fitting, first, last) or found
    return CommonDate(*found, tuple(step for step, _ in fitting))


def _range_of(known: Sequence[tuple[StepLevels, _Shares]], first: int, last: int) -> tuple[int, int] | None:
    """Return the range of nights of steps with their shares; it is between `first` and `last`, or wider."""
    if not known:
        return None
    values = np.array([shares.values for _, shares in known])
    told = np.isfinite(values)
    weight = np.where(told, np.array([shares.deviation**-2 for _, shares in known])[:, np.newaxis], 0.0)
    with np.errstate(invalid="ignore"):
        mean = (np.where(told, values, 0.0) * weight).sum(axis=0) / weight.sum(axis=0)
    since = known[0][1].since
    deviation = _deviation(mean, first - since, last - since)
    if deviation is None:
        return None
    pooled = _Shares(mean, deviation, since)
    if len(known) > 1:
        first, last = _likely(pooled, first, last)
    while first > since and pooled.is_between(first):
        first -= 1
    while last < since + len(mean) - 1 and pooled.is_between(last):
        last += 1
    return first, last


def _shares(values: Array, step: StepLevels, since: int, first: int, last: int) -> _Shares | None:
    share = (values - step.before) / (step.after - step.before)
    deviation = _deviation(share, first - since, last - since)
    return None if deviation is None else _Shares(share, deviation, since)


def _deviation(share: Array, begin: int, end: int) -> float | None:
    """Return the standard deviation of shares around their levels; None if too few nights tell."""
    off = np.concatenate([share[: begin + 1], share[end:] - 1])
    off = np.abs(off[np.isfinite(off)])
    return max(_DEVIATION * float(np.median(off)), _MIN_SHARE) if len(off) >= MIN_AROUND else None


def _likely(shares: _Shares, first: int, last: int) -> tuple[int, int]:
    """Return the range that has COVERAGE of the likelihood over the first nights of the new level."""
    squares = shares.squares(first, last)
    weights = np.exp(-(squares - squares.min()) / 2)
    weights = np.cumsum(weights) / weights.sum()
    tail = (1 - COVERAGE) / 2
    earliest = int(np.searchsorted(weights, tail))
    latest = int(np.searchsorted(weights, 1 - tail))
    return first + earliest, first + 1 + min(latest, len(squares) - 1)


def _fits(step: StepLevels, shares: _Shares, first: int, last: int) -> bool:
    """Return whether the nights of a series let its step be in a range as well as in its own."""
    begin = min(step.first, first)
    squares = shares.squares(begin, max(step.last, last))
    inside = squares[first - begin : last - begin]
    return bool(inside.min() - squares.min() <= 2 * LIKELY)
