"""Drifts: a series that moves gradually is one finding, however many steps the watch raised in it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from history.changes.level_shift import Shift
from history.series.matrix import SeriesMatrix
from history.series.series import Point
from history.stats.change_points import find_changes
from history.stats.change_points.gradual_drift import SHORTEST_DRIFT, Drift, find_drift

Array = NDArray[np.float64]


def drift_of(logs: Array) -> Drift | None:
    """Return the drift of a series of log ratios, [nights], beside the steps that it has with hindsight."""
    return find_drift(logs, [change.index for change in find_changes(logs)])


def drift_since(points: Sequence[Point], nights: int) -> Drift | None:
    """Return the drift of a series from the first of some points on, in which a change lies.

    `nights` is how many nights the range of the change has: a step has a shorter one than any drift.
    """
    if nights < SHORTEST_DRIFT:
        return None
    values = [point.relative for point in points]
    return drift_of(np.array([math.log(value) if value else math.nan for value in values]))


def with_drifts_joined(matrix: SeriesMatrix, shifts: Iterable[Shift]) -> list[Shift]:
    """Return the shifts of a matrix with those joined that are a drift of their series.

    Two or more to one side are, if a line through the series fits better than steps do; those that are steps
    with hindsight stay. The shift that joins them spans the whole drift, and has its size.
    """
    by_series: defaultdict[int, list[Shift]] = defaultdict(list)
    for shift in shifts:
        by_series[shift.series_id].append(shift)
    rows = {series_id: row for row, (series_id, _, _) in enumerate(matrix.series)}
    several = [series_id for series_id, found in by_series.items() if len(found) > 1]
    logs = matrix.log_ratios() if several else np.empty((0, 0))
    for series_id in several:
        by_series[series_id] = _joined(matrix, logs[rows[series_id]], by_series[series_id])
    return [shift for found in by_series.values() for shift in found]


def _joined(matrix: SeriesMatrix, logs: Array, shifts: list[Shift]) -> list[Shift]:
    steps = find_changes(logs)
    drift = find_drift(logs, [step.index for step in steps])
    if drift is None:
        return shifts
    nights = matrix.nights
    sharp = [(nights[step.first].started_at, nights[step.last].started_at) for step in steps]
    gradual = [
        shift
        for shift in shifts
        if shift.log_size * drift.size > 0
        and not any(
            shift.last_before.started_at < end and start < shift.first_after.started_at
            for start, end in sharp
        )
    ]
    if len(gradual) < 2:
        return shifts
    middle = float(np.nanmean(logs))
    joined = replace(
        gradual[0],
        last_before=nights[drift.first],
        first_after=nights[drift.last],
        before=math.exp(middle - drift.size / 2),
        after=math.exp(middle + drift.size / 2),
        low=math.exp(drift.low),
        high=math.exp(drift.high),
        confidence=max(shift.confidence for shift in gradual),
        gradual=True,
    )
    return [joined, *(shift for shift in shifts if shift not in gradual)]
