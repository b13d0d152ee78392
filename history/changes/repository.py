"""The stored changes: loading, inserting and updating them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from history.changes import confirmation
from history.changes.acknowledgements import Acknowledgement, load_acknowledgements
from history.changes.confirmation import Confirmation
from history.changes.level_shift import Direction, Shift, ShiftOutcome, direction_between, leads
from history.changes.stored_rules import Muting, Owner, load_mutings, load_owners
from history.series.series import Night, SeriesKey, key_of, night_of, select_nights
from history.series.version_order import NightRange, VersionOrder, read_version_order
from history.store.records import ChangeStatus
from history.store.schema import change_series, changes, nights, series
from history.timestamps import from_text, to_text

_STORED = {
    Direction.WORSE: "regression",
    Direction.BETTER: "improvement",
    Direction.MIXED: "mixed",
    Direction.SHIFT: "shift",
}
"""The words of the column `direction`, which is older than those that people read."""

_DIRECTIONS = {stored: direction for direction, stored in _STORED.items()}

_Placed = tuple[datetime, Night]
"""A night with its place in the order of versions."""


@dataclass(frozen=True)
class Member:
    """A series of a change. Levels are values over the base's of the same night."""

    series_id: int
    key: SeriesKey
    last_before: Night
    first_after: Night
    raised: Night
    level_before: float
    level_after: float
    ratio_low: float
    ratio_high: float
    confidence: float
    gone: Night | None
    confirmed: Confirmation | None = None
    """The confirmation in its first night; None when it was detected from nights alone."""

    gone_confirmed: Confirmation | None = None
    """The confirmation, in the night `gone`, that it is gone."""

    @property
    def ratio(self) -> float:
        """The level after over the level before."""
        return self.level_after / self.level_before

    @property
    def direction(self) -> Direction:
        """Whether it is for the worse or for the better, by the better direction of its metric."""
        return direction_between(self.key.metric, self.level_before, self.level_after)

    def outcome(self, explained: str = "") -> ShiftOutcome:
        """Return it as a shift with what became of it; `explained` says what else changed that night."""
        shift = Shift(
            self.series_id,
            self.key.environment,
            self.key.branch,
            self.key.step,
            self.key.metric,
            self.last_before,
            self.first_after,
            self.raised,
            self.level_before,
            self.level_after,
            self.ratio_low,
            self.ratio_high,
            self.confidence,
            confirmed=self.confirmed is not None,
            explained=explained,
        )
        return ShiftOutcome(shift, self.gone)


@dataclass(frozen=True)
class Change:
    """One change of a branch, in all the series that moved together."""

    id: int
    fingerprint: str
    branch: str
    suite: str
    direction: Direction
    status: ChangeStatus
    reason: str | None
    found_at: datetime
    updated_at: datetime
    members: tuple[Member, ...]
    """The members, most certain first."""

    acknowledgements: tuple[Acknowledgement, ...] = ()
    """What people decided about it, the latest last."""

    owners: tuple[Owner, ...] = ()
    """Whose it is by the plan of the last report, the most concerned first."""

    muting: Muting | None = None
    """By which rule of the plan it is muted, or was last; None if it never was."""

    order: VersionOrder = field(default_factory=VersionOrder, repr=False, compare=False)
    """The order of the versions before and after it."""

    @property
    def is_muted(self) -> bool:
        """Whether the last report found it muted: nobody is told of it."""
        return self.muting is not None and self.muting.is_in_force

    @property
    def outcomes(self) -> tuple[ShiftOutcome, ...]:
        """The members as shifts, with what became of each."""
        is_explained = self.status is ChangeStatus.EXPLAINED
        return tuple(member.outcome(self.reason or "" if is_explained else "") for member in self.members)

    @property
    def leading(self) -> tuple[Member, ...]:
        """The members that it is told by: those that moved as it did, of a mixed one those that got worse."""
        leading = tuple(member for member in self.members if leads(member.direction, self.direction))
        return leading or self.members

    @property
    def opposite(self) -> tuple[Member, ...]:
        """The members that got better in a mixed change: the other half of a trade."""
        is_mixed = self.direction is Direction.MIXED
        return tuple(member for member in self.members if is_mixed and member.direction is Direction.BETTER)

    @property
    def last_before(self) -> Night:
        """The latest night before it in any leading series, where a bisect starts.

        If no range suits all of them, it is the earliest: the change is between the ends of all ranges.
        """
        return self._range[0]

    @property
    def first_after(self) -> Night:
        """The earliest night after it in any leading series, where a bisect ends; else the latest."""
        return self._range[1]

    @property
    def _range(self) -> NightRange:
        """The range that lies in those of all leading series or, without one, in those that persist.

        Without either it is from the first to the last of them. A change that has come back on one box has
        still the nights of the first time on others.
        """
        lasting = tuple(member for member in self.leading if member.gone is None)
        placed = [self._placed(members) for members in (self.leading, lasting) if members]
        for begins, ends in placed:
            if max(begins, key=_in_order)[0] < min(ends, key=_in_order)[0]:
                return max(begins, key=_in_order)[1], min(ends, key=_in_order)[1]
        begins, ends = placed[0]
        return min(begins, key=_in_order)[1], max(ends, key=_in_order)[1]

    def _placed(self, members: Sequence[Member]) -> tuple[list[_Placed], list[_Placed]]:
        """Return the nights before and those after the change in some members, each with its place."""
        ranges = [(member.last_before, member.first_after) for member in members]
        places = self.order.places(self.branch, ranges)
        begins = [(begin, night) for (begin, _), (night, _) in zip(places, ranges, strict=True)]
        ends = [(end, night) for (_, end), (_, night) in zip(places, ranges, strict=True)]
        return begins, ends


