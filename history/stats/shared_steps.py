"""By how much each of several series steps at each night, in standard errors: what a box did, all show.

Levels are means of the nights just before and from a night on, without outliers, so that steps two weeks
apart are told apart. The noise is that of neighbouring nights, which neither steps nor drift change.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from history.stats.change_points.shared_nights import row_medians
from history.stats.estimators import MAD_TO_DEVIATION, ar1_inflation

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

BEFORE, SINCE = 20, 12
"""Nights before a step, and from it on, whose means are compared."""

MIN_BEFORE, MIN_SINCE = 10, 3
"""Nights with a value among them without which nothing is told."""

CUT = 2.5
"""Standard deviations from the running median at which a value is cut."""

MAX_CORRELATION = 0.8
"""The AR(1) of neighbouring nights that is reckoned with at most."""

LIKELY = 5.0
"""Nats by which a series may fit better with its step at another night."""

ONE_WAY = 0.9
"""The share of the others that moved in one direction if they moved together, and by about the same."""

OTHERS_QUANTILE = 0.9
"""The quantile of the steps of the others that stands for the largest of them;"""

BEYOND = 1.5
"""what is larger than so many times that, and two standard errors, is a step of a series' own."""

MARKED_BEYOND = 2.5
"""The same on the night of a marker that moved the others: how much each moves is its own."""

CAP = 3.0
"""Standard errors that a series counts as having moved by at most."""

MIN_OTHERS = 4
"""Other series without which a step is not compared with theirs."""

SMOOTHED = 7
"""Nights over which the noise that series share is averaged."""

LARGER = 1.3
"""Times the usual noise that counts as larger; anything less is taken for the usual one."""

_MEDIAN_SQUARE = 0.455
"""The median of squares of normal values with variance 1."""

_WINDOW = 5


@dataclass(frozen=True)
class StepSizes:
    """The step of each series at each night, [series, nights]; nan where too few nights tell."""

    sizes: Array
    errors: Array
    """Standard errors of the sizes."""

    cleaned: Array
    """The values without outliers, [series, nights]."""

    noise: Array
    """The noise that all series share in a night, over the usual; 1 where it has not grown, [nights]."""

    variance: Array
    """The variance of a night, with what correlation with the neighbours adds to that of a mean, [series]."""

    @property
    def distances(self) -> Array:
        """The sizes in standard errors, without a sign."""
        return np.asarray(np.abs(self.sizes) / self.errors)

    def moves(self, before: Mask, since: Mask, least: int) -> tuple[Array, Array]:
        """Return by how much each series moved from some nights to others, and the standard errors, [series].

        Both are nan where fewer than `least` of either nights have a value.
        """
        sizes, errors = np.full((2, len(self.cleaned)), np.nan)
        counts = [np.isfinite(self.cleaned[:, nights]).sum(axis=1) for nights in (before, since)]
        told = np.minimum(*counts) >= least
        if told.any():
            levels = [np.nanmean(self.cleaned[told][:, nights], axis=1) for nights in (before, since)]
            sizes[told] = levels[1] - levels[0]
            shares = sum(1 / count[told] for count in counts)
            errors[told] = np.sqrt(self.variance[told] * shares)
        return sizes, errors

    def can_be_at(self, row: int, night: int, first: int, last: int) -> bool:
        """Return whether a step of a series can be at a night as well as where it was found.

        It was found after night `first`, and up to night `last`.
        """
        begin = max(0, min(first, night) - BEFORE)
        values = self.cleaned[row, begin : max(last, night) + SINCE]
        known = np.flatnonzero(np.isfinite(values))
        place = int((known < night - begin).sum())
        if not 0 < place < len(known):
            return False
        sums = np.cumsum(values[known])
        counts = np.arange(1, len(known))
        explained = sums[:-1] ** 2 / counts + (sums[-1] - sums[:-1]) ** 2 / (len(known) - counts)
        return bool(explained.max() - explained[place - 1] <= 2 * LIKELY * self.variance[row])


