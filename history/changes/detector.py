"""The nightly detector: change points of all series, grouped, and reconciled with the known changes."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from history.changes import confirmation, repository
from history.changes.confirmation import Confirmation, latest_by_nights
from history.changes.level_shift import Course, Return, Shift, courses, direction_of, together
from history.changes.repository import Change, ChangeStatus, Member
from history.series.environment_changes import markers
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import base_branch, branches_at, places
from history.stats.change_points import FALSE_SHARE, ChangePoint, Known, watch_many
from history.store.database import Database
from history.timestamps import now
from suites.metrics import judged_metrics

WINDOW = 400
"""Nights that are looked back on: what lies further back was judged when it was new."""

FALSE_CHANGES_A_YEAR = 0.5
"""False changes that are accepted in all series together: thousands of series, each with one false change in
fifty years, would report one every third day."""


WHOLE_NIGHTS = 60
"""Nights at the beginning of what is looked back on in which the watch may not find again what it found: of
those, what is remembered of a change counts, and what was confirmed neither."""


@dataclass(frozen=True)
class KnownShifts:
    """What was confirmed in the series of a matrix."""

    events: tuple[Shift | Return, ...]
    """In the order of the nights."""

    known: tuple[Known, ...]
    """The same as levels, for the watch."""


@dataclass(frozen=True)
class Report:
    """What a judge found out, each with the change as it is now."""

    new: tuple[Change, ...]
    reopened: tuple[Change, ...]
    closed: tuple[Change, ...]
    open: tuple[Change, ...]
    """All that are open, the new ones and the reopened ones too."""

    series: int
    """Series that were looked at."""


def judge(database: Database, clock: Callable[[], datetime] = now) -> Report:
    """Look for change points in every series, and bring what is known of changes up to date.

    What was confirmed in its own night is a change at once, and is not looked for again.
    Running it again over the same nights changes nothing. Acknowledged changes stay acknowledged; explained
    ones are kept, and not reported.
    """
    with database.reading() as connection:
        counted, found = _all_shifts(connection)
    # Apart from the long look, which a night that is being recorded must not wait for.
    with database.writing() as connection:
        known = repository.load(connection)
        before = {each.id: each for each in known}
        left = list(known)
        shifts = [each for each in found if isinstance(each, Shift)]
        for cluster in together(courses(found, _remembered(known, shifts))):
            _reconcile(connection, cluster, left, clock())
        after = repository.load(connection)
    return Report(
        new=_became(ChangeStatus.OPEN, after, {each.id for each in after} - before.keys()),
        reopened=_became(
            ChangeStatus.OPEN,
            after,
            {id_ for id_, was in before.items() if was.status is ChangeStatus.CLOSED},
        ),
        closed=_became(
            ChangeStatus.CLOSED,
            after,
            {id_ for id_, was in before.items() if was.status is ChangeStatus.OPEN},
        ),
        open=_became(ChangeStatus.OPEN, after, {each.id for each in after}),
        series=counted,
    )


def _became(status: ChangeStatus, after: Sequence[Change], ids: set[int]) -> tuple[Change, ...]:
    return tuple(each for each in after if each.id in ids and each.status is status)


def _all_shifts(connection: Connection) -> tuple[int, list[Shift | Return]]:
    matrices = list(_matrices(connection))
    counted = sum(len(matrix.series) for matrix in matrices)
    share = min(FALSE_SHARE, FALSE_CHANGES_A_YEAR / counted) if counted else FALSE_SHARE
    confirmed = confirmation.load(connection)
    return counted, [event for matrix in matrices for event in _events(connection, matrix, share, confirmed)]


def _events(
    connection: Connection, matrix: SeriesMatrix, false_share: float, confirmed: Sequence[Confirmation]
) -> list[Shift | Return]:
    """What the watch raises and what was confirmed, in the order of the nights."""
    known = known_shifts(matrix, confirmed, WINDOW)
    found = without_known(shifts_of(connection, matrix, false_share, known.known), known.events)
    return sorted([*found, *known.events], key=lambda event: event.first_after.started_at)


def known_shifts(matrix: SeriesMatrix, confirmed: Iterable[Confirmation], looked_back: int) -> KnownShifts:
    """The shifts and returns that were confirmed in a matrix's series, in nights that the matrix has.

    `looked_back` is the number of nights that a matrix has at most: a full one has lost its past.
    """
    row = {series_id: number for number, (series_id, _, _) in enumerate(matrix.series)}
    column = {night.session_id: number for number, night in enumerate(matrix.nights)}
    first = WHOLE_NIGHTS if len(matrix.nights) >= looked_back else 0
    its = [
        each
        for each in latest_by_nights(list(confirmed))
        if each.series_id in row
        and column.get(each.after.session_id, -1) >= first
        and (each.is_step or each.is_return)
    ]
    return KnownShifts(
        tuple(_confirmed_shift(each) if each.is_step else _confirmed_return(each) for each in its),
        tuple(
            Known(row[each.series_id], column[each.after.session_id], math.log(each.level_after))
            for each in its
        ),
    )


def without_known(found: Iterable[Shift], confirmed: Sequence[Shift | Return]) -> list[Shift]:
    """The shifts that are not one which was confirmed, as the watch saw it too."""
    steps = [each for each in confirmed if isinstance(each, Shift)]
    return [
        shift
        for shift in found
        if not any(
            each.series_id == shift.series_id and each.overlaps(shift) and each.log_size * shift.log_size > 0
            for each in steps
        )
    ]


def _matrices(connection: Connection) -> Iterator[SeriesMatrix]:
    for place in places(connection):
        base = base_branch(connection, place)
        for branch in branches_at(connection, place):
            if base is not None and branch != base:
                yield read_matrix(connection, place, branch, base, judged_metrics(), WINDOW)


def shifts_of(
    connection: Connection, matrix: SeriesMatrix, false_share: float, known: Sequence[Known] = ()
) -> list[Shift]:
    """The change points of a matrix, series by series in the order of the nights; not those that are `known`.

    In at most `false_share` of quiet series-years there is one.
    """
    logs = np.full_like(matrix.ratios, np.nan)
    np.log(matrix.ratios, out=logs, where=matrix.ratios > 0)
    points = watch_many(logs, false_share, known)
    if not any(points):
        return []
    marked = markers(connection, matrix)
    return [
        _shift(matrix, row, point, marked) for row, its_points in enumerate(points) for point in its_points
    ]


def _remembered(known: Iterable[Change], found: Iterable[Shift]) -> list[Course]:
    """What was found by earlier judges and lies before the nights that are looked back on."""
    seen: defaultdict[int, list[Shift]] = defaultdict(list)
    for each in found:
        seen[each.series_id].append(each)
    earlier = [_course(change, member) for change in known for member in change.members]
    return [
        each
        for each in sorted(earlier, key=lambda course: course.shift.first_after.started_at)
        if not any(each.shift.overlaps(other) for other in seen[each.shift.series_id])
    ]


def _course(change: Change, member: Member) -> Course:
    shift = Shift(
        member.series_id,
        member.key.place,
        member.key.branch,
        member.key.step,
        member.key.metric,
        member.last_before,
        member.first_after,
        member.raised,
        member.level_before,
        member.level_after,
        member.ratio_low,
        member.ratio_high,
        member.confidence,
        confirmed=member.confirmed is not None,
        explained=change.reason or "" if change.status is ChangeStatus.EXPLAINED else "",
    )
    return Course(shift, member.gone)


def _shift(matrix: SeriesMatrix, row: int, point: ChangePoint, marked: Mapping[int, str]) -> Shift:
    series_id, step, metric = matrix.series[row]
    explained = [text for place, text in marked.items() if point.first < place <= point.last]
    assert point.raised is not None  # the watch raises all that it returns
    return Shift(
        series_id,
        matrix.place,
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
        explained="; ".join(explained),
    )


def _reconcile(
    connection: Connection, cluster: Sequence[Course], known: list[Change], when: datetime
) -> None:
    direction = direction_of(each.shift for each in cluster)
    status, reason = _standing(cluster)
    same = next((each for each in known if _is_same(each, cluster)), None)
    if same is None:
        name = fingerprint(cluster[0].shift)
        repository.write_new(connection, name, cluster, direction, status, reason, when)
        return
    if same.status is ChangeStatus.ACKNOWLEDGED:
        status, reason = same.status, same.reason
    if (same.direction, same.status, same.reason) != (direction, status, reason):
        repository.rewrite(connection, same.id, direction, status, reason, when)
    repository.write_members(connection, same.id, cluster)
    known.remove(same)


def _standing(cluster: Sequence[Course]) -> tuple[ChangeStatus, str | None]:
    if all(each.shift.explained for each in cluster):
        return ChangeStatus.EXPLAINED, cluster[0].shift.explained
    gone = [each.gone for each in cluster if each.gone is not None]
    if len(gone) == len(cluster):
        last = max(gone, key=lambda night: night.started_at)
        return ChangeStatus.CLOSED, f"back at the old level since {last.started_at:%Y-%m-%d} ({last.version})"
    return ChangeStatus.OPEN, None


def _is_same(change: Change, cluster: Iterable[Course]) -> bool:
    """A series in common, at a moment that can be the same one."""
    shifts = {each.shift.series_id: each.shift for each in cluster}
    return any(
        member.last_before.started_at < shifts[member.series_id].first_after.started_at
        and shifts[member.series_id].last_before.started_at < member.first_after.started_at
        for member in change.members
        if member.series_id in shifts
    )


def fingerprint(shift: Shift) -> str:
    """What a change is called: of its surest shift the branch, the suite and the night it was first seen."""
    parts = (shift.branch, shift.place.suite, shift.place.box, shift.first_after.started_at.isoformat())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _confirmed_shift(confirmed: Confirmation) -> Shift:
    return Shift(
        confirmed.series_id,
        confirmed.key.place,
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


def _confirmed_return(confirmed: Confirmation) -> Return:
    return Return(confirmed.series_id, confirmed.before, confirmed.after)