def load(
    connection: Connection,
    *,
    fingerprint: str | None = None,
    branch: str | None = None,
    suite: str | None = None,
    statuses: Iterable[ChangeStatus] = tuple(ChangeStatus),
) -> tuple[Change, ...]:
    """Return the matching changes in the order in which they were detected; None means any."""
    query = select(changes).where(changes.c.status.in_(list(statuses))).order_by(changes.c.id)
    for name, value in (("fingerprint", fingerprint), ("branch", branch), ("suite", suite)):
        if value is not None:
            query = query.where(changes.c[name] == value)
    rows = connection.execute(query).mappings().all()
    ids = [row["id"] for row in rows]
    members, decided = _members(connection, ids), load_acknowledgements(connection, ids)
    owners, muted = load_owners(connection, ids), load_mutings(connection, ids)
    order = read_version_order(
        connection,
        (
            (member.key.branch, night)
            for of_change in members.values()
            for member in of_change
            for night in (member.last_before, member.first_after)
        ),
    )
    return tuple(
        Change(
            **{name: row[name] for name in ("id", "fingerprint", "branch", "suite", "reason")},
            direction=_DIRECTIONS[row["direction"]],
            status=ChangeStatus(row["status"]),
            found_at=from_text(row["found_at"]),
            updated_at=from_text(row["updated_at"]),
            members=members[row["id"]],
            acknowledgements=decided.get(row["id"], ()),
            owners=owners.get(row["id"], ()),
            muting=muted.get(row["id"]),
            order=order,
        )
        for row in rows
    )


def load_statuses(connection: Connection) -> dict[int, ChangeStatus]:
    """Return the status of every change by id."""
    rows = connection.execute(select(changes.c.id, changes.c.status))
    return {row.id: ChangeStatus(row.status) for row in rows}


def load_fingerprints(connection: Connection) -> frozenset[str]:
    """Return the fingerprints of all changes, which are unique."""
    return frozenset(connection.execute(select(changes.c.fingerprint)).scalars())


def insert_change(
    connection: Connection,
    fingerprint: str,
    courses: Sequence[ShiftOutcome],
    direction: Direction,
    status: ChangeStatus,
    reason: str | None,
    when: datetime,
) -> int:
    """Insert a new change with its members, and return its id."""
    shift = courses[0].shift
    row = {
        "fingerprint": fingerprint,
        "branch": shift.branch,
        "suite": shift.environment.suite,
        "direction": _STORED[direction],
        "status": status,
        "reason": reason,
        "found_at": to_text(when),
        "updated_at": to_text(when),
    }
    change_id = int(connection.execute(insert(changes).values(row).returning(changes.c.id)).scalar_one())
    replace_members(connection, change_id, courses)
    return change_id


