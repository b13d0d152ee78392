"""SQLite files opened for reading, also where this user may not write, or where no space is left.

A history has a write-ahead log. To read one, SQLite needs a file for locks beside it (`-shm`), and a reader
makes it if it is missing (sqlite.org/wal.html#read_only_databases). Where that fails, or where the file would
belong to somebody who does not own the history, and would keep its owner from writing, the history is read
without locks. A log without that file is read from a copy of both. A file compressed by gzip is read from
memory.
"""

import gzip
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from enum import Enum
from itertools import count
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import QueuePool

from history.errors import HistoryError, database_error
from history.store.database import BUSY_TIMEOUT_MS, Database, DatabaseSnapshot, begin_explicitly

SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of a file: for its write-ahead log, locks of readers, a rollback journal."""

_MAGIC = b"SQLite format 3\0"
_COMPRESSED = b"\x1f\x8b"  # RFC 1952
# sqlite.org/fileformat.html#the_database_header: a database in memory has no log
_JOURNAL_AT, _LOGGED, _UNLOGGED = 18, b"\x02", b"\x01\x01"
_ATTEMPTS = 2
"""How often a file is tried: its log may be made or removed meanwhile."""

_MEMORY = Path("/dev/shm")
"""Where a file and its log are copied to if nothing can be written to the folder for temporary files."""

_TOO_LARGE = "./tidemark history migrate brings one of an older Tidemark up to date, so that it needs no copy"

_numbers = count(1)


class _Way(Enum):
    """How a SQLite file can be read."""

    LOCKED = "mode=ro"
    """With locks, as by default."""
    UNLOCKED = "mode=ro&immutable=1"
    """Without locks, which nobody may notice: the log is not read."""
    COPIED = "mode=rw"
    """With its log, from a folder in which files can be made."""
    DECOMPRESSED = "mode=memory"
    """As it was when it was compressed, from memory."""


class UnlockedDatabase(Database):
    """A SQLite file that is read without locks. Whoever writes into it meanwhile makes the reading fail."""

    def __init__(self, engine: Engine, path: Path) -> None:
        """`engine` makes connections without locks."""
        super().__init__(engine, str(path))
        self._path, self._state = path, _state(path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that only reads. Raises HistoryError when the file was written to meanwhile."""
        with self._unchanged(), super().reading() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        """Yield the database as it is now. Raises HistoryError when the file was written to meanwhile."""
        with self._unchanged(), super().snapshot() as snapshot:
            yield snapshot

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        try:
            yield
        except HistoryError:
            self._require_unchanged()
            raise
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        # A log that grows does not matter: the file has the state before it.
        if _state(self._path) != self._state:
            raise _written(self._path)


class CopiedDatabase(Database):
    """A copy of a SQLite file in memory, which may be written: nothing of it lasts."""

    def __init__(self, source: sqlite3.Connection, where: str) -> None:
        """Copy what a connection reads. Raises MemoryError and sqlite3.Error."""
        # All connections to a name share the database, and it lasts as long as one of them.
        name = f"file:tidemark-{os.getpid()}-{next(_numbers)}?mode=memory&cache=shared"
        self._kept = _connect(name)
        source.backup(self._kept)
        super().__init__(_engine(name), where)

    def close(self) -> None:
        """Close every connection; the copy is gone."""
        super().close()
        self._kept.close()


def connect_readonly(path: Path) -> Database:
    """Open a SQLite file for reading: it is not written, its header and write-ahead log included.

    Raises HistoryError when the file is not SQLite, or cannot be read.
    """
    with ExitStack() as stack:
        way, source = _first(path, stack)
        if way in (_Way.COPIED, _Way.DECOMPRESSED):
            stack.enter_context(_explained(path))
            return CopiedDatabase(source, str(path))
    engine = _engine(_name(path, way))
    return UnlockedDatabase(engine, path) if way is _Way.UNLOCKED else Database(engine, str(path))


def copied_in_memory(path: Path) -> CopiedDatabase:
    """Return a copy of a SQLite file, log included, that can be written. Raises as `connect_readonly`."""
    with readonly_connection(path) as source, _explained(path):
        return CopiedDatabase(source, str(path))


@contextmanager
def readonly_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file with Python's own driver, which can copy it as a whole.

    Raises as `connect_readonly`, and HistoryError at the end if the file was read without locks and somebody
    wrote into it.
    """
    with ExitStack() as stack:
        state = _state(path)
        way, connection = _first(path, stack)
        yield connection
        if way is _Way.UNLOCKED and _state(path) != state:
            raise _written(path)


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed by gzip."""
    with path.open("rb") as file:
        return file.read(len(_COMPRESSED)) == _COMPRESSED


