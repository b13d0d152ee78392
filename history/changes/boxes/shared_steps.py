"""Steps that most series of a box share, and what made them: the box, its base, or a commit to every branch.

What moves one branch alone, on however many boxes, is a commit and stays a change. What moves most series of
most branches of a box in one night is the box, unless another box shows the same: then it is a commit to
these branches. What is in the base's own values, the other way round, is the base. Box and base are one note
each, however many series show it. A series that moved by more than the others, or at another time, is a
change beside it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sqlalchemy import Connection

from history.changes.boxes.shared_drift import WINDOW, drifts_with_box
from history.changes.boxes.step_groups import (
    MIN_BRANCHES,
    MIN_SERIES,
    BranchSteps,
    StepGroup,
    by_branch,
    day_of,
    step_groups,
)
from history.changes.level_shift import Course, Shift
from history.metric_words import label_of
from history.series.environment_changes import markers
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.stats.shared_steps import BEYOND, MARKED_BEYOND, is_as_others
from history.store.records import Environment

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


MOVED = 1.5
"""Standard errors by which the median series of a branch has to move."""

APART = 8
"""Nights by which two shared steps are apart at least."""

MARKED_MOVED = 1.2
"""The standard errors by which the series of each of these branches have to move on average (all_moved), for
the box to be what moved on the night of a marker: another machine may suit many series as the one before."""

MARKED_NIGHTS = 30
"""Nights before and after a marker whose means are compared."""

OF_PEAK = 0.75
"""The share of the largest step around it that a day shows if it may be the day of the step."""

NEARBY = 2
"""Nights by which a shared step may be dated wrongly, or a session of the box be before or after it."""

SERIES_OF_BASE = 0.75
"""The share of series of which most of the step has to be in the base's own values."""

ALIKE = 2 / 3
"""The share of a step that another box has to show in the same series if they moved alike;"""

LARGEST = 2.0
"""a series counts as having moved by so many times the median at most, so that no series decides alone."""


class Cause(StrEnum):
    """What moved."""

    BOX = "box"
    BASE = "base"
    COMMIT = "commit"
    """Every branch of the box, and those of another box with it."""


@dataclass(frozen=True)
class SharedStep:
    """Most series of a metric on a box moved in one night, and did not come back in the next ones."""

    environment: Environment
    """That of the first of the suites that show it."""

    suites: int
    metric: str
    cause: Cause
    base: str
    since: Night
    """The first night of the new level."""

    branches: tuple[str, ...]
    """Those that moved, in order."""

    size: float
    """The median step over all series, as a logarithm."""

    typical: float
    """The median of the steps without their signs."""

    moved: int
    """Series that moved by MOVED standard errors or more,"""

    series: int
    """of how many that tell."""

    at_marker: bool = False
    """Whether the machine of the box, or its tools, changed that night."""

    def __str__(self) -> str:
        """Return the box, the night, and what moved by how much, as a sentence."""
        return f"box {self.environment.box}, {self.since.started_at:%Y-%m-%d}: {self.what}, {self.amounts}"

    @property
    def what(self) -> str:
        """What moved, as a clause."""
        if self.cause is Cause.BASE:
            return f"the base {self.base} moved, and most series against it"
        return f"most series of {len(self.branches)} branches moved together"

    @property
    def amounts(self) -> str:
        """How many series of the metric moved, and by how much."""
        one_way = abs(self.size) > self.typical / 2
        by = (
            f"{100 * math.expm1(self.size):+.1f} %"
            if one_way
            else f"{100 * math.expm1(self.typical):.1f} % up or down"
        )
        return f"{self.moved} of {self.series} of {label_of(self.metric)} by {by} in the median"


