"""Whether a shift is less than the noise that its whole box has in those nights, larger than usual."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from history.changes.boxes.shared_drift import MIN_NIGHTS, WINDOW
from history.changes.boxes.step_groups import MIN_SERIES, StepGroup, day_of
from history.changes.level_shift import Shift

Array = NDArray[np.float64]

SMOOTHED = 7
"""Nights over which the noise of a box is averaged."""

LARGER = 1.3
"""Times the usual noise that counts as larger; anything less is taken for the usual one."""

REQUIRED_ERRORS = 4.5
"""Standard errors by which levels have to differ, nights weighted by noise; the watch asks for as much."""

_USUAL_SQUARE = 0.455
"""The median of squares of normal values with variance 1."""


def is_noise_of_box(groups: Sequence[StepGroup], group: StepGroup, shift: Shift) -> bool:
    """Return whether a shift of a series in `group` is less than the noise of its box in the nights since.

    `groups` are those of its metric on the box. A shift that persists is more, after some nights.
    """
    row = group.row(shift.series_id)
    if row is None or shift.gradual:
        return False
    noise = _noise_of_nights(groups, group.days)
    first, last, raised = (day_of(night) for night in (shift.last_before, shift.first_after, shift.raised))
    if not (noise[(group.days > first) & (group.days <= raised)] > 1).any():
        return False
    levels, shares = [], []
    for begin, end in ((first - WINDOW, first), (last - 1, last - 1 + WINDOW)):
        nights = (group.days > begin) & (group.days <= end) & np.isfinite(group.steps.cleaned[row])
        if nights.sum() < min(MIN_NIGHTS, 2):
            return False
        weights = noise[nights] ** -2
        levels.append(float(np.average(group.steps.cleaned[row, nights], weights=weights)))
        shares.append(1 / float(weights.sum()))
    error = np.sqrt(group.steps.variance[row] * sum(shares))
    return bool(abs(levels[1] - levels[0]) < REQUIRED_ERRORS * error)


def _noise_of_nights(groups: Sequence[StepGroup], days: NDArray[np.int64]) -> Array:
    """Return the noise of a box over the usual on some days, at least 1, by the differences of neighbours."""
    first, last = int(days[0]), int(days[-1])
    squares = np.full((sum(len(group.rows) for group in groups), last - first + 1), np.nan)
    begin = 0
    for group in groups:
        end = begin + len(group.rows)
        within = (group.days >= first) & (group.days <= last)
        squares[begin:end, group.days[within] - first] = group.steps.relative_squares[:, within]
        begin = end
    told = np.isfinite(squares).sum(axis=0) >= MIN_SERIES
    medians = np.full(squares.shape[1], np.nan)
    medians[told] = np.nanmedian(squares[:, told], axis=0) / _USUAL_SQUARE
    padded = np.pad(medians, SMOOTHED // 2, constant_values=np.nan)
    windows = sliding_window_view(padded, SMOOTHED)
    known = np.isfinite(windows)
    mean = np.where(known, windows, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    noise = np.sqrt(mean)
    return np.where(noise >= LARGER, noise, 1.0)[days - first]
