"""Pruning: deletion of the rounds of old sessions, whose derived nights are kept."""

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
from history.store.reader import Reader
from history.store.records import SessionStatus
from history.store.schema import (
    activities,
    bisect_events,
    confirmations,
    counted_profiles,
    kinds,
    measurements,
    nights,
    profiles,
    runs,
    samples,
    sessions,
    wait_profiles,
)
from history.store.session_lookup import IS_NO_BISECT
from history.store.writer import Store
from history.timestamps import to_text

ROUNDS = (samples, activities, measurements, kinds, profiles, counted_profiles, wait_profiles)
"""The tables whose rows are deleted with their runs."""

BYTES_EACH = {
    "runs": 350,
    "measurements": 45,
    "kinds": 60,
    "samples": 20,
    "activities": 40,
    "profiles": 60,
    "counted_profiles": 60,
    "wait_profiles": 60,
}
"""The approximate bytes of a row in SQLite, with its index entries, without the stacks of profiles."""


@dataclass(frozen=True)
class Room:
    """The size of the rounds of old sessions."""

    sessions: int
    rows: dict[str, int]
    """The number of rows by table."""

    bytes: int
    """About."""


def prune(store: Store, before: datetime) -> int:
    """Delete the rounds of sessions that began before a time, and return the number of these sessions.

    Missing nights are derived first. The rounds of a session are deleted in one transaction, so that it
    has all of its rounds or none. Sessions, nights, points, gaps, changes, dropped rounds and calibrations
    are kept.
    """
    with store.database.writing() as connection:
        derive_missing(connection)
    with store.database.reading() as connection:
        old = connection.execute(_old(before)).scalars().all()
    for session_id in old:
        with store.database.writing() as connection:
            _delete_rounds(connection, session_id)
    return len(old)


def room(store: Reader, before: datetime) -> Room:
    """Return what pruning would free."""
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
        packed = 0
        for table, column in (
            (profiles, "stacks"),
            (counted_profiles, "stacks"),
            (counted_profiles, "calls"),
            (wait_profiles, "stacks"),
        ):
            length = select(func.coalesce(func.sum(func.length(table.c[column])), 0))
            packed += int(connection.execute(length.where(table.c.run_id.in_(old))).scalar_one())
        count = connection.execute(select(func.count()).select_from(ended.subquery())).scalar_one()
    return Room(count, rows, packed + sum(BYTES_EACH[name] * number for name, number in rows.items()))


def vacuum(database: Database) -> str:
    """Return freed pages of a SQLite file to the file system; return a note on what is left to do, if any.

    It does nothing while a session runs, because VACUUM blocks every writer until it has copied the file.
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
    """Return the sessions whose rounds can be deleted, because they have a night or a bisect's verdict."""
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
    """Return the uids of the sessions of bisects without a verdict, which need their rounds to continue."""
    answered = select(bisect_events.c.bisect_id).where(bisect_events.c.kind == "verdict")
    return select(bisect_events.c.session_uid).where(
        bisect_events.c.bisect_id.in_(answered), bisect_events.c.session_uid.is_not(None)
    )


def _delete_rounds(connection: Connection, session_id: int) -> None:
    run_ids = select(runs.c.id).where(runs.c.session_id == session_id)
    for table in ROUNDS:
        connection.execute(delete(table).where(table.c.run_id.in_(run_ids)))
    connection.execute(delete(runs).where(runs.c.session_id == session_id))
