"""The nightly detector: change points of all series, grouped, and reconciled with the stored changes."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from history.changes import confirmation, repository
from history.changes.acknowledgements import settle
from history.changes.boxes.notes import Array, BoxNote, notes_on_boxes, without_shared
from history.changes.boxes.shared_steps import SharedSteps
from history.changes.confirmation import Confirmation, latest_by_nights, weighed
from history.changes.courses import dated_together, with_courses_joined
from history.changes.detection import rule_of, watched
from history.changes.level_shift import (
    Course,
    Direction,
    LevelReturn,
    Shift,
    ShiftOutcome,
    direction_of,
    group_shifts,
    leads,
    shift_outcomes,
)
from history.changes.repository import Change, Member
from history.series.marker_effects import MarkerEffects
from history.series.matrix import SeriesMatrix, judged_matrices
from history.series.version_order import read_version_order
from history.stats.change_points import FALSE_SHARE, ChangePoint, Known, measured_again
from history.store.database import Database
from history.store.records import ChangeStatus
from history.timestamps import now


def fingerprint(shift: Shift) -> str:
    """Return the fingerprint of a change: a digest of its first shift's branch, suite, box and night."""
    parts = (
        shift.branch,
        shift.environment.suite,
        shift.environment.box,
        shift.first_after.started_at.isoformat(),
    )
    return _digest(*parts)


def free_fingerprint(connection: Connection, cluster: Sequence[ShiftOutcome]) -> str:
    """Return the fingerprint of a new change that no stored one has.

    Two changes can begin in one night: as more nights come, a change is dated elsewhere, and what is raised
    then begins where it seemed to. The series tell them apart.
    """
    taken = repository.load_fingerprints(connection)
    name = fingerprint(cluster[0].origin)
    while name in taken:
        name = _digest(name, *sorted(str(outcome.shift.series_id) for outcome in cluster))
    return name


@dataclass(frozen=True)
class FoundAgain:
    """A cluster of shifts, and the stored change that it is."""

    cluster: Sequence[ShiftOutcome]
    change: Change | None
    """None for a new change."""

    moved: Sequence[int] = ()
    """The ids of the series of the stored change that another cluster has now."""


def found_again(clusters: Sequence[Sequence[ShiftOutcome]], stored: Sequence[Change]) -> list[FoundAgain]:
    """Return each cluster with the stored change that it is now.

    They have series in common, with overlapping nights. A change that has come apart, as when its series are
    dated a night apart, stays with the cluster that has most of them, of equal ones with one that nothing
    explains.
    """
    by_series: defaultdict[int, list[tuple[int, Shift]]] = defaultdict(list)
    for number, cluster in enumerate(clusters):
        for outcome in not_refuted(cluster):
            by_series[outcome.shift.series_id] += [(number, shift) for shift in outcome.shifts]
    common: list[tuple[int, bool, int, int]] = []
    having: list[Mapping[int, set[int]]] = []
    for place, change in enumerate(stored):
        by_cluster: defaultdict[int, set[int]] = defaultdict(set)
        for member in change.members:
            for number, shift in by_series.get(member.series_id, ()):
                if _overlap(member, shift):
                    by_cluster[number].add(member.series_id)
        having.append(by_cluster)
        for number, ids in by_cluster.items():
            common.append((-len(ids), bool(clusters[number][0].shift.explained), number, place))
    place_of: dict[int, int] = {}
    for _, _, number, place in sorted(common):
        if number not in place_of and place not in place_of.values():
            place_of[number] = place
    return [
        FoundAgain(cluster, stored[place_of[number]], _moved(number, cluster, having[place_of[number]]))
        if number in place_of
        else FoundAgain(cluster, None)
        for number, cluster in enumerate(clusters)
    ]


def _moved(number: int, cluster: Sequence[ShiftOutcome], having: Mapping[int, set[int]]) -> Sequence[int]:
    others = {series_id for other, ids in having.items() if other != number for series_id in ids}
    return sorted(others - {outcome.shift.series_id for outcome in cluster})


def not_refuted(cluster: Sequence[ShiftOutcome]) -> Sequence[ShiftOutcome]:
    """Return the shifts of a cluster that no measurement has refuted; all of them if every one is refuted."""
    return [outcome for outcome in cluster if not outcome.shift.refuted] or cluster


def is_same(change: Change, cluster: Iterable[ShiftOutcome]) -> bool:
    """Return whether they have a series in common, with ranges of nights that overlap."""
    shifts = {outcome.shift.series_id: outcome.shifts for outcome in cluster}
    return any(
        _overlap(member, shift) for member in change.members for shift in shifts.get(member.series_id, ())
    )