class SharedSteps:
    """The shared steps in the matrices of all boxes."""

    def __init__(self, connection: Connection, matrices: Iterable[SeriesMatrix]) -> None:
        self._connection = connection
        self._marked_days: dict[str, NDArray[np.int64]] = {}
        groups: defaultdict[tuple[str, str], list[StepGroup]] = defaultdict(list)
        for matrix in matrices:
            for group in step_groups(connection, matrix):
                groups[matrix.environment.box, group.metric].append(group)
        self._groups = dict(groups)

    @cached_property
    def found(self) -> Mapping[tuple[str, str], tuple[SharedStep, ...]]:
        """Return the shared steps of each box and metric, in order."""
        return {
            key: tuple(self._with_other_boxes(step, key) for step in _shared(groups, self._marked))
            for key, groups in self._groups.items()
        }

    def _with_other_boxes(self, step: SharedStep, key: tuple[str, str]) -> SharedStep:
        """Return a step of a box and metric, of a commit if another box shows it: two boxes alike are no box.

        Two machines that changed in the same nights may be alike.
        """
        box, metric = key
        groups, day = self._groups[key], day_of(step.since)
        others = (
            its_groups
            for (other, its_metric), its_groups in self._groups.items()
            if other != box
            and its_metric == metric
            and not (self._is_marked(groups, day) and self._is_marked(its_groups, day))
        )
        if step.cause is Cause.BOX and any(_moved_alike(step, groups, other) for other in others):
            return replace(step, cause=Cause.COMMIT)
        return step

    def _is_marked(self, groups: Sequence[StepGroup], day: int) -> bool:
        return bool((np.abs(self._marked(groups) - day) <= NEARBY).any())

    def _marked(self, groups: Sequence[StepGroup]) -> NDArray[np.int64]:
        """Return the days on which the machine of some groups, all of a box, or its tools changed."""
        box = groups[0].matrix.environment.box
        if box not in self._marked_days:
            by_environment = {group.matrix.environment: group.matrix for group in groups}
            self._marked_days[box] = np.array(
                [
                    day_of(matrix.nights[position])
                    for matrix in by_environment.values()
                    for position, marker in markers(self._connection, matrix).items()
                    if marker.box
                ],
                dtype=np.int64,
            )
        return self._marked_days[box]

    def latest(self, nights: int) -> Iterator[SharedStep]:
        """Yield what boxes and bases did in the latest nights of each box."""
        for key, steps in self.found.items():
            end = max(int(group.days[-1]) for group in self._groups[key])
            for step in steps:
                if day_of(step.since) > end - nights and step.cause is not Cause.COMMIT:
                    yield step

    def explained(self, matrix: SeriesMatrix, shifts: Iterable[Shift]) -> Iterator[Shift]:
        """Yield the shifts of a matrix; those that their box explains say so."""
        for shift in shifts:
            why = self._explanation(matrix, shift)
            yield replace(shift, explained="; ".join(filter(None, (shift.explained, why)))) if why else shift

    def _explanation(self, matrix: SeriesMatrix, shift: Shift) -> str:
        key = matrix.environment.box, shift.metric
        groups = self._groups.get(key, [])
        group = next((group for group in groups if group.matrix is matrix), None)
        if group is None:
            return ""
        for step in self.found[key]:
            is_of_branch = shift.branch in step.branches and shift.course is Course.STEP
            if is_of_branch and _explains(step, groups, group, shift):
                return "" if step.cause is Cause.COMMIT else str(step)
        if drifts_with_box(by_branch(groups).values(), group, shift):
            return f"box {key[0]}: most series of {label_of(group.metric)} drift as it does"
        if is_noise_of_box(group, shift):
            return (
                f"box {matrix.environment.box}: the noise of {label_of(group.metric)} had grown in all series"
            )
        return ""


def _shared(
    groups: Sequence[StepGroup], marked: Callable[[Sequence[StepGroup]], NDArray[np.int64]]
) -> Iterator[SharedStep]:
    """Yield the steps that most series of a metric on a box share, in order.

    `marked` returns the days with a marker of the box.
    """
    first = min(int(group.days[0]) for group in groups)
    count = max(int(group.days[-1]) for group in groups) - first + 1
    branches = by_branch(groups)
    scores = np.array([of_branch.scores(first, count) for of_branch in branches.values()])
    moved = np.array([_at_peaks(of_branch) for of_branch in scores])
    most = moved.sum(axis=0) > np.isfinite(scores).sum(axis=0) / 2
    strength = np.where(most, np.where(moved, scores, 0.0).sum(axis=0), 0.0)
    at_markers = dict(_at_markers(branches, marked(groups)))
    days = {first + place: list(compress(branches, moved[:, place])) for place in _peaks(strength)}
    days = {day: names for day, names in days.items() if all(abs(day - at) > NEARBY for at in at_markers)}
    for day, names in sorted((days | at_markers).items()):
        step = _described([group for group in groups if group.matrix.branch in names], day)
        if step is not None and (step.cause is Cause.BASE or len(names) >= MIN_BRANCHES):
            yield replace(step, at_marker=day in at_markers)


