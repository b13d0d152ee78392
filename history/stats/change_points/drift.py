"""Which way series drift: a straight line through the nights of each, taken in one after another."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TREND_NIGHTS = 365.0
"""Nights that a line rests on; older ones are forgotten."""

TREND_LAG = 4
"""Looks after which one counts: what a step that is not yet raised does to the line is no drift."""

_MIN_SPREAD = 1e-9
"""Squared nights, less than those of any two: a line through one night does not rise."""


class Trend:
    """The line of least squares through each of some series, by Welford's updates (Technometrics 4, 1962)."""

    def __init__(self, series: int) -> None:
        self._night = 0
        self._nights, self._middle, self._height = (np.zeros(series) for _ in range(3))
        self._spread, self._rising = np.zeros(series), np.zeros(series)
        self._looks = np.zeros((TREND_LAG + 1, series))
        self._look = 0

    @property
    def errors(self) -> Array:
        """The standard errors by which each line rose, [series], TREND_LAG looks ago; below 0 if it fell."""
        return np.asarray(self._looks[(self._look + 1) % len(self._looks)])

    def learn(self, values: Array, counted: NDArray[np.bool_]) -> None:
        """Take in the next night's values [series], without outliers, where `counted`."""
        self._night += 1
        self._nights = np.minimum(self._nights + counted, TREND_NIGHTS)
        share = counted / np.maximum(self._nights, 1)
        kept = 1 - share
        later, higher = self._night - self._middle, values - self._height
        moved = share * later
        self._middle += moved
        self._height += share * higher
        self._spread = kept * (self._spread + moved * later)
        self._rising = kept * (self._rising + moved * higher)

    def restart(self, column: int) -> None:
        """After a step that series has no line any more: its new level is not known well enough for one."""
        self._nights[column] = self._spread[column] = self._rising[column] = 0.0
        self._looks[:, column] = 0.0

    def look(self, deviation: Array) -> None:
        """Work out by how many standard errors the lines rise.

        `deviation` [series] is that of a night as it counts in means, correlation reckoned with.
        """
        self._look += 1
        rise = self._rising / np.sqrt(np.maximum(self._spread, _MIN_SPREAD))
        self._looks[self._look % len(self._looks)] = rise * np.sqrt(self._nights) / deviation
