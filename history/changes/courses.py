"""What the shifts of a box are together: drifts, alternations, and steps that have one date.

A drift or an alternation is one finding of its series, however many steps the watch raised in it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from history.changes.detection import rule_of
from history.changes.level_shift import Course, Shift
from history.series.matrix import SeriesMatrix
from history.series.series import Point
from history.stats.change_points import SHORTEST, ChangePoint
from history.stats.courses.alternation import Alternation
from history.stats.courses.course import SeriesCourse, find_course
from history.stats.courses.dating import StepLevels, dated
from history.stats.courses.gradual_drift import RAISED_WORSE_BY, Drift

Array = NDArray[np.float64]


def course_between(points: Sequence[Point], first: int, last: int) -> SeriesCourse | None:
    """Return the drift or alternation of a series between two of its points; None for a step.

    `points` are all of the series; `first` numbers the last one before the change, `last` the first one after
    it. A step has a shorter range than SHORTEST nights.
    """
    if last - first + 1 < SHORTEST:
        return None
    logs = np.array([math.log(point.relative) if point.relative else math.nan for point in points])
    whole = find_course(logs, -RAISED_WORSE_BY)
    if whole.alternation is not None and _meets(whole.alternation, first, last):
        return whole
    inside = find_course(logs[first : last + 1], -RAISED_WORSE_BY)
    return inside if inside.drift is not None else None


def _meets(found: Alternation | Drift, first: int, last: int) -> bool:
    return found.first < last and first < found.last


def dated_together(matrix: SeriesMatrix, shifts: Sequence[Shift]) -> list[Shift]:
    """Return the shifts of a matrix with one range of nights for those that can have happened together.

    Their ranges overlap or touch: each series alone can give the whole of two steps on neighbouring nights to
    either. Counts, which hardly scatter, keep their nights.
    """
    column = {night.session_id: number for number, night in enumerate(matrix.nights)}
    rows = {series_id: row for row, (series_id, _, _) in enumerate(matrix.series)}
    logs = matrix.log_ratios() if shifts else np.empty((0, 0))
    steps = {
        shift: StepLevels(
            rows[shift.series_id],
            math.log(shift.before),
            math.log(shift.after),
            column[shift.last_before.session_id],
            column[shift.first_after.session_id],
        )
        for shift in shifts
        if rule_of(shift.metric).by_noise
    }
    remaining = sorted(steps, key=lambda shift: -shift.confidence)
    while remaining:
        cluster = _cluster(remaining, steps)
        remaining = [shift for shift in remaining if shift not in cluster]
        steps |= dict(_dated(logs, cluster, steps))
    nights = matrix.nights
    return [
        replace(shift, last_before=nights[steps[shift].first], first_after=nights[steps[shift].last])
        if shift in steps
        else shift
        for shift in shifts
    ]


def _cluster(remaining: Sequence[Shift], steps: Mapping[Shift, StepLevels]) -> list[Shift]:
    """Return the first shift and those that can have happened with it: of each series the first one."""
    seed = steps[remaining[0]]
    by_series: dict[int, Shift] = {}
    for shift in remaining:
        if steps[shift].first <= seed.last and seed.first <= steps[shift].last:
            by_series.setdefault(shift.series_id, shift)
    return list(by_series.values())


def _dated(
    logs: Array, cluster: Sequence[Shift], steps: Mapping[Shift, StepLevels]
) -> Iterator[tuple[Shift, StepLevels]]:
    """Yield the shifts of a cluster that have one date, with that; others of their series stay apart."""
    members = [steps[shift] for shift in cluster]
    first, last = min(step.first for step in members), max(step.last for step in members)
    rows = {step.row for step in members}
    others = [step for step in steps.values() if step.row in rows and step not in members]
    since = max((other.last for other in others if other.last <= first), default=0)
    until = min((other.first for other in others if other.first >= last), default=logs.shape[1] - 1)
    date = dated(logs, members, since, until)
    for shift, step in zip(cluster, members, strict=True):
        if date is None or step not in date.steps:
            continue
        if all(
            date.last <= other.first or other.last <= date.first for other in others if other.row == step.row
        ):
            yield shift, replace(step, first=date.first, last=date.last)


def with_courses_joined(matrix: SeriesMatrix, shifts: Iterable[Shift]) -> list[Shift]:
    """Return the shifts of a matrix with those joined that are a drift or an alternation of their series.

    They are a drift if a line explains them, one alone too, and steps with hindsight stay. They are an
    alternation if the series was at the same two levels several times. The shift that joins them spans all of
    its nights.
    """
    by_series: defaultdict[int, list[Shift]] = defaultdict(list)
    for shift in shifts:
        by_series[shift.series_id].append(shift)
    rows = {series_id: row for row, (series_id, _, _) in enumerate(matrix.series)}
    logs = matrix.log_ratios() if by_series else np.empty((0, 0))
    return [
        shift
        for series_id, found in by_series.items()
        for shift in _joined(matrix, logs[rows[series_id]], found)
    ]


def _joined(matrix: SeriesMatrix, logs: Array, shifts: list[Shift]) -> list[Shift]:
    course = find_course(logs, -RAISED_WORSE_BY)
    found = course.alternation or course.drift
    if found is None:
        return shifts
    inside = [shift for shift in shifts if _explains(course, found, shift, matrix)]
    if len(inside) < (2 if course.alternation else 1):
        return shifts
    if course.alternation is not None:
        margin, before, kind = course.alternation.margin, found.before, Course.ALTERNATION
        low, high = found.size - margin, found.size + margin
    else:
        assert course.drift is not None
        low, high, before, kind = course.drift.low, course.drift.high, found.before, Course.DRIFT
    joined = replace(
        inside[0],
        last_before=matrix.nights[found.first],
        first_after=matrix.nights[found.last],
        before=math.exp(before),
        after=math.exp(before + found.size),
        low=math.exp(low),
        high=math.exp(high),
        confidence=max(shift.confidence for shift in inside),
        course=kind,
    )
    return [joined, *(shift for shift in shifts if shift not in inside)]


def _explains(course: SeriesCourse, found: Alternation | Drift, shift: Shift, matrix: SeriesMatrix) -> bool:
    """Return whether a shift that the watch raised is part of what its series does."""
    nights = matrix.nights
    begin, end = nights[found.first].started_at, nights[found.last].started_at
    if not (shift.last_before.started_at < end and begin < shift.first_after.started_at):
        return False
    if course.alternation is not None:
        return True
    return shift.log_size * found.size > 0 and not any(_is_step(step, shift, matrix) for step in course.steps)


def _is_step(step: ChangePoint, shift: Shift, matrix: SeriesMatrix) -> bool:
    return (
        shift.last_before.started_at < matrix.nights[step.last].started_at
        and matrix.nights[step.first].started_at < shift.first_after.started_at
    )
