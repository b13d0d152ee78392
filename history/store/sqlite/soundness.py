"""Damage that reading does not show: rows that refer to missing ones, and indexes that differ from tables.

SQLite enforces neither for what another program, a copy over a log, or a disk did to a file. A server keeps
its foreign keys itself, whoever writes.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from history.errors import RESTORE, HistoryError
from history.store.database import Database
from history.store.records import RunStatus
from history.store.schema import builds, configurations, measurements, runs, sessions

CHECKED_BYTES = 16 * 1024**2
"""The size up to which a SQLite file is checked at each opening, which takes 0.2 s at this size."""


def require_sound(database: Database, most_bytes: int | None = None) -> None:
    """Have SQLite check a file of at most so many bytes, of any size for None, as `damage_of` does.

    Raises HistoryError for the first damage. It takes about 11 ms for each MB.
    """
    if database.is_shared:
        return
    with database.reading() as connection:
        run = connection.exec_driver_sql
        size = int(run("PRAGMA page_count").scalar_one()) * int(run("PRAGMA page_size").scalar_one())
        if most_bytes is not None and size > most_bytes:
            return
        if found := damage_of(run):
            raise _damaged(found, database.where)


def damage_of(run: Callable[[str], Any]) -> str:
    """Return the first damage that SQLite finds in foreign keys, indexes, pages and rules; empty for none.

    `run` executes a statement. SQLite leaves out rules (CHECK) of a file that was opened to be read only.
    """
    if row := run("PRAGMA foreign_key_check").fetchone():
        return f"a row of {row[0]} refers to a missing one of {row[2]}"
    # Not quick_check, which does not compare indexes with their tables.
    (found,) = run("PRAGMA integrity_check(1)").fetchone()
    return "" if found == "ok" else str(found)


def require_sound_session(connection: Connection, session_id: int, where: str) -> None:
    """Raises HistoryError when a run, build, configuration or measurement of a session is missing.

    Reads rows of the session alone, by indexes, so that the size of the history does not matter.
    """
    of_session = runs.c.session_id == session_id
    incomplete = (
        select(runs.c.id)
        .join_from(runs, builds, runs.c.build_id == builds.c.id, isouter=True)
        .join(configurations, runs.c.configuration_id == configurations.c.id, isouter=True)
        .where(
            of_session,
            or_(
                builds.c.id.is_(None),
                runs.c.configuration_id.is_not(None) & configurations.c.id.is_(None),
            ),
        )
        .limit(1)
    )
    if connection.execute(incomplete).first():
        raise _damaged("a row of runs refers to a missing build or configuration", where)
    require_measured(connection, where, sessions.c.id == session_id)
    first, last = (select(end(runs.c.id)).where(of_session).scalar_subquery() for end in (func.min, func.max))
    before = select(func.coalesce(func.max(runs.c.id), -1)).where(runs.c.id < first).scalar_subquery()
    after = select(func.coalesce(func.min(runs.c.id), 2**62)).where(runs.c.id > last).scalar_subquery()
    run = select(runs.c.id).where(runs.c.id == measurements.c.run_id).exists()
    within = measurements.c.run_id > before, measurements.c.run_id < after
    if connection.execute(select(measurements.c.run_id).where(*within, ~run).limit(1)).first():
        raise _damaged("a row of measurements refers to a missing one of runs", where)


def require_measured(connection: Connection, where: str, *chosen: ColumnElement[bool]) -> None:
    """Raises HistoryError when a finished run has no measurements: it is recorded with them, or not at all.

    `chosen` are conditions on `sessions`.
    """
    measured = select(measurements.c.run_id).where(measurements.c.run_id == runs.c.id).exists()
    without = (
        select(sessions.c.uid, runs.c.version, runs.c.step, runs.c.repetition)
        .join_from(runs, sessions, runs.c.session_id == sessions.c.id)
        .where(runs.c.status == RunStatus.FINISHED, *chosen, ~measured)
        .limit(1)
    )
    if row := connection.execute(without).first():
        raise _damaged(f"a finished run has no measurements: {' '.join(map(str, row))}", where)


def _damaged(what: str, where: str) -> HistoryError:
    return HistoryError(f"the history is damaged: {what}", where=where, hint=RESTORE)