def step_sizes(logs: Array) -> StepSizes:
    """Return the steps of `logs` [series, nights], nan for gaps, at every night."""
    deviation, correlation = _noise(logs)
    around = _running_median(logs)
    cut = CUT * deviation[:, np.newaxis]
    cleaned = np.clip(logs, around - cut, around + cut)
    known = np.isfinite(cleaned)
    sums = _padded(np.where(known, cleaned, 0.0))
    counts = _padded(known.astype(np.float64))
    nights = np.arange(logs.shape[1])
    first, end = np.maximum(nights - BEFORE, 0), np.minimum(nights + SINCE, logs.shape[1])
    before, since = counts[:, nights] - counts[:, first], counts[:, end] - counts[:, nights]
    told = (before >= MIN_BEFORE) & (since >= MIN_SINCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = (sums[:, end] - sums[:, nights]) / since - (sums[:, nights] - sums[:, first]) / before
    noise = _shared_noise(logs, 2 * (1 - correlation) * deviation**2)
    squares = _padded(np.where(known, noise**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (squares[:, nights] - squares[:, first]) / before**2
        share += (squares[:, end] - squares[:, nights]) / since**2
    variance = deviation**2 * ar1_inflation(correlation)
    errors = np.sqrt(variance[:, np.newaxis] * np.where(told, share, np.nan))
    return StepSizes(np.where(told, sizes, np.nan), errors, cleaned, noise, variance)


def all_moved(sizes: Array, errors: Array) -> float:
    """Return by how many standard errors series moved on average, each by CAP at most; nan if none tells.

    Series that did not move have 0.8. It tells that all moved, by amounts of their own, from a few that moved
    much.
    """
    told = np.isfinite(errors)
    return float(np.minimum(np.abs(sizes[told]) / errors[told], CAP).mean()) if told.any() else math.nan


def is_as_others(size: float, error: float, others: Array, beyond: float = BEYOND) -> bool:
    """Return whether a step of a series is like those of `others` at the night, and not one of its own.

    `others` has nan where a series does not tell.
    """
    others = others[np.isfinite(others)]
    if len(others) < MIN_OTHERS:
        return True
    one_way = max((others > 0).mean(), (others < 0).mean()) >= ONE_WAY
    centre = float(np.median(others)) if one_way else 0.0
    largest = float(np.quantile(np.abs(others - centre), OTHERS_QUANTILE))
    return abs(size - centre) <= beyond * largest + 2 * (error if math.isfinite(error) else 0.0)


def _noise(logs: Array) -> tuple[Array, float]:
    """Return the standard deviation of each series, [series], and the AR(1) that all of them have."""
    apart = [_spread(logs[:, distance:] - logs[:, :-distance]) for distance in (1, 2)]
    usual = np.nanmedian(apart[0]) if np.isfinite(apart[0]).any() else np.nan
    beside, next_but = (np.fmax(np.fmax(spread, usual / 2), np.finfo(np.float64).eps) for spread in apart)
    # Over the variance of a night, that of a difference is 2 (1 - r), and 2 (1 - r^2) two nights apart.
    ratio = float(np.median((next_but / beside) ** 2)) if len(beside) else 1.0
    correlation = min(max(ratio - 1, 0.0), MAX_CORRELATION)
    return beside / np.sqrt(2 * (1 - correlation)), correlation


def _shared_noise(logs: Array, usual: Array) -> Array:
    """Return the noise of the nights over the usual, [nights], by the differences of neighbours.

    `usual` are the variances of these, [series].
    """
    squares = np.diff(logs, axis=1, prepend=np.nan) ** 2 / usual[:, np.newaxis]
    medians = row_medians(np.ascontiguousarray(squares.T)) / _MEDIAN_SQUARE
    medians[np.isfinite(squares).sum(axis=0) < MIN_OTHERS] = np.nan
    windows = sliding_window_view(np.pad(medians, SMOOTHED // 2, constant_values=np.nan), SMOOTHED)
    known = np.isfinite(windows)
    noise = np.sqrt(np.where(known, windows, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    return np.where(noise >= LARGER, noise, 1.0)


def _spread(differences: Array) -> Array:
    return (
        MAD_TO_DEVIATION * row_medians(np.abs(differences))
        if differences.shape[1]
        else np.full(len(differences), np.nan)
    )


def _running_median(logs: Array) -> Array:
    side = _WINDOW // 2
    padded = np.pad(logs, ((0, 0), (side, side)), constant_values=np.nan)
    windows = sliding_window_view(padded, _WINDOW, axis=1)
    return row_medians(windows.reshape(-1, _WINDOW)).reshape(logs.shape)


def _padded(values: Array) -> Array:
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
