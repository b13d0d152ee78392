"""A simple rival of the nightly watch: means of the latest nights against the level before, values clipped.

It knows neither tails nor correlation: its limit keeps the share of false years in Gaussian noise.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.detection_series import CENSORED, Kind, one_step

Array = NDArray[np.float64]

WINDOWS = (1, 2, 3, 5, 8, 13, 21)
"""Latest nights whose mean is taken."""

LEVEL_NIGHTS, FIRST = 110, 40
"""Nights of the level at most, and the first night that is looked at."""

REFRESHED = 10
"""Nights after which noise and the level for clipping are worked out anew."""

CLIPPED = 3.0
"""Standard deviations from the level at which a value is clipped."""

LOOKS_A_YEAR = 6000
"""Independent looks that all windows and nights of a year are worth, about."""


def alerts(values: Array, false_share: float) -> NDArray[np.bool_]:
    """Return in which nights the mean of a window is off in each series, [series, nights].

    `values` are [series, nights], nan for gaps; `false_share` is that of quiet years with an alert, in
    Gaussian noise. A step stays an alert until the level has followed.
    """
    limit = -NormalDist().inv_cdf(false_share / LOOKS_A_YEAR / 2)
    found = np.zeros(values.shape, dtype=np.bool_)
    for begin in range(FIRST, values.shape[1], REFRESHED):
        nights = range(begin, min(begin + REFRESHED, values.shape[1]))
        since = max(0, begin - LEVEL_NIGHTS - max(WINDOWS))
        sums, counts, spread = _clipped_sums(values[:, since : nights.stop], begin - since)
        for night in nights:
            end = night + 1 - since
            for window in WINDOWS:
                start, first = end - window, max(0, end - window - LEVEL_NIGHTS)
                latest, earlier = counts[:, end] - counts[:, start], counts[:, start] - counts[:, first]
                with np.errstate(divide="ignore", invalid="ignore"):
                    move = (sums[:, end] - sums[:, start]) / latest - (
                        sums[:, start] - sums[:, first]
                    ) / earlier
                    errors = np.abs(move) / (spread * np.sqrt(1 / latest + 1 / earlier))
                found[:, night] |= (errors >= limit) & np.isfinite(values[:, night])
    return found


def delays(kind: Kind, seed: tuple[int, ...], series: int, size: float, false_share: float) -> Array:
    """Return the nights until window means are off after a step, [series]; at most CENSORED, unconfirmed."""
    stepped = one_step(kind, seed, series, size)
    found = alerts(stepped.values, false_share)
    nights = [row[night[0] : night[0] + CENSORED] for row, night in zip(found, stepped.steps, strict=True)]
    return np.array([int(row.argmax()) + 1 if row.any() else CENSORED for row in nights], dtype=np.float64)


def _clipped_sums(values: Array, known: int) -> tuple[Array, Array, Array]:
    """Return the cumulated sums and counts of clipped values, [series, nights + 1], and the noise, [series].

    Noise and the level for clipping are those of the first `known` nights.
    """
    earlier = values[:, :known]
    level = np.nanmedian(earlier, axis=1, keepdims=True)
    spread = 1.4826 * np.nanmedian(np.abs(earlier - level), axis=1, keepdims=True)
    clipped = np.clip(values, level - CLIPPED * spread, level + CLIPPED * spread)
    is_known = np.isfinite(clipped)
    sums = np.pad(np.cumsum(np.where(is_known, clipped, 0.0), axis=1), ((0, 0), (1, 0)))
    counts = np.pad(np.cumsum(is_known, axis=1), ((0, 0), (1, 0))).astype(np.float64)
    return sums, counts, spread[:, 0]