def _at_markers(
    branches: Mapping[str, BranchSteps], marked: NDArray[np.int64]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the days with a marker on which most branches moved, with those that did."""
    last = -NEARBY - 1
    for day in sorted(set(marked.tolist())):
        means = {name: branch.moved_around(day, MARKED_NIGHTS) for name, branch in branches.items()}
        told = [name for name, mean in means.items() if math.isfinite(mean)]
        names = [name for name in told if means[name] >= MARKED_MOVED]
        if len(names) >= MIN_BRANCHES and 2 * len(names) > len(told) and day > last + NEARBY:
            yield day, names
            last = day


def _described(groups: Sequence[StepGroup], day: int) -> SharedStep | None:
    """Return the step of some groups on a day; None where none of them tells."""
    at = [(group, column) for group in groups if (column := group.column(day)) is not None]
    if not at:
        return None
    sizes = np.concatenate([group.steps.sizes[:, column] for group, column in at])
    distances = np.concatenate([group.steps.distances[:, column] for group, column in at])
    told = np.isfinite(distances)
    if not told.any():
        return None
    group, column = at[0]
    of_base = np.concatenate([group.is_of_base(column) for group, column in at])[told]
    return SharedStep(
        group.matrix.environment,
        len({group.matrix.environment for group, _ in at}),
        group.metric,
        Cause.BASE if of_base.mean() > SERIES_OF_BASE else Cause.BOX,
        group.matrix.base or "",
        group.night(column),
        tuple(dict.fromkeys(group.matrix.branch for group, _ in at)),
        float(np.median(sizes[told])),
        float(np.median(np.abs(sizes[told]))),
        int((distances[told] >= MOVED).sum()),
        int(told.sum()),
    )


def _moved_alike(step: SharedStep, groups: Sequence[StepGroup], others: Sequence[StepGroup]) -> bool:
    """Return whether the series of a step, in `groups`, moved alike on another box, in `others`.

    Every branch has to that both measure in at least MIN_SERIES series.
    """
    day = day_of(step.since)
    alike = []
    for branch in step.branches:
        own, there = (_sizes_on(some, branch, day) for some in (groups, others))
        both = sorted(own.keys() & there.keys())
        if len(both) >= MIN_SERIES:
            here = np.array([own[series] for series in both])
            most = LARGEST * float(np.median(np.abs(here)))
            here = np.clip(here, -most, most)
            beside = np.clip([there[series] for series in both], -most, most)
            alike.append(bool(here @ beside >= ALIKE * (here @ here)))
    return bool(alike) and all(alike)


def _sizes_on(groups: Sequence[StepGroup], branch: str, day: int) -> dict[tuple[str, str, str], float]:
    """Return by how much the series of a branch in some groups moved on a day, where enough nights tell."""
    found = {}
    for group in groups:
        column = group.column(day)
        if group.matrix.branch == branch and column is not None:
            where = group.matrix.environment
            for row, size in zip(group.rows, group.steps.sizes[:, column].tolist(), strict=True):
                if math.isfinite(size):
                    found[where.suite, where.configuration, group.matrix.series[row][1]] = size
    return found


def _at_peaks(scores: Array) -> NDArray[np.bool_]:
    """Return the days on which a branch moved, about as much as on any near them.

    A step also shows in the nights beside it, by less.
    """
    strength = np.where(scores >= MOVED, scores, 0.0)
    return np.asarray((strength > 0) & (strength >= OF_PEAK * _most_around(strength)))


def _peaks(strength: Array) -> Iterator[int]:
    """Yield the days on which something is the strongest of those around them, and above 0."""
    last = -APART - 1
    for day in np.flatnonzero((strength > 0) & (strength == _most_around(strength))).tolist():
        if day > last + APART:
            yield day
        last = day


def _most_around(strength: Array) -> Array:
    return np.asarray(sliding_window_view(np.pad(strength, APART), 2 * APART + 1).max(axis=1))


def _explains(step: SharedStep, groups: Sequence[StepGroup], group: StepGroup, shift: Shift) -> bool:
    """Return whether a step of the box, in `groups`, is what a shift of a series in `group` is."""
    day = day_of(step.since)
    column, row = group.column(day), group.row(shift.series_id)
    if column is None or row is None:
        return False
    first, last = (
        int(np.searchsorted(group.days, day_of(night))) for night in (shift.last_before, shift.first_after)
    )
    nights = range(max(column - NEARBY, 0), column + NEARBY + 1)
    if not any(group.steps.can_be_at(row, night, first, last) for night in nights):
        return False
    others = [
        other.steps.sizes[
            [number for number in range(len(other.rows)) if (other, number) != (group, row)], at
        ]
        for other in groups
        if other.matrix.branch in step.branches and (at := other.column(day)) is not None
    ]
    error, beyond = float(group.steps.errors[row, column]), MARKED_BEYOND if step.at_marker else BEYOND
    return is_as_others(shift.log_size, error, np.concatenate(others), beyond)
