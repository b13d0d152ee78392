"""Change points of whole series, found with hindsight, as for series that were imported complete.

Nothing is stored: these are the changes that a person sees who looks at the whole series. What the nightly
service stores and reports is found by the detector, night by night.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import numpy as np
from sqlalchemy import Connection

from history.changes.level_shift import Direction, direction_between
from history.series.inventory import InventoryFilter
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night, SeriesKey, base_beside, find_series
from history.series.timeline import Timeline
from history.stats.change_points import SHORTEST, ChangePoint, find_changes_many
from history.stats.courses.alternation import Alternation
from history.stats.courses.course import course_beside, find_course
from history.stats.courses.gradual_drift import Drift


@dataclass(frozen=True)
class LevelChange:
    """A change of level in a finished series."""

    last_before: Night
    """The last night that is certainly before it."""

    first: Night
    """The first night at the new level: the best estimate."""

    first_after: Night
    """The first night that is certainly after it."""

    before: float
    """The level before: the value over the base's, or the value itself in a series without a base."""

    after: float
    low: float
    """The lower bound of the interval of after / before, which holds with 95 %."""

    high: float
    confidence: float
    direction: Direction


@dataclass(frozen=True)
class GradualChange:
    """A drift of a finished series, beside its changes of level."""

    first: Night
    last: Night
    ratio: float
    """The end of the line through the series over its beginning."""

    low: float
    """The lower bound of the interval of `ratio`, which holds with 95 %."""

    high: float
    direction: Direction


@dataclass(frozen=True)
class AlternatingLevels:
    """Two levels between which a finished series switched again and again: no change of a branch."""

    first: Night
    """The last night before the first switch."""

    last: Night
    """The first night after the last switch."""

    before: float
    """The level before the first switch, in values as those of LevelChange."""

    after: float
    switches: int


@dataclass(frozen=True)
class SearchedSeries:
    """A series in which changes were searched for."""

    key: SeriesKey
    base: str | None
    """The branch that values are relative to; None when they are as measured."""

    nights: int
    """The nights with a value."""

    changes: tuple[LevelChange, ...]
    drift: GradualChange | None = None
    alternation: "AlternatingLevels | None" = None

    @property
    def is_long_enough(self) -> bool:
        """Whether it has as many nights as a search needs."""
        return self.nights >= SHORTEST


def search_series(
    connection: Connection, wanted: InventoryFilter, base: str | None = None, since: datetime | None = None
) -> tuple[SearchedSeries, ...]:
    """Return the matching series with the changes in all of their nights, or in those from a time on.

    Values are relative to `base`, else to the base that the branch was measured beside; those of a branch
    without one are taken as measured.
    """
    keys = find_series(connection, **vars(wanted))
    searched: list[SearchedSeries] = []
    for (environment, branch), group in groupby(keys, key=lambda key: (key.environment, key.branch)):
        against = base or base_beside(connection, environment, branch)
        against = None if against == branch else against
        its_keys = {(key.step, key.metric): key for key in group}
        metrics = sorted({key.metric for key in its_keys.values()})
        matrix = read_matrix(connection, environment, branch, against, metrics)
        searched += _searched(matrix, its_keys, since)
    return tuple(searched)


def changes_of(timeline: Timeline) -> tuple[LevelChange, ...]:
    """Return the changes in the nights of a timeline, in values as those of `search_series`."""
    points = [entry.point for entry in timeline.entries]
    values = [point.relative if timeline.base else point.value for point in points]
    logs = np.array([math.log(value) if value is not None and value > 0 else math.nan for value in values])
    nights = [point.night for point in points]
    return tuple(_level_change(nights, timeline.key.metric, change) for change in find_course(logs).steps)


def _searched(
    matrix: SeriesMatrix, keys: dict[tuple[str, str], SeriesKey], since: datetime | None
) -> Iterator[SearchedSeries]:
    rows = [number for number, (_, *name) in enumerate(matrix.series) if tuple(name) in keys]
    columns = [
        number for number, night in enumerate(matrix.nights) if since is None or night.started_at >= since
    ]
    nights = [matrix.nights[column] for column in columns]
    logs = matrix.log_ratios()[np.ix_(rows, columns)]
    counts = np.isfinite(logs).sum(axis=1)
    for row, values, found, count in zip(rows, logs, find_changes_many(logs), counts, strict=True):
        _, step, metric = matrix.series[row]
        course = course_beside(values, found)
        changes = tuple(_level_change(nights, metric, point) for point in course.steps)
        gradual = None if course.drift is None else _gradual_change(nights, metric, course.drift)
        between = None if course.alternation is None else _alternating(nights, course.alternation)
        yield SearchedSeries(keys[step, metric], matrix.base, int(count), changes, gradual, between)


def _gradual_change(nights: Sequence[Night], metric: str, drift: Drift) -> GradualChange:
    ratio = math.exp(drift.size)
    return GradualChange(
        nights[drift.first],
        nights[drift.last],
        ratio,
        math.exp(drift.low),
        math.exp(drift.high),
        direction_between(metric, 1.0, ratio),
    )


def _alternating(nights: Sequence[Night], found: Alternation) -> AlternatingLevels:
    return AlternatingLevels(
        nights[found.first],
        nights[found.last],
        math.exp(found.before),
        math.exp(found.after),
        len(found.switches),
    )


def _level_change(nights: Sequence[Night], metric: str, point: ChangePoint) -> LevelChange:
    return LevelChange(
        last_before=nights[point.first],
        first=nights[point.index],
        first_after=nights[point.last],
        before=math.exp(point.before),
        after=math.exp(point.after),
        low=math.exp(point.low),
        high=math.exp(point.high),
        confidence=point.confidence,
        direction=direction_between(metric, point.before, point.after),
    )
