"""Making room: the rounds of old sessions go, and what was derived from them stays."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, or_, select

from history.derive import derive_missing
from history.store.database import Database, sqlite_file
from history.store.records import SessionStatus
from history.store.schema import (
    bisect_events,
    confirmations,
    measurements,
    nights,
    profiles,
    runs,
    samples,
    sessions,
)
from history.store.session_lookup import IS_NO_BISECT
from history.store.writer import Store
from history.timestamps import to_text

ROUNDS = (samples, measurements, profiles)
"""What goes with the runs that it belongs to."""

BYTES_EACH = {"runs": 350, "measurements": 45, "samples": 20, "profiles": 60}
"""About what a row takes in SQLite, its index entries included; a profile's stacks come on top."""


@dataclass(frozen=True)
class Room:
    """What the rounds of old sessions take."""

    sessions: int
    rows: dict[str, int]
    """By table."""

    bytes: int
    """About."""


def prune(store: Store, before: datetime) -> int:
    """Delete the rounds of sessions that began before a moment; returns of how many sessions.

    Their nights are derived first where they are missing. A session goes whole, in a transaction of its own:
    whatever happens, each has all of its rounds or none. Sessions, nights, points, gaps, changes, dropped
    rounds and calibrations stay.
    """
    with store.database.writing() as connection:
        derive_missing(connection)
    with store.database.reading() as connection:
        old = connection.execute(_old(before)).scalars().all()
    for session_id in old:
        with store.database.writing() as connection:
            _delete_rounds(connection, session_id)
    return len(old)


def room(store: Store, before: datetime) -> Room:
    """What pruning would free."""
    with store.database.reading() as connection:
        ended = select(sessions.c.id).where(
            *_ended_before(before),
            sessions.c.id.in_(select(runs.c.session_id)),
            or_(IS_NO_BISECT, sessions.c.uid.in_(_sessions_of_answered_bisects())),
        )
        old = select(runs.c.id).where(runs.c.session_id.in_(ended))
        rows = {"runs": connection.execute(select(func.count()).select_from(old.subquery())).scalar_one()}
        for table in ROUNDS:
            counted = select(func.count()).select_from(table).where(table.c.run_id.in_(old))
            rows[table.name] = connection.execute(counted).scalar_one()
        stacks = select(func.coalesce(func.sum(func.length(profiles.c.stacks)), 0))
        packed = int(connection.execute(stacks.where(profiles.c.run_id.in_(old))).scalar_one())
        count = connection.execute(select(func.count()).select_from(ended.subquery())).scalar_one()
    return Room(count, rows, packed + sum(BYTES_EACH[name] * number for name, number in rows.items()))


def vacuum(database: Database) -> str:
    """Give the freed pages of a SQLite file back to its file system; returns what is left to do, or nothing.

    Not while a session runs: VACUUM keeps every writer out for as long as it takes to copy the whole file.
    """
    file = sqlite_file(database.where) if database.dialect == "sqlite" else None
    if file is None:
        return "Postgres uses the room again by itself; VACUUM FULL would give it back to the file system"
    with database.reading() as connection:
        running = sessions.c.status == SessionStatus.RUNNING
        if connection.execute(select(sessions.c.id).where(running).limit(1)).first():
            return "a session runs: the file stays as large, with room inside; prune again when it has ended"
    return _vacuum_file(file)


def _vacuum_file(file: Path) -> str:
    try:
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        return (
            f"the file stays as large, with room inside, because VACUUM failed ({error}); prune again later"
        )
    return ""


def _ended_before(before: datetime) -> Iterator[ColumnElement[bool]]:
    yield sessions.c.started_at < to_text(before)
    yield sessions.c.status != SessionStatus.RUNNING


def _old(before: datetime) -> Select[Any]:
    """Sessions whose rounds may go: what was derived of them is kept by a night, or by a bisect's verdict."""
    return (
        select(sessions.c.id)
        .where(*_ended_before(before))
        .where(sessions.c.id.in_(select(runs.c.session_id)))
        .where(
            or_(
                sessions.c.id.in_(select(nights.c.session_id)),
                sessions.c.id.in_(select(confirmations.c.session_id)),
                sessions.c.uid.in_(_sessions_of_answered_bisects()),
            )
        )
        .order_by(sessions.c.started_at)
    )


def _sessions_of_answered_bisects() -> Select[Any]:
    """Uids. Of a bisect without a verdict the rounds stay: it could not be gone on with."""
    answered = select(bisect_events.c.bisect_id).where(bisect_events.c.kind == "verdict")
    return select(bisect_events.c.session_uid).where(
        bisect_events.c.bisect_id.in_(answered), bisect_events.c.session_uid.is_not(None)
    )


def _delete_rounds(connection: Connection, session_id: int) -> None:
    its = select(runs.c.id).where(runs.c.session_id == session_id)
    for table in ROUNDS:
        connection.execute(delete(table).where(table.c.run_id.in_(its)))
    connection.execute(delete(runs).where(runs.c.session_id == session_id))
