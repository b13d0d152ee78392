"""The boxes of a pool agree on who measures what: one transaction when a box begins its night."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from history.placement.hashing import Demand, SharedTask, second_box, share_with, spread
from history.store.schema import placements, pool_boxes
from history.timestamps import from_text, to_text

GONE_NIGHTS = 3
"""The nights of the others that a box may miss: with the next one it is gone, and hands on its series."""

NIGHT_HOURS = 20
"""Nights of a pool lie at least so far apart; several calls of one night count once."""


class PlacementReason(StrEnum):
    """Why a task was placed where it is."""

    NEW = "new"
    """The task is new in the pool."""

    JOINED = "joined"
    """The box joined the pool and took its share."""

    GONE = "gone"
    """The box before had no night for GONE_NIGHTS."""

    PLAN = "plan"
    """The plan no longer lets the box before measure it."""


@dataclass(frozen=True)
class HandOver:
    """A task that one box handed on to another: its series begin anew there."""

    pool: str
    task: SharedTask
    before: str
    """The box that measured it before."""

    after: str
    reason: PlacementReason
    placed_at: datetime
    hostname_before: str | None = None
    """The host name under which the history has the series of the box before; None before its first night."""

    hostname_after: str | None = None

    def concerns(self, hostname: str) -> bool:
        """Whether a machine has series of it, before or after."""
        return hostname in (self.hostname_before, self.hostname_after)

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.task}: {_WORDS[self.reason].format(before=self.before, after=self.after)}"


_WORDS = {
    PlacementReason.JOINED: "{after} has joined the pool and takes it over from {before}",
    PlacementReason.GONE: f"{{before}} had no night for {GONE_NIGHTS} nights, and hands it on to {{after}}",
    PlacementReason.PLAN: "the plan no longer lets {before} measure it, which hands it on to {after}",
}


@dataclass(frozen=True)
class PoolNight:
    """What a box learns of its pool when its night begins."""

    pool: str
    box: str
    placed: Mapping[SharedTask, str]
    """The box of every task that has one."""

    handed_over: tuple[HandOver, ...] = ()
    """By this night, and by others to or from this box since its last night."""

    problems: tuple[str, ...] = ()
    seconds: Mapping[SharedTask, str] = field(default_factory=dict)
    """Another box that can measure a task, by task, if there is one that had a night."""

    hostnames: Mapping[str, str] = field(default_factory=dict)
    """The host names of the boxes that had a night."""

    def is_mine(self, task: SharedTask) -> bool:
        """Whether the box is to measure a task."""
        return self.placed.get(task) == self.box


@dataclass
class _Members:
    """The boxes of a pool at the beginning of a night."""

    before: list[str]
    """Those that share its tasks already, and still do."""

    newcomers: list[str]
    lost: dict[str, PlacementReason] = field(default_factory=dict)
    """Those that hand on what they have, and why."""

    seen_before: datetime | None = None
    """When the box of this night was seen last."""

    problems: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        """Those that share the tasks from now on."""
        return sorted([*self.before, *self.newcomers])


def begin_night(
    connection: Connection,
    pool: str,
    boxes: Collection[str],
    demands: Mapping[SharedTask, Demand],
    box: str,
    hostname: str,
    at: datetime,
) -> PoolNight:
    """Note that a box begins its night, and place what has no box, within a transaction that writes.

    `boxes` are those that the plan has in the pool, `demands` the tasks that they share. The first night of a
    pool counts all of them; after that a box joins with its own first night. A box that is no longer in the
    plan, or that had no night for GONE_NIGHTS, hands on its tasks, if there is another one for them.
    """
    members = _update_members(connection, pool, boxes, box, hostname, at)
    stored = _current(connection, pool)
    before = {task: holder for task, (_, holder) in stored.items() if task in demands}
    kept = {task: holder for task, holder in before.items() if holder in members.before}
    placed = spread(demands, members.all, kept, members.newcomers)
    # A task that nobody else may measure stays with its box.
    placed |= {
        task: holder
        for task, holder in before.items()
        if task not in placed and holder in demands[task].boxes
    }
    homeless = dict(placed)
    for newcomer in members.newcomers:
        if members.before:
            held = {task: holder for task, holder in placed.items() if holder in members.all}
            placed |= share_with(demands, members.all, held, newcomer)
    rows = []
    for task, holder in placed.items():
        if before.get(task) == holder:
            continue
        reason = PlacementReason.NEW
        if task in before:
            moved_to_newcomer = homeless[task] == before[task]
            lost = members.lost.get(before[task], PlacementReason.PLAN)
            reason = PlacementReason.JOINED if moved_to_newcomer else lost
        number = stored[task][0] + 1 if task in stored else 1
        rows.append(
            {
                **_fields(pool, task),
                "number": number,
                "box": holder,
                "reason": reason,
                "placed_at": to_text(at),
            }
        )
    if rows:
        connection.execute(insert(placements), rows)
    told = _since(hand_overs(connection, pool), box, at, members.seen_before)
    hostnames = _hostnames(connection, pool, members.all)
    seconds = {
        task: second
        for task, holder in placed.items()
        if (second := second_box(task, demands[task], hostnames, holder)) is not None
    }
    return PoolNight(pool, box, placed, tuple(told), tuple(members.problems), seconds, hostnames)


def hand_overs(connection: Connection, pool: str | None = None) -> list[HandOver]:
    """Return what was handed on, in order of time, in one pool or in all."""
    columns = placements.c
    key = (columns.pool, columns.suite, columns.configuration, columns.branch)
    query = select(*key, columns.number, columns.box, columns.reason, columns.placed_at)
    query = query.where(*([] if pool is None else [columns.pool == pool])).order_by(*key, columns.number)
    boxes = {(row.pool, row.box): row for row in connection.execute(select(pool_boxes))}
    found = []
    for old, new in pairwise(connection.execute(query).all()):
        if old[: len(key)] != new[: len(key)] or old.box == new.box:
            continue
        before, after = boxes.get((new.pool, old.box)), boxes.get((new.pool, new.box))
        found.append(
            HandOver(
                new.pool,
                SharedTask(new.suite, new.configuration, new.branch),
                old.box,
                new.box,
                PlacementReason(new.reason),
                from_text(new.placed_at),
                before.hostname if before else None,
                after.hostname if after else None,
            )
        )
    return sorted(found, key=lambda hand_over: hand_over.placed_at)


def current_boxes(connection: Connection, pool: str) -> dict[SharedTask, str]:
    """Return the box that measures each task of a pool now."""
    return {task: box for task, (_, box) in _current(connection, pool).items()}


def _since(
    found: Iterable[HandOver], box: str, at: datetime, seen_before: datetime | None
) -> Iterable[HandOver]:
    """Those of this night, and those to or from a box that it has not told yet."""
    tonight = from_text(to_text(at))
    for hand_over in found:
        untold = (
            seen_before is not None
            and hand_over.placed_at > seen_before
            and box in (hand_over.before, hand_over.after)
        )
        if hand_over.placed_at == tonight or untold:
            yield hand_over


def _update_members(
    connection: Connection, pool: str, boxes: Collection[str], box: str, hostname: str, at: datetime
) -> _Members:
    query = select(pool_boxes).where(pool_boxes.c.pool == pool)
    rows = {row.box: row for row in connection.execute(query)}
    if not rows:
        for member in sorted(boxes):
            _insert(connection, pool, member, hostname if member == box else None, at)
        return _Members(before=sorted(boxes), newcomers=[])
    found = _Members(before=[], newcomers=[])
    for name, row in rows.items():
        if row.left_at is not None:
            continue
        reason = _lost(connection, row, boxes, box, at)
        if reason is None:
            found.before.append(name)
        else:
            found.lost[name] = reason
            _change(connection, pool, name, left_at=to_text(at))
    if box not in found.before:
        found.newcomers.append(box)
    if box not in rows:
        _insert(connection, pool, box, hostname, at)
        return found
    own = rows[box]
    found.seen_before = from_text(own.seen_at)
    if own.hostname not in (None, hostname):
        found.problems.append(
            f"box {box} of pool {pool} was {own.hostname} on {found.seen_before:%Y-%m-%d %H:%M} UTC and is"
            f" {hostname} now: if both run, give each a name of its own in the plan"
        )
    begun = {"hostname": hostname, "seen_at": to_text(at), "missed": 0, "missed_at": None}
    _change(connection, pool, box, **begun, left_at=None)
    return found


def _hostnames(connection: Connection, pool: str, boxes: Collection[str]) -> dict[str, str]:
    """Return the host names of those of the boxes that had a night."""
    columns = pool_boxes.c
    query = select(columns.box, columns.hostname).where(columns.pool == pool, columns.hostname.is_not(None))
    return {box: hostname for box, hostname in map(tuple, connection.execute(query)) if box in boxes}


def _lost(
    connection: Connection, row: Row[Any], boxes: Collection[str], box: str, at: datetime
) -> PlacementReason | None:
    """Return why a box no longer shares the tasks; None if it does."""
    if row.box not in boxes:
        return PlacementReason.PLAN
    if row.box != box and _missed(connection, row, at) > GONE_NIGHTS:
        return PlacementReason.GONE
    return None


def _missed(connection: Connection, row: Row[Any], at: datetime) -> int:
    """Return the nights of the others that a box has missed, with this one.

    They are counted, and not taken from the time, so that a pool that was off as a whole loses no box, and a
    clock that is a day wrong makes none disappear.
    """
    counted = max(from_text(row.seen_at), from_text(row.missed_at or row.seen_at))
    if at - counted < timedelta(hours=NIGHT_HOURS):
        return int(row.missed)
    _change(connection, row.pool, row.box, missed=row.missed + 1, missed_at=to_text(at))
    return int(row.missed) + 1


def _insert(connection: Connection, pool: str, box: str, hostname: str | None, at: datetime) -> None:
    row = {"pool": pool, "box": box, "hostname": hostname, "seen_at": to_text(at), "missed": 0}
    connection.execute(insert(pool_boxes).values(**row))


def _change(connection: Connection, pool: str, box: str, **values: Any) -> None:
    where = (pool_boxes.c.pool == pool, pool_boxes.c.box == box)
    connection.execute(update(pool_boxes).where(*where).values(**values))


def _current(connection: Connection, pool: str) -> dict[SharedTask, tuple[int, str]]:
    """Return the number of the last placement of each task, and its box."""
    columns = placements.c
    key = (columns.suite, columns.configuration, columns.branch)
    last = (
        select(*key, func.max(columns.number).label("number"))
        .where(columns.pool == pool)
        .group_by(*key)
        .subquery()
    )
    query = (
        select(*key, columns.number, columns.box)
        .join_from(
            placements,
            last,
            (columns.suite == last.c.suite)
            & (columns.configuration == last.c.configuration)
            & (columns.branch == last.c.branch)
            & (columns.number == last.c.number),
        )
        .where(columns.pool == pool)
    )
    return {
        SharedTask(suite, configuration, branch): (number, box)
        for suite, configuration, branch, number, box in map(tuple, connection.execute(query))
    }


def _fields(pool: str, task: SharedTask) -> dict[str, str]:
    return {
        "pool": pool,
        "suite": task.suite,
        "configuration": task.configuration,
        "branch": task.branch,
    }
