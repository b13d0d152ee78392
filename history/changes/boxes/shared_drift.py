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
    own, error = (float(of_rows[row]) for of_rows in _moves(group, days))
    moves = [move for branch in branches if (move := _median_move(branch.groups, days)) is not None]
    same_way = [move for move in moves if move * own > 0]
    if len(same_way) < MIN_BRANCHES or 2 * len(same_way) <= len(moves) or not math.isfinite(error):
        return False
    shared = min(map(abs, same_way))
    return bool(abs(abs(own) - shared) <= min(LEFT * abs(own), ERRORS * error))


def _moves(group: StepGroup, days: tuple[int, int]) -> tuple[Array, Array]:
    """Return by how much each series of a group moved, with standard errors, [rows]."""
    before, after = days
    earlier = (group.days > before - WINDOW) & (group.days <= before)
    later = (group.days >= after) & (group.days < after + WINDOW)
    return group.steps.moves(earlier, later, MIN_NIGHTS)


def _median_move(groups: Sequence[StepGroup], days: tuple[int, int]) -> float | None:
    moves = np.concatenate([_moves(group, days)[0] for group in groups])
    told = moves[np.isfinite(moves)]
    return float(np.median(told)) if len(told) >= MIN_SERIES else None
