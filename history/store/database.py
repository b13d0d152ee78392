"""Connections to the history: how they are made, how transactions begin, what their errors mean."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from history.errors import DamagedTextError, HistoryError, RecordError, refusal

BUSY_TIMEOUT_MS = 30_000
"""How long a transaction waits for another one's lock. A record takes milliseconds; a migration seconds."""

_SQLITE_MAGIC = b"SQLite format 3\0"

_WRITING, _DELIVERING = 0x7469_6465, 0x7469_6466
"""Keys of Postgres' advisory locks: any constants."""

_KEEPALIVE = {"tcp_keepalives_idle": 60, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 6}
"""A server frees what a box held that lost its network: after two minutes, not after Linux' two hours."""


class Database:
    """One SQLite file or Postgres database. Every access is a transaction."""

    def __init__(self, engine: Engine, where: str) -> None:
        self._reader = engine
        self._writer = engine.execution_options(tidemark_writes=True)
        self.where = where

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._reader.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads and blocks no writer."""
        with explained(self.where), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is durable once the context ends, and leaves nothing when it raises.

        One at a time, in either store: it may decide by what it read. Raises HistoryError when another one
        does not end in BUSY_TIMEOUT_MS.
        """
        with explained(self.where), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def delivery_lock(self) -> Iterator[None]:
        """A lock across hosts for delivering issues: one process at a time of all that share the history.

        Others wait. Processes that share a SQLite file are on one host, where build/lock.py locks files.
        """
        if self.dialect != "postgresql":
            yield
            return
        with explained(self.where), self._reader.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("SET lock_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({_DELIVERING})")
            try:
                yield
            finally:
                connection.invalidate()  # the lock ends with the connection, even with one that is broken

    def close(self) -> None:
        """Close every connection."""
        self._reader.dispose()


def plain_rows(connection: Connection, query: Select[Any]) -> Sequence[Any]:
    """The rows as the driver's own tuples, for thousands of them: SQLAlchemy's rows take as long again.

    Nothing is converted, which no column of the history needs.
    """
    result = connection.execute(query)
    try:
        found: Sequence[Any] = result.cursor.fetchall()
    except sqlite3.Error as error:  # a text that is not UTF-8, which SQLAlchemy does not see here
        raise DamagedTextError(str(error)[:200]) from error
    result.close()
    return found


def connect(target: Path | str) -> Database:
    """The database at a path (SQLite) or an SQLAlchemy URL. Makes the path's folder, writes nothing else."""
    url = _url(target)
    if url.get_backend_name() != "sqlite":
        engine = create_engine(url)
        event.listen(engine, "connect", _configure_postgres)
        _write_in_turn(engine)
        return Database(engine, url.render_as_string(hide_password=True))
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url)
    event.listen(engine, "connect", _configure_sqlite)
    _begin_explicitly(engine)
    return Database(engine, url.database or ":memory:")


def connect_readonly(path: Path) -> Database:
    """A SQLite file opened read-only: not even its header or write-ahead log is touched.

    Raises HistoryError when the file is not SQLite.
    """
    with path.open("rb") as file:
        if file.read(len(_SQLITE_MAGIC)) != _SQLITE_MAGIC:
            raise HistoryError(
                "the file is not a SQLite database",
                where=str(path),
                hint="name another history, or move the file aside",
            )
    name = f"file:{quote(str(path.absolute()))}"
    url = URL.create("sqlite", database=name, query={"mode": "ro", "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
    _begin_explicitly(engine)
    return Database(engine, str(path))


def sqlite_file(target: Path | str) -> Path | None:
    """The file behind a target when it exists and holds something."""
    url = _url(target)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    path = Path(url.database)
    return path if path.is_file() and path.stat().st_size else None


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what the driver raises into a HistoryError that says what to do."""
    try:
        yield
    except IntegrityError as error:
        raise RecordError(
            f"the history refuses the record: {error.orig}",
            where=where,
            hint="it is there already, or names something that is not; nothing of it was written",
        ) from error
    except DBAPIError as error:
        raise refusal(str(error.orig), where) from error


def _url(target: Path | str) -> URL:
    if isinstance(target, Path) or "://" not in target:
        return URL.create("sqlite", database=str(target))
    try:
        url = make_url(target)
    except ArgumentError as error:
        raise HistoryError(f"'{target}' is not a database URL", hint=str(error)) from error
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise HistoryError(
            f"a history cannot lie in {url.get_backend_name()}",
            hint="give the path of a SQLite file, or a URL such as postgresql+psycopg://host/name",
        )
    return url


def _configure_sqlite(connection: Any, _record: object) -> None:
    # synchronous=FULL: in WAL mode NORMAL may lose the last commits on power loss (sqlite.org/pragma.html).
    waits = f"busy_timeout = {BUSY_TIMEOUT_MS}"
    for pragma in (waits, "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_explicitly(engine: Engine) -> None:
    """Let SQLAlchemy, not the sqlite3 module, begin transactions: DDL then belongs to them too.

    sqlite3 by default begins late and not before DDL, so that a failed migration would keep half its
    tables. A writer takes the write lock at BEGIN, because a reader that upgrades later can be refused at
    once, without waiting (sqlite.org/rescode.html#busy_snapshot).
    """

    @event.listens_for(engine, "connect")
    def take_control(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tidemark_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure_postgres(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        for name, value in {"lock_timeout": BUSY_TIMEOUT_MS, **_KEEPALIVE}.items():
            cursor.execute(f"SET {name} = {value}")
    connection.commit()


def _write_in_turn(engine: Engine) -> None:
    """Let a writer wait for the one before it, as SQLite's do.

    Without it two could end the same session, or find the same change, each not seeing the other's: the
    server goes on with the last words of a client that was killed, while the next one begins.
    """

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("tidemark_writes", False):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITING})")
