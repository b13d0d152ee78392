"""The steps of all series of a metric that are measured together, day by day, and those of their base."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from history.changes.detection import rule_of
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night
from history.stats.shared_steps import MIN_SINCE, StepSizes, all_moved, step_sizes

Array = NDArray[np.float64]
Days = NDArray[np.int64]

MIN_SERIES = 5
"""Series of a branch on a box that tell whether most of them moved."""

MIN_BRANCHES = 2
"""Branches that have to move for the box to be what moved: one alone is a commit."""

OF_BASE = 0.5
"""The share of a step that has to be in the base's own values."""

LATER = 2
"""Days after a step in which a branch that was not measured every night shows it."""

_NOON = timedelta(hours=12)


@dataclass(frozen=True, eq=False)
class StepGroup:
    """The series of a metric, of a branch in one environment; nights of past commits are left out."""

    connection: Connection
    matrix: SeriesMatrix
    metric: str
    rows: tuple[int, ...]
    """Of the matrix; rows of the group count these."""

    columns: tuple[int, ...]
    """Of the matrix; columns of the group count these."""

    days: Days
    """The day of each column."""

    @cached_property
    def steps(self) -> StepSizes:
        """Return the steps of its series, [rows, columns]."""
        return step_sizes(self.matrix.log_ratios()[np.ix_(self.rows, self.columns)])

    @cached_property
    def of_base(self) -> StepSizes:
        """Return the steps of the base's own values in the same nights, [rows, columns]."""
        base = self.matrix.base
        assert base is not None  # only branches beside a base are judged
        own = read_matrix(self.connection, self.matrix.environment, base, None, [self.metric])
        logs = own.log_ratios()
        place = {step: row for row, (_, step, _) in enumerate(own.series)}
        column = {night.session_id: number for number, night in enumerate(own.nights)}
        values = np.full((len(self.rows), len(self.columns)), np.nan)
        measured = [column.get(self.night(number).session_id) for number in range(len(self.columns))]
        known = [number for number, found in enumerate(measured) if found is not None]
        for number, row in enumerate(self.rows):
            step = self.matrix.series[row][1]
            if step in place:
                values[number, known] = logs[place[step], [found for found in measured if found is not None]]
        return step_sizes(values)

    def night(self, column: int) -> Night:
        """Return the night of a column."""
        return self.matrix.nights[self.columns[column]]

    def column(self, day: int) -> int | None:
        """Return the first column on a day, or shortly after it; None without one."""
        place = int(np.searchsorted(self.days, day))
        return place if place < len(self.days) and self.days[place] <= day + LATER else None

    def row(self, series_id: int) -> int | None:
        """Return the row of a series; None if it is of another metric."""
        return next(
            (row for row, number in enumerate(self.rows) if self.matrix.series[number][0] == series_id), None
        )

    def is_of_base(self, column: int) -> NDArray[np.bool_]:
        """Return whether most of the step of each row is in the base's own values, the other way, [rows]."""
        sizes = self.steps.sizes[:, column]
        return np.asarray(-self.of_base.sizes[:, column] * np.sign(sizes) >= OF_BASE * np.abs(sizes))


@dataclass(frozen=True)
class BranchSteps:
    """The groups of a branch in all suites of a box."""

    groups: Sequence[StepGroup]

    def moved_around(self, day: int, nights: int) -> float:
        """Return how far the series moved from so many nights before a day to as many from it on (all_moved).

        nan where too few series tell.
        """
        around = [
            group.steps.moves(
                (group.days >= day - nights) & (group.days < day),
                (group.days >= day) & (group.days < day + nights),
                MIN_SINCE,
            )
            for group in self.groups
        ]
        sizes, errors = np.concatenate(around, axis=1)
        return all_moved(sizes, errors) if np.isfinite(errors).sum() >= MIN_SERIES else math.nan

    def scores(self, first: int, count: int) -> Array:
        """Return by how many standard errors the median series moved, [days].

        The `count` days begin with day `first`; nan where too few series tell.
        """
        distances = np.full((sum(len(group.rows) for group in self.groups), count), np.nan)
        begin = 0
        for group in self.groups:
            end = begin + len(group.rows)
            distances[begin:end, group.days - first] = group.steps.distances
            begin = end
        told = np.isfinite(distances).sum(axis=0) >= MIN_SERIES
        scores = np.full(count, np.nan)
        if told.any():
            scores[told] = np.nanmedian(distances[:, told], axis=0)
        return scores


def step_groups(connection: Connection, matrix: SeriesMatrix) -> Iterator[StepGroup]:
    """Yield the groups of a matrix, by metric; counts, which no machine moves, are in none."""
    columns = tuple(column for column, night in enumerate(matrix.nights) if night.measured_at is None)
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, (_, _, metric) in enumerate(matrix.series):
        if rule_of(metric).by_noise:
            rows[metric].append(row)
    days = np.array([day_of(matrix.nights[column]) for column in columns], dtype=np.int64)
    if columns:
        for metric, of_metric in rows.items():
            yield StepGroup(connection, matrix, metric, tuple(of_metric), columns, days)


def by_branch(groups: Sequence[StepGroup]) -> Mapping[str, BranchSteps]:
    """Return the groups of each branch, in the order of their names."""
    found: defaultdict[str, list[StepGroup]] = defaultdict(list)
    for group in groups:
        found[group.matrix.branch].append(group)
    return {name: BranchSteps(found[name]) for name in sorted(found)}


def day_of(night: Night) -> int:
    """Return the number of the day on which a night ends: its suites may begin before and after midnight."""
    return (night.started_at + _NOON).toordinal()
