"""Opening a history, for reading or for writing; sessions that end in it are derived."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from build.home import locate
from history.errors import HistoryError
from history.store.database import Database, connect, connect_readonly, sqlite_file
from history.store.reader import Reader
from history.store.schema_status import is_ready, lacks_nights, newest, outdated_metrics, update_metrics
from history.timestamps import now

if TYPE_CHECKING:
    from history.store.writer import Store


def existing_history(chosen: str | None) -> Path | str:
    """Return the path or URL of the history to read: the chosen one, else Tidemark's own.

    Raises HistoryError when there is no such file: reading must not create it.
    """
    if chosen and "://" in chosen:
        return chosen
    path = Path(chosen) if chosen else locate().history
    if path.exists() and not path.is_file():
        raise HistoryError("this is not a file, so it cannot be a history", where=str(path))
    if not path.is_file():
        raise HistoryError("there is no history yet", where=str(path), hint="./tidemark demo creates one")
    return path


def open_reader(target: Path | str) -> Reader:
    """Open the history at a path or an SQLAlchemy URL for reading.

    A SQLite file that is up to date is opened read-only, and one on a server without looking any further.
    Everything else is left to `open_store`, which upgrades the history of an older Tidemark. Raises as
    `open_store` does.
    """
    file = sqlite_file(target)
    with suppress(HistoryError):  # open_store reports what is wrong
        if file is not None or is_server(target):
            database = connect(target) if file is None else connect_readonly(file)
            if _is_ready(database):
                return Reader(database)
            database.close()
    return open_store(target)


def is_server(target: Path | str) -> bool:
    """Whether a history is on a server."""
    return isinstance(target, str) and "://" in target and not target.startswith("sqlite")


def open_store(target: Path | str, clock: Callable[[], datetime] = now) -> "Store":
    """Open the history at a path or an SQLAlchemy URL; create it, or migrate its schema, first.

    Raises HistoryError, and leaves the target unchanged, when it is not a history of Tidemark, is damaged,
    or was written by a newer Tidemark.
    """
    from history.store.writer import Store  # loaded only by commands that may write

    number = _stored_schema(target)
    database = connect(target)
    try:
        prepare(database, number)
    except BaseException:
        database.close()
        raise
    return Store(database, clock, derive_ended)


def prepare(database: Database, number: int | None = None) -> None:
    """Create a history, or bring it up to date; `number` is that of its schema, if it is known.

    Raises as `open_store`.
    """
    from history.store.migrate import migrate

    if number != newest():
        migrate(database)
    database.require_schema(newest())
    _derive_older(database)
    _update_metrics(database)


def _is_ready(database: Database) -> bool:
    with suppress(HistoryError), database.reading() as connection:
        return is_ready(connection)
    return False


def _stored_schema(target: Path | str) -> int | None:
    """Return the schema number of a SQLite file; None when there is no such file.

    The file is opened read-only, so that a file of another program is unchanged, write-ahead log included.
    """
    from history.store.migrate import schema_number

    file = sqlite_file(target)
    if file is None:
        return None
    database = connect_readonly(file)
    try:
        return schema_number(database, supported=newest())
    finally:
        database.close()


def derive_ended(connection: Connection, session_id: int) -> None:
    """Derive the night or the confirmation of a session that has ended."""
    from history.derive import derive  # loaded only when a session ends

    derive(connection, session_id)


def _derive_older(database: Database) -> None:
    """Derive the nights of a history that was written before nights were stored."""
    with database.reading() as connection:
        if not lacks_nights(connection):
            return
    with database.writing() as connection:
        from history.derive import derive_missing

        derive_missing(connection)


def _update_metrics(database: Database) -> None:
    with database.reading() as connection:
        if not outdated_metrics(connection):
            return
    with database.writing() as connection:
        update_metrics(connection)
