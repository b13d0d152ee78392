"""A whole copy of a history, taken while others write to it."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import ColumnElement, Connection, select

from history.counts import counted
from history.errors import RESTORE, HistoryError
from history.open import open_store, readable_database, require_history
from history.store.database import Database, sqlite_file
from history.store.migrate import require_schema
from history.store.profiles import unpacked
from history.store.schema import counted_profiles, profiles, sessions, wait_profiles
from history.store.schema_status import newest
from history.store.sqlite.read_only import connect_readonly, readonly_connection
from history.store.sqlite.soundness import damage_of, require_sound
from history.transfer.atomic_files import written_whole
from history.transfer.database_source import StoredRows, opened
from history.transfer.merging import merge
from history.transfer.row_source import TransferError

MARK = 0x5469_6465
"""SQLite's `application_id` of a backup, which no history at work has that was not restored from one."""

_MARK_AT, _JOURNAL_AT = 68, 18  # sqlite.org/fileformat.html#the_database_header
_ROLLBACK_JOURNAL = b"\x01\x01"


def back_up(target: Path | str, path: Path) -> tuple[str, ...]:
    """Copy the history at a path or URL into a new SQLite file; returns what is not in it, one text each.

    Of a SQLite history everything is copied as it is at one moment, also sessions that run. A Postgres
    database is merged into an empty history, without those. An earlier backup is replaced, once the copy was
    checked as a whole; raises TransferError for a copy that is damaged or lacks sessions of the earlier one,
    and for any other file that is there.
    """
    file = sqlite_file(target)
    _require_replaceable(path)
    with written_whole(path, replace=True) as part:
        if file is None:
            left_out = _merged(target, part)
        else:
            with closing(connect_readonly(file)) as database:
                require_history(database)
            _copied(file, part)
            left_out = ()
        _seal(part)
        _require_readable(part)
        _require_no_loss(part, path)
    return left_out


@contextmanager
def checked_copy(source: Path, part: Path) -> Iterator[Path]:
    """Copy a SQLite history, log included, and check it as a backup is; the copy is removed at the end.

    Raises HistoryError for one that is damaged or no history.
    """
    try:
        _copied(source, part)
        _seal(part)
        _require_readable(part)
        with _sqlite(f"file:{quote(str(part.absolute()))}", part) as copy:
            copy.execute("PRAGMA application_id = 0")  # what it becomes is no backup
        yield part
    finally:
        part.unlink(missing_ok=True)


def sessions_of(path: Path) -> set[str]:
    """Return the uids of the sessions in a SQLite file. Raises HistoryError and OSError."""
    with closing(connect_readonly(path)) as database:
        require_history(database)
        with database.reading() as connection:
            return set(connection.execute(select(sessions.c.uid)).scalars())


def is_backup(path: Path) -> bool:
    """Whether a file is a backup that nobody worked with since: a history at work keeps a write-ahead log."""
    with path.open("rb") as file:
        head = file.read(100)
    mark, journal = head[_MARK_AT : _MARK_AT + 4], head[_JOURNAL_AT : _JOURNAL_AT + 2]
    return head.startswith(b"SQLite format 3\0") and (mark, journal) == (MARK.to_bytes(4), _ROLLBACK_JOURNAL)


def _require_replaceable(path: Path) -> None:
    if path.exists() and not (path.is_file() and is_backup(path)):
        raise TransferError(
            "there is something already that is no backup of ours",
            where=str(path),
            hint="choose another name",
        )


def _copied(file: Path, part: Path) -> None:
    # All pages in one step: a step sees one moment, and readers hold up no writer of a write-ahead log. In
    # several steps the copy would begin again with each write of another process, and never end in a night.
    with readonly_connection(file) as source, _sqlite(f"file:{quote(str(part.absolute()))}", part) as copy:
        source.backup(copy)


def _merged(target: Path | str, part: Path) -> tuple[str, ...]:
    with opened(target) as source, open_store(part) as store:
        return tuple(merge(store, [source], adopt_metrics=True).left_out)


def _seal(part: Path) -> None:
    """Check a copy, mark it, and leave one file of it."""
    with _sqlite(f"file:{quote(str(part.absolute()))}", part) as copy:
        copy.execute(f"PRAGMA application_id = {MARK}")
        copy.execute("PRAGMA journal_mode = DELETE")
        if found := damage_of(copy.execute):
            raise TransferError(
                f"the copy is damaged: {found}",
                where=str(part),
                hint=f"the history is, or the disk; {RESTORE}",
            )


def _require_readable(part: Path) -> None:
    """Raises HistoryError when a row or a profile cannot be read, or measurements are missing.

    After `_seal`, which has SQLite look for damage of its own kind.
    """
    with closing(readable_database(part, most_bytes=0)) as database:
        require_schema(database, newest())
        _require_rows(database)


def require_whole(database: Database) -> None:
    """Check a history that is open to be written as the copy of a backup is checked.

    Raises HistoryError for the first damage. It takes about 11 ms for each MB, and 16 ms for 1000 runs. A
    history on a server is not read: the server keeps its rules.
    """
    if not database.is_shared:
        require_sound(database)
        _require_rows(database)


def _require_rows(database: Database) -> None:
    with database.reading() as connection:
        StoredRows(connection, database.where).require_whole()
        for blob in (
            profiles.c.stacks,
            wait_profiles.c.stacks,
            counted_profiles.c.stacks,
            counted_profiles.c.calls,
        ):
            _require_unpackable(connection, blob, database.where)


def _require_unpackable(connection: Connection, blob: ColumnElement[Any], where: str) -> None:
    """Raises TransferError when one of the packed values of a column cannot be read."""
    for packed in connection.execute(select(blob)).scalars():
        try:
            unpacked(packed)
        except (ValueError, zlib.error) as error:
            raise TransferError(
                f"the history is damaged: a profile cannot be read: {error}",
                where=where,
                hint=f"the history is, or the disk; {RESTORE}",
            ) from error


def _require_no_loss(part: Path, earlier: Path) -> None:
    """Raises TransferError when a copy lacks sessions that the backup holds which it is to replace."""
    if earlier.exists() and (lost := _lost_sessions(earlier, part)):
        raise TransferError(
            f"the history lacks {counted(len(lost), 'session')} of this earlier backup, such as {min(lost)}",
            where=str(earlier),
            hint="the backup was kept; merge it into the history, or choose another name",
        )


def _lost_sessions(earlier: Path, later: Path) -> set[str]:
    """Uids of sessions that an earlier backup holds and a later one does not; none when it cannot be read.

    Sessions are never deleted, so that a later history without them is another one, or was emptied.
    """
    try:
        return sessions_of(earlier) - sessions_of(later)
    except (HistoryError, OSError):
        return set()


@contextmanager
def _sqlite(name: str, path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(name, uri=True, timeout=30, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise HistoryError(f"it could not be copied: {error}", where=str(path)) from error
