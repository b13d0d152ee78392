"""What the page of a branch shows: its ratios by step and night, in each environment and by each metric."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from sqlalchemy import Connection, select

from history.changes.report import ChangeReport
from history.series.last_nights import tracked_branch
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import gap_reasons, in_environment
from history.series.task_states import WELL, TaskOutcome, TaskState
from history.store.records import ALL_STEPS, Environment
from history.store.schema import series
from report.values.catalog import Catalog, PlaceNights
from report.values.failed_sessions import FailedSession
from report.values.machine_page import missed
from report.values.night_intervals import NightInterval, NightIntervals
from suites.metrics import METRICS, Metric

NIGHTS = 60
"""The nights of a strip; the series explorer has all."""

Sight = Mapping[str, float | None]
"""The smallest visible change by step, as a fraction; None when it is unknown."""

Sights = Mapping[tuple[Environment, str], Sight]
"""By environment and metric."""


IntervalsOf = Callable[[str], NightIntervals]
"""Gives the intervals of a night by the uid of its session."""


Reasons = Mapping[tuple[int, str], str]
"""Why a step has no ratio in a night, by session and step."""

_TOLD = {*WELL, TaskOutcome.DISTURBED, TaskOutcome.PENDING, TaskOutcome.BUDGET, TaskOutcome.PAUSED}
"""The outcomes that say nothing of whether a branch can be measured, or that its session tells."""


@dataclass(frozen=True)
class FailingNights:
    """The nights in a row, up to the last one, in which nothing of a branch was measured."""

    nights: int
    since: datetime
    reason: str
    """Why the last of them has no value."""


@dataclass(frozen=True)
class BranchPlace:
    """A branch in one environment over its last nights, by one metric."""

    place: Environment
    metric: Metric
    base: str
    matrix: SeriesMatrix
    """Ratios to the base, [steps, nights]."""

    visible: Sight
    threshold: float
    """The fraction beyond which a change is reported."""

    failed: tuple[FailedSession, ...]
    """The sessions that were to be nights and measured nothing, oldest first."""

    missed: tuple[datetime, ...]
    """The days on which there was no night, at the hour of the last one."""

    reasons: Reasons

    intervals: Mapping[tuple[int, str], NightInterval]
    """What the rounds of a night say of a step, by session and step."""

    failing: FailingNights | None
    """None when its last night measured anything."""


def read_branch(
    connection: Connection,
    catalog: Catalog,
    branch: str,
    reports: Collection[ChangeReport],
    sights: Sights,
    intervals_of: IntervalsOf,
    states: Iterable[TaskState],
    sessions: Sequence[FailedSession],
) -> tuple[BranchPlace, ...]:
    """Return a branch in all environments in which it has a base other than itself.

    It is there by every metric that its sessions are judged by, that they counted, and in which a change of
    `reports`, those of the branch, was found. `states` are those of all tasks, and
    `sessions` those of which nothing became a night.
    """
    found = []
    for nights in catalog.nights_of_branch(branch):
        base = nights.base_of.get(branch)
        if base is None:
            continue
        for metric in _metrics(connection, catalog, nights, branch, reports):
            matrix = read_matrix(connection, nights.place, branch, base, [metric.name], NIGHTS)
            visible = sights.get((nights.place, metric.name), {})
            threshold = catalog.threshold_of(metric.name)
            if metric.is_counted:
                visible = {step: threshold for _, step, _ in matrix.series}
            reasons = _reasons(connection, matrix)
            failed = _failed(sessions, branch, nights, matrix)
            began = [night.started_at for night in matrix.nights if night.measured_at is None]
            began += [session.entry.started_at for session in failed]
            found.append(
                BranchPlace(
                    nights.place,
                    metric,
                    base,
                    matrix,
                    visible,
                    threshold,
                    failed,
                    _missed(catalog, branch, began),
                    reasons,
                    _intervals(catalog, matrix, metric, intervals_of),
                    _without_session(states, branch, nights)
                    or failing_nights(branch, matrix, reasons, failed),
                )
            )
    return tuple(found)


def failing_nights(
    branch: str, matrix: SeriesMatrix, reasons: Reasons, failed: Sequence[FailedSession]
) -> FailingNights | None:
    """Return the nights in a row, up to the last one, in which a branch has reasons instead of values."""
    why = {session_id: reason for (session_id, _), reason in reasons.items()}
    nights = [
        (
            night.started_at,
            "" if any(not math.isnan(row[at]) for row in matrix.ratios) else why.get(night.session_id, ""),
        )
        for at, night in enumerate(matrix.nights)
    ]
    nights += [(session.entry.started_at, session.reasons[branch]) for session in failed]
    row = list(takewhile(lambda night: night[1], sorted(nights, reverse=True)))
    return FailingNights(len(row), row[-1][0], row[0][1]) if row else None


def _failed(
    sessions: Iterable[FailedSession], branch: str, nights: PlaceNights, matrix: SeriesMatrix
) -> tuple[FailedSession, ...]:
    """Return the sessions of a branch in an environment that measured nothing, as far back as its nights."""
    first = matrix.nights[0].started_at if matrix.nights else None
    return tuple(
        session
        for session in sessions
        if session.place == nights.place
        and branch in session.reasons
        and (first is None or session.entry.started_at > first)
    )


def _without_session(states: Iterable[TaskState], branch: str, nights: PlaceNights) -> FailingNights | None:
    """Return the nights of a branch in an environment that ended without a session since its last one."""
    place = nights.place
    return next(
        (
            FailingNights(state.nights, state.since, state.reason or str(state.outcome))
            for state in states
            if (state.hostname, state.task.suite, state.task.configuration)
            == (place.box, place.suite, place.configuration)
            and tracked_branch(state) == branch
            and state.outcome not in _TOLD
            and state.since > nights.of_branch(branch)[-1].started_at
        ),
        None,
    )


def _missed(catalog: Catalog, branch: str, began: Sequence[datetime]) -> tuple[datetime, ...]:
    """Return the missing nights of a branch where its nights `began`, up to its last night anywhere."""
    if not began:
        return ()
    own = sorted({when.date() for when in began})
    ends = [places.of_branch(branch)[-1].started_at.date() for places in catalog.nights_of_branch(branch)]
    last = max(own[-1], *ends)
    days = [*missed([*own, last] if last > own[-1] else own), *([last] if last > own[-1] else [])]
    hour = began[-1].timetz()
    return tuple(datetime.combine(day, hour) for day in days)


def _reasons(connection: Connection, matrix: SeriesMatrix) -> Reasons:
    lacking = [
        night.session_id
        for at, night in enumerate(matrix.nights)
        if not matrix.series or any(math.isnan(row[at]) for row in matrix.ratios)
    ]
    base = matrix.base or ""
    reasons: dict[tuple[int, str], str] = {}
    gaps = gap_reasons(connection, [matrix.branch, base], lacking)
    # What the branch itself lacks comes last, and so stands where its base failed too.
    for (session_id, branch, step), reason in sorted(
        gaps.items(), key=lambda gap: gap[0][1] == matrix.branch
    ):
        why = reason if branch == matrix.branch else f"{base}: {reason}"
        steps = [step] if step != ALL_STEPS else [ALL_STEPS, *(name for _, name, _ in matrix.series)]
        reasons |= {(session_id, name): why for name in steps}
    return reasons


def _intervals(
    catalog: Catalog, matrix: SeriesMatrix, metric: Metric, intervals_of: IntervalsOf
) -> Mapping[tuple[int, str], NightInterval]:
    found = {}
    for night in matrix.nights:
        entry = catalog.by_id[night.session_id]
        if entry.judged_by == metric.name:
            for step, interval in intervals_of(entry.uid).get(matrix.branch, {}).items():
                found[night.session_id, step] = interval
    return found


def _metrics(
    connection: Connection,
    catalog: Catalog,
    nights: PlaceNights,
    branch: str,
    reports: Collection[ChangeReport],
) -> list[Metric]:
    """Return the metrics of a branch in an environment: those of its sessions first, what is timed first."""
    own = dict.fromkeys(
        catalog.by_id[night.session_id].judged_by for night in reversed(nights.of_branch(branch))
    )
    query = select(series.c.metric).distinct()
    recorded = connection.execute(
        query.where(in_environment(series, nights.place), series.c.branch == branch)
    ).scalars()
    counted = [name for name in recorded if name in METRICS and METRICS[name].is_counted]
    changed = [
        member.key.metric
        for report in reports
        for member in report.change.members
        if member.key.environment == nights.place and member.key.metric in METRICS
    ]
    found = [METRICS[name] for name in dict.fromkeys((*own, *sorted(counted), *sorted(changed)))]
    return sorted(found, key=lambda metric: (metric.name not in own, metric.is_counted))