def _first(path: Path, stack: ExitStack) -> tuple[_Way, sqlite3.Connection]:
    """Return the first way of reading that works here, and a connection for as long as the stack lasts."""
    with _explained(path):
        failure: Exception = HistoryError("there is no way to read it")
        for _ in range(_ATTEMPTS):
            for way in _ways(path):
                try:
                    return way, stack.enter_context(_connected(path, way))
                except sqlite3.OperationalError as error:
                    if "locked" in str(error):
                        raise
                    failure = error
        raise failure


def _ways(path: Path) -> Iterator[_Way]:
    """Yield the ways in which a file may be read, the best first. Raises HistoryError if it is not SQLite."""
    if is_compressed(path):
        yield _Way.DECOMPRESSED
        return
    log, locks, journal = (path.with_name(path.name + ending) for ending in SIDE_FILES)
    makes_files = os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
    if makes_files or not _is_logged(path) or (log.exists() and locks.exists()):
        yield _Way.LOCKED
    to_replay = any(file.exists() and file.stat().st_size for file in (log, journal))
    yield _Way.COPIED if to_replay else _Way.UNLOCKED


def _is_logged(path: Path) -> bool:
    """Whether a SQLite file has a write-ahead log. Raises HistoryError if it is not SQLite."""
    with path.open("rb") as file:
        head = file.read(_JOURNAL_AT + 1)
    if not head.startswith(_MAGIC):
        raise _no_database(path)
    return head[_JOURNAL_AT:] == _LOGGED


@contextmanager
def _connected(path: Path, way: _Way) -> Iterator[sqlite3.Connection]:
    """Open a file, and see that it can be read."""
    with ExitStack() as stack:
        if way is _Way.DECOMPRESSED:
            yield stack.enter_context(_decompressed(path))
            return
        file = stack.enter_context(_copied_with_log(path)) if way is _Way.COPIED else path
        connection = stack.enter_context(closing(_connect(_name(file, way))))
        connection.execute("PRAGMA schema_version")
        yield connection


@contextmanager
def _decompressed(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        content = gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise HistoryError(
            f"the compressed file is damaged: {error}", where=str(path), hint="take another copy of it"
        ) from error
    if not content.startswith(_MAGIC):
        raise _no_database(path)
    head, rest = content[:_JOURNAL_AT], content[_JOURNAL_AT + len(_UNLOGGED) :]
    with closing(_connect(":memory:")) as connection:
        connection.deserialize(head + _UNLOGGED + rest)
        connection.execute("PRAGMA schema_version")
        yield connection


def _name(path: Path, way: _Way) -> str:
    return f"file:{quote(str(path.absolute()))}?{way.value}"


def _connect(name: str) -> sqlite3.Connection:
    # A pool gives a connection to one thread at a time, though not always to the same.
    timeout = BUSY_TIMEOUT_MS / 1000
    return sqlite3.connect(name, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def _engine(name: str) -> Engine:
    # Not the pool for databases in memory, which has one connection for each thread: readings are nested.
    engine = create_engine("sqlite://", creator=lambda: _connect(name), poolclass=QueuePool)
    begin_explicitly(engine)
    return engine


@contextmanager
def _copied_with_log(path: Path) -> Iterator[Path]:
    """Copy a file with its log or journal to a folder in which SQLite can replay them."""
    failure = ""
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), _MEMORY)):
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-", dir=parent))
                copy = Path(folder) / path.name
                for ending in ("", "-wal", "-journal"):
                    if (file := path.with_name(path.name + ending)).exists():
                        shutil.copyfile(file, copy.with_name(copy.name + ending))
            except OSError as error:
                failure = f"{parent}: {error.strerror}"
                continue
            yield copy
            return
    raise HistoryError(
        f"its write-ahead log can only be read in a copy, which cannot be made: {failure}",
        where=str(path),
        hint="free some space there, or name another folder by TMPDIR",
    )


def _state(path: Path) -> tuple[int, int, int]:
    """Return what shows whether a file was written or replaced."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _written(path: Path) -> HistoryError:
    return HistoryError("the history was written to while it was read", where=str(path), hint="try again")


def _no_database(path: Path) -> HistoryError:
    return HistoryError(
        "the file is not a SQLite database",
        where=str(path),
        hint="name another history, or move the file aside",
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise database_error(str(error), str(path)) from error
    except PermissionError as error:
        raise HistoryError(
            "this user may not read the history",
            where=str(path),
            hint="see its rights, and those of its folder",
        ) from error
    except MemoryError as error:
        raise HistoryError(
            "there is not enough memory for a copy of the history", where=str(path), hint=_TOO_LARGE
        ) from error
