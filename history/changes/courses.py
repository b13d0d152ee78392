"""What the shifts of a box are together: drifts, alternations, and steps that have one date.

A drift or an alternation is one finding of its series, however many steps the watch raised in it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from history.changes.detection import rule_of
from history.changes.level_shift import Course, Shift
from history.series.matrix import SeriesMatrix
from history.series.series import Point
from history.stats.change_points import SHORTEST, ChangePoint
from history.stats.change_points.change_point import COVERAGE
from history.stats.courses.alternation import Alternation
from history.stats.courses.course import SeriesCourse, find_course
from history.stats.courses.gradual_drift import RAISED_WORSE_BY, Drift
from history.stats.estimators import MAD_TO_DEVIATION
from history.stats.shared_steps import LIKELY

Array = NDArray[np.float64]

AROUND = 60
"""Nights to either side that the noise is estimated from."""

MIN_AROUND = 12
"""Nights with a value, of both sides together, without which nothing is dated anew."""

BETWEEN = 2.0
"""Standard deviations by which a night has to be off a level, towards the other, to belong to neither."""

CUT = 5.0
"""Standard deviations to which a night's distance from a level is cut."""

_MIN_SHARE = 1e-9


@dataclass(frozen=True)
class StepLevels:
    """A step of a series: its row, its levels, and the nights that its own range has."""

    row: int
    before: float
    after: float
    first: int
    """The last night that is surely before it."""

    last: int
    """The first night that is surely after it."""


@dataclass(frozen=True)
class CommonDate:
    """The last night before and the first night after steps that several series made together."""

    first: int
    last: int
    steps: tuple[StepLevels, ...]
    """The steps that have this date; the others have their own."""


@dataclass(frozen=True)
class _Shares:
    """The shares of a step in the nights from `since` on, and their standard deviation around the levels."""

    values: Array
    deviation: float
    since: int

    def squares(self, first: int, last: int) -> Array:
        """Return how badly a step between two nights fits, by its first night after them.

        These are squared standard deviations, less those of a step at the night after `first`.
        """
        values = self.values[first + 1 - self.since : last + 1 - self.since]
        to_old = np.minimum(np.abs(values) / self.deviation, CUT) ** 2
        to_new = np.minimum(np.abs(values - 1) / self.deviation, CUT) ** 2
        off = np.where(np.isfinite(values), to_old - to_new, 0.0)
        return np.concatenate([[0.0], np.cumsum(off)[:-1]])

    def is_between(self, night: int) -> bool:
        """Return whether a night belongs to neither level."""
        share, off = float(self.values[night - self.since]), BETWEEN * self.deviation
        return math.isfinite(share) and off < share < 1 - off


def dated(logs: Array, steps: Sequence[StepLevels], since: int, until: int) -> CommonDate | None:
    """Return the date of steps that several series made together, and which of them have it.

    `logs` is [series, nights], nan in a gap; the old levels have lasted since night `since`, the new ones
    until `until`, inclusive. None where too few nights tell. The range of a single series is only widened.
    """
    first, last = min(step.first for step in steps), max(step.last for step in steps)
    since, until = max(since, first - AROUND), min(until, last + AROUND)
    known = [
        (step, shares)
        for step in steps
        if (shares := _shares(logs[step.row, since : until + 1], step, since, first, last)) is not None
    ]
    found = _range_of(known, first, last)
    if found is None:
        return None
    fitting = [(step, shares) for step, shares in known if _fits(step, shares, *found)]
    if 0 < len(fitting) < len(known):
        found = _range_of(fitting, first, last) or found
    return CommonDate(*found, tuple(step for step, _ in fitting))


def _range_of(known: Sequence[tuple[StepLevels, _Shares]], first: int, last: int) -> tuple[int, int] | None:
    """Return the range of nights of steps with their shares; it is between `first` and `last`, or wider."""
    if not known:
        return None
    values = np.array([shares.values for _, shares in known])
    told = np.isfinite(values)
    weight = np.where(told, np.array([shares.deviation**-2 for _, shares in known])[:, np.newaxis], 0.0)
    with np.errstate(invalid="ignore"):
        mean = (np.where(told, values, 0.0) * weight).sum(axis=0) / weight.sum(axis=0)
    since = known[0][1].since
    deviation = _deviation(mean, first - since, last - since)
    if deviation is None:
        return None
    pooled = _Shares(mean, deviation, since)
    if len(known) > 1:
        first, last = _likely(pooled, first, last)
    while first > since and pooled.is_between(first):
        first -= 1
    while last < since + len(mean) - 1 and pooled.is_between(last):
        last += 1
    return first, last


def _shares(values: Array, step: StepLevels, since: int, first: int, last: int) -> _Shares | None:
    share = (values - step.before) / (step.after - step.before)
    deviation = _deviation(share, first - since, last - since)
    return None if deviation is None else _Shares(share, deviation, since)


def _deviation(share: Array, begin: int, end: int) -> float | None:
    """Return the standard deviation of shares around their levels; None if too few nights tell."""
    off = np.concatenate([share[: begin + 1], share[end:] - 1])
    off = np.abs(off[np.isfinite(off)])
    return max(MAD_TO_DEVIATION * float(np.median(off)), _MIN_SHARE) if len(off) >= MIN_AROUND else None


def _likely(shares: _Shares, first: int, last: int) -> tuple[int, int]:
    """Return the range that has COVERAGE of the likelihood over the first nights of the new level."""
    squares = shares.squares(first, last)
    weights = np.exp(-(squares - squares.min()) / 2)
    weights = np.cumsum(weights) / weights.sum()
    tail = (1 - COVERAGE) / 2
    earliest = int(np.searchsorted(weights, tail))
    latest = int(np.searchsorted(weights, 1 - tail))
    return first + earliest, first + 1 + min(latest, len(squares) - 1)


def _fits(step: StepLevels, shares: _Shares, first: int, last: int) -> bool:
    """Return whether the nights of a series let its step be in a range as well as in its own."""
    begin = min(step.first, first)
    squares = shares.squares(begin, max(step.last, last))
    inside = squares[first - begin : last - begin]
    return bool(inside.min() - squares.min() <= 2 * LIKELY)


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
