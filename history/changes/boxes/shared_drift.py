"""Whether a series rose or fell as most of its box did meanwhile, as in a season: then it has no step."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from history.changes.boxes.step_groups import (
    MIN_BRANCHES,
    MIN_SERIES,
    BranchSteps,
    StepGroup,
    day_of,
)
from history.changes.level_shift import Shift

Array = NDArray[np.float64]

WINDOW = 60
"""Nights before and after a shift whose means are compared."""

MIN_NIGHTS = 5
"""Nights with a value that each of the windows needs."""

LEFT = 2 / 3
"""The share of a shift that may be left without what the others moved by,"""

ERRORS = 3.5
"""and the standard errors that it may be off: the largest of many differences was raised."""


def drifts_with_box(branches: Collection[BranchSteps], group: StepGroup, shift: Shift) -> bool:
    """Return whether most of a shift of a series in `group` is in most series of most branches of its box."""
    row = group.row(shift.series_id)
    if row is None:
        return False
    days = day_of(shift.last_before), day_of(shift.first_after)
    own = _moves(group, days)[row]
    error = _error(group, row, days)
    moves = [move for branch in branches if (move := _median_move(branch.groups, days)) is not None]
    same_way = [move for move in moves if move * own > 0]
    if len(same_way) < MIN_BRANCHES or 2 * len(same_way) <= len(moves) or not math.isfinite(error):
        return False
    shared = min(map(abs, same_way))
    return bool(abs(abs(own) - shared) <= min(LEFT * abs(own), ERRORS * error))


def _windows(group: StepGroup, days: tuple[int, int]) -> tuple[Array, Array]:
    """Return the values of a group before and after a shift, each [rows, nights]."""
    before, after = days
    values = group.steps.cleaned
    earlier = (group.days > before - WINDOW) & (group.days <= before)
    later = (group.days >= after) & (group.days < after + WINDOW)
    return values[:, earlier], values[:, later]


def _moves(group: StepGroup, days: tuple[int, int]) -> Array:
    """Return by how much each series of a group moved, [rows]; nan where too few nights tell."""
    moves = np.full(len(group.rows), np.nan)
    before, after = _windows(group, days)
    told = (np.isfinite(before).sum(axis=1) >= MIN_NIGHTS) & (np.isfinite(after).sum(axis=1) >= MIN_NIGHTS)
    if told.any():
        moves[told] = np.nanmean(after[told], axis=1) - np.nanmean(before[told], axis=1)
    return moves


def _error(group: StepGroup, row: int, days: tuple[int, int]) -> float:
    counts = [int(np.isfinite(window[row]).sum()) for window in _windows(group, days)]
    if min(counts) < MIN_NIGHTS:
        return math.nan
    return math.sqrt(float(group.steps.variance[row]) * sum(1 / count for count in counts))


def _median_move(groups: Sequence[StepGroup], days: tuple[int, int]) -> float | None:
    moves = np.concatenate([_moves(group, days) for group in groups])
    told = moves[np.isfinite(moves)]
    return float(np.median(told)) if len(told) >= MIN_SERIES else None
