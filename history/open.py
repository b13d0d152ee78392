"""Opening a history, for reading or for writing; sessions that end in it are derived."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from build.home import locate
from history.errors import HistoryError
from history.store.database import Database, connect, sqlite_file
from history.store.reader import Reader
from history.store.schema_status import is_ready, lacks_nights, newest, outdated_metrics, update_metrics
from history.store.sqlite.read_only import connect_readonly, copied_in_memory, is_compressed
from history.store.sqlite.soundness import CHECKED_BYTES, require_sound
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
        raise HistoryError(
            "there is no history yet",
            where=str(path),
            hint="the first night of a box or ./tidemark demo creates one",
        )
    return path


def open_reader(target: Path | str) -> Reader:
    """Open the history at a path or an SQLAlchemy URL for reading, which never writes to it.

    Checks and raises as `readable_database`.
    """
    return Reader(readable_database(target))


def readable_database(target: Path | str, most_bytes: int | None = CHECKED_BYTES) -> Database:
    """Open a history that is there for reading, with the newest schema.

    A SQLite file of an older Tidemark is read from a copy in memory, which is brought up to date. One of at
    most `most_bytes`, or of any size for None, is checked as `require_sound` does. Raises
    HistoryError when there is none, when it is damaged or not a history of Tidemark, was written by a newer
    Tidemark, or by an older one on a server.
    """
    file = sqlite_file(target)
    if file is None and not is_server(target):
        raise HistoryError("there is no such history", where=str(target), hint="check the path or URL")
    database = connect(target) if file is None else connect_readonly(file)
    try:
        if _is_ready(database):
            require_sound(database, most_bytes)
            return database
        number = require_history(database)
        require_sound(database, most_bytes)
        if file is None and number < newest():
            raise HistoryError(
                f"the history has schema {number}, of an older Tidemark, and this one reads {newest()}",
                where=database.where,
                hint="./tidemark history migrate --history URL brings it up to date, as recording does",
            )
    except BaseException:
        database.close()
        raise
    if file is None:  # it holds no session that can be a night
        return database
    database.close()
    return _brought_up_to_date(file, number)


def require_history(database: Database) -> int:
    """Return the schema number of a history.

    Raises HistoryError when it is none, is damaged, or was written by a newer Tidemark.
    """
    from history.store.migrate import require_schema, schema_number

    number = schema_number(database, supported=newest())
    if not number:
        raise HistoryError("there is no history", where=database.where, hint="check the path or URL")
    require_schema(database, number)
    return number


def _brought_up_to_date(file: Path, number: int) -> Database:
    copy = copied_in_memory(file)
    try:
        prepare(copy, number)
    except BaseException:
        copy.close()
        raise
    return copy


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
    if is_compressed(file):
        raise HistoryError(
            "a compressed history can only be read",
            where=str(file),
            hint="decompress it by gunzip, or import from it: ./tidemark history merge",
        )
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