def update_change(
    connection: Connection,
    change_id: int,
    direction: Direction,
    status: ChangeStatus,
    reason: str | None,
    when: datetime,
) -> None:
    """Update direction, status and reason of a change."""
    how = {"direction": _STORED[direction], "status": status}
    values = {**how, "reason": reason, "updated_at": to_text(when)}
    connection.execute(update(changes).where(changes.c.id == change_id).values(values))


def replace_members(
    connection: Connection, change_id: int, courses: Sequence[ShiftOutcome], without: Sequence[int] = ()
) -> None:
    """Insert members of a change, replacing those of the same series; delete those of series `without`."""
    ids = [*(course.shift.series_id for course in courses), *without]
    connection.execute(
        delete(change_series).where(
            change_series.c.change_id == change_id, change_series.c.series_id.in_(ids)
        )
    )
    connection.execute(insert(change_series), [_row(change_id, course) for course in courses])


def _row(change_id: int, course: ShiftOutcome) -> dict[str, Any]:
    shift = course.shift
    return {
        "change_id": change_id,
        "series_id": shift.series_id,
        "last_before_id": shift.last_before.session_id,
        "first_after_id": shift.first_after.session_id,
        "raised_id": shift.raised.session_id,
        "level_before": shift.before,
        "level_after": shift.after,
        "ratio_low": shift.low,
        "ratio_high": shift.high,
        "confidence": shift.confidence,
        "gone_id": course.gone and course.gone.session_id,
    }


def _members(connection: Connection, ids: Sequence[int]) -> Mapping[int, tuple[Member, ...]]:
    query = (
        select(change_series, series)
        .join_from(change_series, series, change_series.c.series_id == series.c.id)
        .where(change_series.c.change_id.in_(ids))
        .order_by(change_series.c.confidence.desc(), change_series.c.series_id)
    )
    members_by_change: dict[int, tuple[Member, ...]] = dict.fromkeys(ids, ())
    rows = connection.execute(query).mappings().all()
    confirmed_by = _confirmations(connection, {row["series_id"] for row in rows})
    for row in rows:
        key = key_of(row)
        night = _nights(connection, row, key)
        member = Member(
            series_id=row["series_id"],
            key=key,
            last_before=night["last_before_id"],
            first_after=night["first_after_id"],
            raised=night["raised_id"],
            level_before=row["level_before"],
            level_after=row["level_after"],
            ratio_low=row["ratio_low"],
            ratio_high=row["ratio_high"],
            confidence=row["confidence"],
            gone=night.get("gone_id"),
            confirmed=confirmed_by.get((row["series_id"], row["last_before_id"], row["first_after_id"])),
            gone_confirmed=confirmed_by.get((row["series_id"], None, row["gone_id"])),
        )
        members_by_change[row["change_id"]] = (*members_by_change[row["change_id"]], member)
    return members_by_change


def _confirmations(
    connection: Connection, series_ids: set[int]
) -> Mapping[tuple[int, int | None, int], Confirmation]:
    """Return confirmations of new changes by series and both nights.

    Those of changes that are gone have the key (series, None, first night back at the old level).
    """
    by_nights: dict[tuple[int, int | None, int], Confirmation] = {}
    for answer in confirmation.load(connection, series_ids) if series_ids else ():
        if answer.is_step:
            by_nights[answer.series_id, answer.before.session_id, answer.after.session_id] = answer
        elif answer.is_return:
            by_nights[answer.series_id, None, answer.after.session_id] = answer
    return by_nights


def _nights(connection: Connection, row: RowMapping, key: SeriesKey) -> dict[str, Night]:
    names = ("last_before_id", "first_after_id", "raised_id", "gone_id")
    ids = {row[name] for name in names if row[name] is not None}
    query = select_nights().where(nights.c.session_id.in_(ids), nights.c.branch == key.branch)
    by_id = {row[0]: night_of(*row) for row in map(tuple, connection.execute(query))}
    return {name: by_id[row[name]] for name in names if row[name] is not None}


def _in_order(placed: _Placed) -> tuple[datetime, datetime]:
    """Return the sort key of a night with its place: nights of one version follow each other in time."""
    place, night = placed
    return place, night.started_at
