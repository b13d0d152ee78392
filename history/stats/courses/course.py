"""The course of a finished series: the steps that it has, and whether it drifts or alternates beside them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import ChangePoint
from history.stats.change_points.segmentation import find_changes
from history.stats.courses.alternation import Alternation, find_alternation
from history.stats.courses.gradual_drift import BETTER_BY, Drift, find_drift

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SeriesCourse:
    """What a series does: a drift or an alternation stands for the changes that it explains."""

    steps: tuple[ChangePoint, ...]
    drift: Drift | None = None
    alternation: Alternation | None = None


def find_course(values: Array, better_by: float = BETTER_BY) -> SeriesCourse:
    """Return the course of a series [nights], nan for a gap; `better_by` as of find_drift."""
    return course_beside(values, find_changes(values), better_by)


def course_beside(
    values: Array, changes: tuple[ChangePoint, ...], better_by: float = BETTER_BY
) -> SeriesCourse:
    """Return the course of a series in which `changes` were found."""
    alternation = find_alternation(changes)
    if alternation is not None:
        steps = tuple(change for change in changes if change not in alternation.switches)
        return SeriesCourse(steps, alternation=alternation)
    drift = find_drift(values, [change.index for change in changes], better_by)
    if drift is None:
        return SeriesCourse(changes)
    return SeriesCourse(tuple(change for change in changes if change.index in drift.steps), drift)