def _overlap(member: Member, shift: Shift) -> bool:
    return (
        member.last_before.started_at < shift.first_after.started_at
        and shift.last_before.started_at < member.first_after.started_at
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


WINDOW = 400
"""The latest nights in which change points are detected: earlier ones were judged when they were new."""

FALSE_CHANGES_A_YEAR = 0.5
"""The accepted false changes of all series together. With one false change in fifty years for each of
thousands of series, one would be reported every third day."""


WHOLE_NIGHTS = 60
"""The nights at the beginning of a full WINDOW in which the watch may miss changes that it has raised before.
There stored changes are used, and confirmations are not."""


COURSES = {
    Course.STEP: "its series changed with the same commits",
    Course.DRIFT: "the series moves gradually",
    Course.ALTERNATION: "the series alternates between two levels",
}
"""What a person is told of a change that turned out to be part of another."""

PART_OF = "part of change "
"""What the reason of such a change begins with."""


@dataclass(frozen=True)
class ConfirmedShifts:
    """The confirmed shifts in the series of a matrix."""

    events: tuple[Shift | LevelReturn, ...]
    """The shifts and returns in the order of the nights."""

    levels: tuple[Known, ...]
    """The levels that they began, as input of the watch."""


@dataclass(frozen=True)
class DetectionReport:
    """The result of `judge`; every change is as stored now."""

    new: tuple[Change, ...]
    reopened: tuple[Change, ...]
    closed: tuple[Change, ...]
    open: tuple[Change, ...]
    """All open changes, including the new and the reopened ones."""

    series: int
    """The number of series that were judged."""

    notes: tuple[BoxNote, ...] = ()
    """What changed about the noise of the boxes: no changes of a branch."""

    explained: tuple[Change, ...] = ()
    """Changes that are explained now, and were not, or not known, before: nobody is alerted to them."""


def judge(database: Database, clock: Callable[[], datetime] = now) -> DetectionReport:
    """Detect change points in every series, and update the stored changes.

    A confirmed shift is a change at once, and is not detected again. The function is idempotent: running it
    again over the same nights changes nothing. Acknowledged changes stay acknowledged until that expires;
    explained ones are stored, but not reported.
    """
    with database.reading() as connection:
        counted, events, notes = _all_shifts(connection)
    # Detection is slow and happens before, so that a night that is being recorded does not wait for it.
    with database.writing() as connection:
        when = clock()
        before = repository.load_statuses(connection)
        settle(connection, when)
        stored = repository.load(connection)
        shifts = [event for event in events if isinstance(event, Shift)]
        outcomes = shift_outcomes(events, _earlier_outcomes(stored, shifts))
        of_nights = (
            (shift.branch, night) for outcome in outcomes for shift in outcome.shifts for night in shift.range
        )
        clusters = group_shifts(outcomes, read_version_order(connection, of_nights))
        found = found_again(clusters, stored)
        kept = {again.change.id for again in found if again.change is not None}
        unmatched = [change for change in stored if change.id not in kept]
        for again in found:
            _reconcile(connection, again, unmatched, when)
        after = repository.load(connection)
    return DetectionReport(
        new=_with_status(ChangeStatus.OPEN, after, {change.id for change in after} - before.keys()),
        reopened=_with_status(
            ChangeStatus.OPEN,
            after,
            {id_ for id_, was in before.items() if was is not ChangeStatus.OPEN},
        ),
        closed=_with_status(
            ChangeStatus.CLOSED,
            after,
            {id_ for id_, was in before.items() if was is ChangeStatus.OPEN},
        ),
        open=_with_status(ChangeStatus.OPEN, after, {change.id for change in after}),
        series=counted,
        notes=notes,
        explained=_with_status(
            ChangeStatus.EXPLAINED,
            after,
            {change.id for change in after if before.get(change.id) is not ChangeStatus.EXPLAINED},
        ),
    )


def _with_status(status: ChangeStatus, after: Sequence[Change], ids: set[int]) -> tuple[Change, ...]:
    return tuple(change for change in after if change.id in ids and change.status is status)


def _all_shifts(
    connection: Connection,
) -> tuple[int, list[Shift | LevelReturn], tuple[BoxNote, ...]]:
    matrices = list(judged_matrices(connection, WINDOW))
    counted = sum(len(matrix.series) for matrix in matrices)
    by_noise = sum(rule_of(metric).by_noise for matrix in matrices for _, _, metric in matrix.series)
    share = min(FALSE_SHARE, FALSE_CHANGES_A_YEAR / by_noise) if by_noise else FALSE_SHARE
    confirmed = confirmation.load(connection)
    shared = SharedSteps(connection, matrices)
    events = [event for matrix in matrices for event in _events(connection, matrix, share, confirmed, shared)]
    return counted, events, notes_on_boxes(matrices, shared)


def _events(
    connection: Connection,
    matrix: SeriesMatrix,
    false_share: float,
    confirmed: Sequence[Confirmation],
    shared: SharedSteps,
) -> list[Shift | LevelReturn]:
    """Return the shifts that the watch raises and those that were confirmed, in the order of the nights."""
    shifts = confirmed_shifts(matrix, confirmed, WINDOW)
    raised = without_confirmed(shifts_of(connection, matrix, false_share, shifts.levels), shifts.events)
    joined = with_courses_joined(matrix, dated_together(matrix, raised))
    raised = list(shared.explained(matrix, joined))
    return sorted(
        [*weighed(raised, confirmed), *shifts.events], key=lambda event: event.first_after.started_at
    )


def confirmed_shifts(matrix: SeriesMatrix, confirmed: Iterable[Confirmation], window: int) -> ConfirmedShifts:
    """Return the confirmed shifts and returns in the series and nights of a matrix.

    `window` is the number of nights that a matrix has at most; those of the first WHOLE_NIGHTS of a full
    matrix are left out.
    """
    row = {series_id: number for number, (series_id, _, _) in enumerate(matrix.series)}
    column = {night.session_id: number for number, night in enumerate(matrix.nights)}
    first = WHOLE_NIGHTS if len(matrix.nights) >= window else 0
    findings = [
        finding
        for finding in latest_by_nights(list(confirmed))
        if finding.series_id in row
        and column.get(finding.after.session_id, -1) >= first
        and (finding.is_step or finding.is_return)
    ]
    return ConfirmedShifts(
        tuple(
            _confirmed_shift(finding) if finding.is_step else _confirmed_return(finding)
            for finding in findings
        ),
        tuple(
            Known(row[finding.series_id], column[finding.after.session_id], math.log(finding.level_after))
            for finding in findings
        ),
    )


def without_confirmed(shifts: Iterable[Shift], confirmed: Sequence[Shift | LevelReturn]) -> list[Shift]:
    """Return the shifts raised by the watch, without those that were confirmed."""
    steps = [event for event in confirmed if isinstance(event, Shift)]
    return [
        shift
        for shift in shifts
        if not any(
            step.series_id == shift.series_id and step.overlaps(shift) and step.log_size * shift.log_size > 0
            for step in steps
        )
    ]


def shifts_of(
    connection: Connection, matrix: SeriesMatrix, false_share: float, levels: Sequence[Known] = ()
) -> list[Shift]:
    """Return the shifts in a matrix, by series and night, without those that began known `levels`.

    At most a share of `false_share` of quiet series-years has one. Negligible ones are left out, and so are
    nights on which most series moved together and came back.
    """
    logs = without_shared(matrix)
    points = watched(matrix, logs, false_share, levels)
    if not any(points):
        return []
    effects = MarkerEffects(connection, matrix)
    return [
        _shift(matrix, row, point, effects)
        for row, its_points in enumerate(points)
        for point in _sized(matrix, row, logs, its_points, levels)
        if not matrix.is_negligible(row, point.before, point.after)
    ]


def _sized(
    matrix: SeriesMatrix, row: int, logs: Array, points: Sequence[ChangePoint], levels: Sequence[Known]
) -> Iterator[ChangePoint]:
    """Iterate over the change points of a row, with sizes from all nights that now lie on both sides."""
    if not rule_of(matrix.series[row][2]).by_noise:
        yield from points
        return
    begun = sorted(level.night for level in levels if level.row == row)
    for point in points:
        starts = [*(other.last for other in points if other.index < point.index), *begun]
        since = max((night for night in starts if night <= point.first), default=0)
        ends = [*(other.first for other in points if other.index > point.index), *(n - 1 for n in begun)]
        until = min((night for night in ends if night >= point.last), default=logs.shape[1] - 1)
        yield measured_again(logs[row], point, since, until)


def _earlier_outcomes(stored: Iterable[Change], shifts: Iterable[Shift]) -> list[ShiftOutcome]:
    """Return the stored shifts that overlap none of `shifts`: most lie before the window.

    Those of what is part of another change are its own.
    """
    by_series: defaultdict[int, list[Shift]] = defaultdict(list)
    for shift in shifts:
        by_series[shift.series_id].append(shift)
    own = [change for change in stored if not (change.reason or "").startswith(PART_OF)]
    earlier = [outcome for change in own for outcome in change.outcomes]
    return [
        outcome
        for outcome in sorted(earlier, key=lambda outcome: outcome.shift.first_after.started_at)
        if not any(outcome.shift.overlaps(other) for other in by_series[outcome.shift.series_id])
    ]


def _shift(matrix: SeriesMatrix, row: int, point: ChangePoint, effects: MarkerEffects) -> Shift:
    series_id, step, metric = matrix.series[row]
    assert point.raised is not None  # the watch returns only change points that it has raised
    return Shift(
        series_id,
        matrix.environment,
        matrix.branch,
        step,
        metric,
        last_before=matrix.nights[point.first],
        first_after=matrix.nights[point.last],
        raised=matrix.nights[point.raised],
        before=math.exp(point.before),
        after=math.exp(point.after),
        low=math.exp(point.low),
        high=math.exp(point.high),
        confidence=point.confidence,
        explained=effects.explanation(row, point.first, point.last, point.size),
    )


def _reconcile(
    connection: Connection, found: FoundAgain, unmatched: Iterable[Change], when: datetime
) -> None:
    refuted = [outcome.shift.series_id for outcome in found.cluster if outcome.shift.refuted]
    cluster, same = not_refuted(found.cluster), found.change
    direction = direction_of(outcome.shift for outcome in cluster)
    status, reason = _status_and_reason(cluster, direction)
    if same is None:
        name = free_fingerprint(connection, cluster)
        repository.insert_change(connection, name, cluster, direction, status, reason, when)
        return
    if same.status is ChangeStatus.ACKNOWLEDGED:
        status, reason = same.status, same.reason
    if (same.direction, same.status, same.reason) != (direction, status, reason):
        repository.update_change(connection, same.id, direction, status, reason, when)
    repository.replace_members(connection, same.id, cluster, [*refuted, *found.moved])
    _close_parts(connection, same, cluster, unmatched, when)


def _close_parts(
    connection: Connection,
    whole: Change,
    cluster: Sequence[ShiftOutcome],
    unmatched: Iterable[Change],
    when: datetime,
) -> None:
    """Close what was stored apart, and is part of a change now: dated otherwise, or not seen to drift."""
    joined = {outcome.shift.series_id for outcome in cluster}
    for change in unmatched:
        members = {member.series_id for member in change.members}
        if change.status is ChangeStatus.OPEN and members <= joined and is_same(change, cluster):
            reason = f"{PART_OF}{whole.fingerprint}: {COURSES[cluster[0].shift.course]}"
            repository.update_change(
                connection, change.id, change.direction, ChangeStatus.CLOSED, reason, when
            )


def _status_and_reason(
    cluster: Sequence[ShiftOutcome], direction: Direction
) -> tuple[ChangeStatus, str | None]:
    """Return the status of a change and why, by the series that moved as it did."""
    if all(outcome.shift.refuted for outcome in cluster):
        return ChangeStatus.EXPLAINED, cluster[0].shift.refuted
    if all(outcome.shift.explained for outcome in cluster):
        return ChangeStatus.EXPLAINED, cluster[0].shift.explained
    leading = [outcome for outcome in cluster if leads(outcome.shift.direction, direction)] or cluster
    gone = [outcome.gone for outcome in leading if outcome.gone is not None]
    if len(gone) == len(leading):
        last = max(gone, key=lambda night: night.started_at)
        return ChangeStatus.CLOSED, f"back at the old level since {last.started_at:%Y-%m-%d} ({last.version})"
    return ChangeStatus.OPEN, None


def _confirmed_shift(confirmed: Confirmation) -> Shift:
    return Shift(
        confirmed.series_id,
        confirmed.key.environment,
        confirmed.key.branch,
        confirmed.key.step,
        confirmed.key.metric,
        last_before=confirmed.before,
        first_after=confirmed.after,
        raised=confirmed.after,
        before=confirmed.level_before,
        after=confirmed.level_after,
        low=confirmed.low,
        high=confirmed.high,
        confidence=confirmed.confidence,
        confirmed=True,
    )


def _confirmed_return(confirmed: Confirmation) -> LevelReturn:
    return LevelReturn(confirmed.series_id, confirmed.before, confirmed.after)
