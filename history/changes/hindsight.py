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
from numpy.typing import NDArray
from sqlalchemy import Connection

from history.changes.level_shift import Direction, direction_between
from history.comparison.options import THRESHOLD
from history.series.inventory import InventoryFilter
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night, SeriesKey, base_beside, bases_beside, find_series
from history.series.timeline import Timeline
from history.stats.change_points import SHORTEST, ChangePoint, find_changes_many
from history.stats.courses.alternation import Alternation
from history.stats.courses.course import course_beside, find_course
from history.stats.courses.gradual_drift import Drift
from history.store.records import Environment
from suites.metrics import METRICS

SMALLEST_TRIED, LARGEST_TRIED, SIZES_TRIED = 1e-4, 1.0, 8
"""The range of sizes, as fractions, in which the smallest visible step is looked for, and how many are tried:
that tells it to a factor of 1.1."""


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

    @property
    def log_size(self) -> float:
        """The logarithm of after / before, without its sign."""
        return abs(math.log(self.after / self.before))


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
    visible: float | None = None
    """The smallest step in the middle that would have been found, as a fraction, of a series in which nothing
    was; None of others, and where no step of up to LARGEST_TRIED would have been."""

    @property
    def threshold(self) -> float:
        """The fraction beyond which a change of its metric matters."""
        timed = THRESHOLD / 100
        return METRICS[self.key.metric].threshold(timed) if self.key.metric in METRICS else timed

    @property
    def that_matter(self) -> tuple[LevelChange, ...]:
        """The changes beyond the threshold."""
        least = math.log1p(self.threshold)
        return tuple(change for change in self.changes if change.log_size >= least)

    @property
    def is_long_enough(self) -> bool:
        """Whether it has as many nights as a search needs."""
        return self.nights >= SHORTEST


def search_series(
    connection: Connection, wanted: InventoryFilter, base: str | None = None, since: datetime | None = None
) -> tuple[SearchedSeries, ...]:
    """Return the matching series with the changes in all of their nights, or in those from a time on.

    Values are relative to `base`, else to the base that the branch was measured beside; those of a branch
    without one are taken as measured. A base itself is left out unless it is asked for: it shows the machine.
    """
    keys = find_series(connection, **vars(wanted))
    searched: list[SearchedSeries] = []
    for (environment, branch), group in groupby(keys, key=lambda key: (key.environment, key.branch)):
        against = base or base_beside(connection, environment, branch)
        against = None if against == branch else against
        if against is None and wanted.branch is None and _is_base_of_others(connection, environment, branch):
            continue
        its_keys = {(key.step, key.metric): key for key in group}
        metrics = sorted({key.metric for key in its_keys.values()})
        matrix = read_matrix(connection, environment, branch, against, metrics)
        searched += _searched(matrix, its_keys, since)
    return tuple(searched)


def _is_base_of_others(connection: Connection, environment: Environment, branch: str) -> bool:
    return branch in bases_beside(connection, environment).values()


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
    every = find_changes_many(logs)
    visible = _visible(logs, [not found for found in every])
    for row, values, found, count, least in zip(rows, logs, every, counts, visible, strict=True):
        _, step, metric = matrix.series[row]
        course = course_beside(values, found)
        changes = tuple(_level_change(nights, metric, point) for point in course.steps)
        gradual = None if course.drift is None else _gradual_change(nights, metric, course.drift)
        between = None if course.alternation is None else _alternating(nights, course.alternation)
        seen = least if gradual is None and between is None else None
        yield SearchedSeries(keys[step, metric], matrix.base, int(count), changes, gradual, between, seen)


def _visible(logs: NDArray[np.float64], wanted: Sequence[bool]) -> list[float | None]:
    """Return the smallest step in the middle of each series [series, nights] that the search would find.

    A step is added to the values as they are, and searched for, in SIZES_TRIED halvings of the range. None
    for series that are not wanted.
    """
    rows = np.flatnonzero(np.array(wanted, dtype=bool) & (np.isfinite(logs).sum(axis=1) >= SHORTEST))
    known = np.isfinite(logs[rows])
    after = np.cumsum(known, axis=1) > known.sum(axis=1, keepdims=True) / 2
    low, high = np.full(len(rows), SMALLEST_TRIED), np.full(len(rows), LARGEST_TRIED)
    is_seen = np.zeros(len(rows), dtype=bool)
    for number in range(SIZES_TRIED):
        size = high if number == 0 else np.sqrt(low * high)
        found = find_changes_many(logs[rows] + after * np.log1p(size)[:, None])
        seen = np.array([bool(changes) for changes in found], dtype=bool)
        is_seen |= seen
        low, high = np.where(seen, low, size), np.where(seen, size, high)
    visible: list[float | None] = [None] * len(logs)
    for row, size, seen in zip(rows.tolist(), high.tolist(), is_seen.tolist(), strict=True):
        visible[row] = size if seen else None
    return visible


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
