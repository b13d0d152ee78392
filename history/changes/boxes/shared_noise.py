"""Whether a shift is less than the noise that its whole box has in those nights, larger than usual."""

import numpy as np
from numpy.typing import NDArray

from history.changes.boxes.shared_drift import WINDOW
from history.changes.boxes.step_groups import StepGroup, day_of
from history.changes.level_shift import Course, Shift

Array = NDArray[np.float64]

REQUIRED_ERRORS = 4.5
"""Standard errors by which levels have to differ, nights weighted by noise; the watch asks for as much."""


def is_noise_of_box(group: StepGroup, shift: Shift) -> bool:
    """Return whether a shift of a series in `group` is less than the noise of its box in the nights since.

    A shift that persists is more, after some nights.
    """
    row = group.row(shift.series_id)
    if row is None or shift.course is not Course.STEP:
        return False
    noise = group.steps.noise
    first, last, raised = (day_of(night) for night in (shift.last_before, shift.first_after, shift.raised))
    if not (noise[(group.days > first) & (group.days <= raised)] > 1).any():
        return False
    levels, shares = [], []
    for begin, end in ((first - WINDOW, first), (last - 1, last - 1 + WINDOW)):
        nights = (group.days > begin) & (group.days <= end) & np.isfinite(group.steps.cleaned[row])
        if not nights.any():
            return False
        weights = noise[nights] ** -2
        levels.append(float(np.average(group.steps.cleaned[row, nights], weights=weights)))
        shares.append(1 / float(weights.sum()))
    error = np.sqrt(group.steps.variance[row] * sum(shares))
    return bool(abs(levels[1] - levels[0]) < REQUIRED_ERRORS * error)
