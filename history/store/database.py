"""Connections to the history's database: engines, transactions, locks, and explanations of errors."""

import os
import socket
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from build import environment
from build.addresses import without_secrets
from build.files import GROUP_WRITES
from build.lock import held
from history.errors import DamagedTextError, HistoryError, RecordError, database_error

CONNECT_SECONDS = 10
"""How long a server may take to accept a connection."""

_KEEPALIVE = {"tcp_keepalives_idle": 60, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 6}
"""With these a server releases the locks of a disconnected box after two minutes, not after two hours."""

_OURS = {
    "connect_timeout": CONNECT_SECONDS,
    # In milliseconds and seconds: a network that is gone is noticed within half a minute, by tcp(7).
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}


def connection_defaults(url: URL) -> dict[str, Any]:
    """Return what psycopg is told beside a URL, whose own parameters win.

    Nothing is prepared: behind a pooler in transaction mode the next transaction has another connection,
    which knows nothing of it (www.pgbouncer.org/features.html). libpq finds its variables by itself, except
    PGSERVICE, which is kept from it while servers are measured.
    """
    if url.get_driver_name() != "psycopg":
        return {}
    service = environment.caller_value("PGSERVICE")
    ours = {**_OURS, "service": service} if service else _OURS
    return {"prepare_threshold": None} | {
        name: value for name, value in ours.items() if name not in url.query
    }


def configure_postgres(connection: Any, lock_timeout_ms: int) -> None:
    """Let the server notice a box that is gone, and give up waiting for a lock.

    Behind a pooler all this is about one of its connections; who writes does not depend on it.
    """
    chosen = {"lock_timeout": lock_timeout_ms, **_KEEPALIVE}
    # One statement, because a network may take its time for each.
    parts = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in chosen.items())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {parts}")
    connection.commit()


class Watch:
    """Ends a connection that a transaction waits for in vain: its next word raises an error of the driver.

    A server that is frozen, or behind a proxy that passes nothing on, answers TCP and nothing else, so that
    no time limit of libpq applies, except to the first words of a connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._used = threading.local()
        for name in ("connect", "checkout"):
            # Before SQLAlchemy's own, which asks the server already.
            event.listen(engine.pool, name, self._note, insert=True)

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Give what this thread asks of the server at most so many seconds."""
        sockets: list[socket.socket] = []
        self._used.sockets = sockets
        timer = threading.Timer(seconds, _shut, [sockets])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._used.sockets = None
            for open_socket in sockets:
                open_socket.close()

    def _note(self, connection: Any, *_: object) -> None:
        sockets, pgconn = getattr(self._used, "sockets", None), getattr(connection, "pgconn", None)
        if sockets is not None and pgconn is not None:
            # A descriptor of its own: that of libpq may be another file's by then.
            sockets.append(socket.socket(fileno=os.dup(pgconn.socket)))


def _shut(sockets: list[socket.socket]) -> None:
    for open_socket in list(sockets):
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


BUSY_TIMEOUT_MS = 30_000
"""How long a transaction waits for a lock. Recording a run takes milliseconds, a migration seconds."""

DELIVERING = ".delivering"
"""What the name of the lock file of deliveries adds to that of a SQLite file."""

_IN_MEMORY = ":memory:"

_WRITING, _DELIVERING = 0x7469_6465, 0x7469_6466
"""Keys of Postgres' advisory locks, arbitrary constants."""


class Database:
    """A SQLite file or a Postgres database. Every access is a transaction."""

    def __init__(
        self,
        engine: Engine,
        where: str,
        watch: Watch | None = None,
        patience: float | None = None,
        lock_ms: int | None = None,
    ) -> None:
        """`watch` ends the connection of a transaction that takes longer than `patience`, in seconds.

        On a server a writer waits for another for at most `lock_ms`, or BUSY_TIMEOUT_MS.
        """
        self._engine = engine
        # Of a long series of queries none sees more than the first: a session that ends meanwhile would be
        # in some of them only. SQLite is like that by itself.
        isolated = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        self._reader = engine.execution_options(**isolated)
        self._writer = engine.execution_options(tidemark_writes=True, tidemark_lock_ms=lock_ms)
        self._watch, self._patience = watch, patience
        self._schema: int | None = None
        self.where = where

    def impatient(self, seconds: float, lock_ms: int | None = None) -> "Database":
        """Return the same database for transactions of at most so many seconds each; `lock_ms` is as above.

        A server that answers no more, without a word of the network, would otherwise be waited for for ever.
        """
        other = Database(self._engine, self.where, self._watch, seconds, lock_ms)
        other._schema = self._schema
        return other

    def require_schema(self, number: int) -> None:
        """From now on refuse to write when another program has migrated the history meanwhile."""
        self._schema = number

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._reader.dialect.name

    @property
    def is_shared(self) -> bool:
        """Whether it is on a server, where several boxes may write to it."""
        return self.dialect == "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that only reads, and does not block writers. All of it sees the same rows."""
        with explained(self.where), self._limited(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator["DatabaseSnapshot"]:
        """Yield the database as it is now, to be read in several transactions by one thread.

        Postgres cannot vacuum what is deleted meanwhile, and SQLite's write-ahead log grows.
        """
        with explained(self.where), self._reader.begin() as connection:
            yield DatabaseSnapshot(self._engine, self.where, connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction that is durable when the context ends, and rolled back when it raises.

        Writers are serialised in both databases, so that a writer may act on what it has read. Raises
        HistoryError when another writer does not end within BUSY_TIMEOUT_MS, and when the history has another
        schema than `require_schema` said.
        """
        with explained(self.where), self._limited(), self._writer.begin() as connection:
            if self._schema is not None:
                self._check_schema(connection, self._schema)
            yield connection

    @contextmanager
    def writing_later(self) -> Iterator[tuple[Connection, Callable[[], None]]]:
        """Begin a transaction that writes from the moment when its second value is called, as in `writing`.

        Until then it holds up nobody: it fills temporary tables, and must read nothing of the history.
        """
        with explained(self.where), self._limited(), self._engine.begin() as connection:

            def lock() -> None:
                if self.dialect == "sqlite":  # whose transaction gets the lock with its first statement
                    connection.exec_driver_sql("UPDATE schema_migrations SET number = number WHERE 0")
                else:
                    _take_turn(connection, BUSY_TIMEOUT_MS)
                if self._schema is not None:
                    self._check_schema(connection, self._schema)

            yield connection, lock

    def _limited(self) -> AbstractContextManager[None]:
        if self._watch is None or self._patience is None:
            return nullcontext()
        return self._watch.limited(self._patience)

    def _check_schema(self, connection: Connection, expected: int) -> None:
        # A statement of its own, behind the lock: whoever migrated before us is seen.
        query = "SELECT max(number) FROM schema_migrations"
        number = connection.exec_driver_sql(query).scalar()
        if number != expected:
            raise HistoryError(
                f"the history has schema {number} by now, and this Tidemark writes schema {expected}",
                where=self.where,
                hint="update this checkout; nothing was written",
            )

    @contextmanager
    def delivery_lock(self) -> Iterator[None]:
        """Hold the cross-host lock for issue delivery; other processes wait for it.

        Processes that share a SQLite file are on one host, but not always of one home: there the lock is a
        file beside the database. Raises LockError when that file cannot be opened, and HistoryError.
        """
        if self.dialect != "postgresql":
            with self._file_lock():
                yield
            return
        with explained(self.where), self._engine.connect() as connection:
            # The lock of a transaction, which a pooler in transaction mode keeps on one connection. It has
            # neither a snapshot nor an id, so that it holds up no vacuum while the tracker is slow.
            connection.exec_driver_sql(
                "SELECT set_config('lock_timeout', '0', true),"
                " set_config('idle_in_transaction_session_timeout', '0', true)"
            )
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_DELIVERING})")
            try:
                yield
            finally:
                connection.invalidate()  # closing the connection releases the lock, even if it is broken

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        if self.where == _IN_MEMORY:
            yield
            return
        # The real path, because two homes may reach the file through links of their own.
        file = Path(self.where).resolve()
        with held(file.with_name(f"{file.name}{DELIVERING}")):
            yield

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def forget_connections(self) -> None:
        """In a process that was forked: use none of the connections, which are still the parent's."""
        self._engine.dispose(close=False)


class DatabaseSnapshot(Database):
    """A database as it was at one moment, see `Database.snapshot`."""

    def __init__(self, engine: Engine, where: str, connection: Connection) -> None:
        super().__init__(engine, where)
        self._connection, self._is_forked, self._name = connection, False, ""
        if self.is_shared:
            # Whoever renders what it has read is idle for longer than a server may allow.
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            self._name = str(connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one())
        else:  # a transaction of SQLite begins with its first query
            connection.exec_driver_sql("SELECT max(number) FROM schema_migrations").all()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield the one transaction, or in a forked process one of its own.

        That sees the same on a server, and perhaps more in SQLite, which has no name for a snapshot.
        """
        if not self._is_forked:
            with explained(self.where):
                yield self._connection
            return
        with super().reading() as connection:
            if self._name:
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{self._name}'")
            yield connection

    def forget_connections(self) -> None:
        """In a process that was forked: use none of the connections, the snapshot's included."""
        super().forget_connections()
        self._is_forked = True


def plain_rows(connection: Connection, query: Select[Any]) -> Sequence[Any]:
    """Return the rows of a query as the driver's tuples, which takes half the time of SQLAlchemy's rows.

    Values are not converted; no column of the history needs it.
    """
    result = connection.execute(query)
    try:
        rows: Sequence[Any] = result.cursor.fetchall()
    except sqlite3.Error as error:  # a text that is not UTF-8, which SQLAlchemy does not see here
        raise DamagedTextError(str(error)[:200]) from error
    result.close()
    return rows


def connect(target: Path | str) -> Database:
    """Return the database at a path (SQLite) or an SQLAlchemy URL; create nothing but the path's folder."""
    url = _url(target)
    if url.get_backend_name() != "sqlite":
        engine = _engine(url)
        event.listen(engine, "connect", lambda new, _: configure_postgres(new, BUSY_TIMEOUT_MS))
        _write_in_turn(engine)
        return Database(engine, without_secrets(url.render_as_string()), Watch(engine))
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url)
    event.listen(engine, "connect", lambda *_: _share(Path(url.database or "")))
    event.listen(engine, "connect", _configure_sqlite)
    begin_explicitly(engine)
    return Database(engine, url.database or _IN_MEMORY)


def sqlite_file(target: Path | str) -> Path | None:
    """Return the SQLite file of a target if it exists and is not empty, else None."""
    url = _url(target)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    path = Path(url.database)
    return path if path.is_file() and path.stat().st_size else None


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn errors of the driver into a HistoryError with a hint."""
    try:
        yield
    except IntegrityError as error:
        raise RecordError(
            f"the record violates a constraint of the history: {error.orig}",
            where=where,
            hint="it exists already, or refers to a row that does not; nothing of it was written",
        ) from error
    except DBAPIError as error:
        raise database_error(str(error.orig), where) from error


def _url(target: Path | str) -> URL:
    if isinstance(target, Path) or "://" not in target:
        return URL.create("sqlite", database=str(target))
    try:
        url = make_url(target)
    except (ArgumentError, ValueError) as error:
        # Their words are not repeated: they may quote a password that they take for a port.
        raise HistoryError(
            f"'{target}' is not a database URL",
            hint="write postgresql+psycopg://user@host/name; a / in a password is %2F",
        ) from error
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise HistoryError(
            f"a history cannot be stored in {url.get_backend_name()}",
            hint="give the path of a SQLite file, or a URL such as postgresql+psycopg://host/name",
        )
    return url


def _engine(url: URL) -> Engine:
    try:
        # No column is an hstore, for which every connection would look in the catalogue.
        settings = {"use_native_hstore": False} if url.get_backend_name() == "postgresql" else {}
        return create_engine(url, connect_args=connection_defaults(url), **settings)
    except (ArgumentError, ImportError) as error:
        raise HistoryError(
            f"there is no driver for {url.drivername}",
            where=without_secrets(url.render_as_string()),
            hint="write postgresql+psycopg://host/name",
        ) from error


def _share(file: Path) -> None:
    """Let the group write a file of ours, and what SQLite has beside it, where it may write in the folder.

    SQLite makes files that only their owner may write, and those beside one with its mode.
    """
    with suppress(OSError):  # it is in memory, not there, or a link
        if not file.parent.stat().st_mode & GROUP_WRITES:
            return
        for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            # Only its path: closing a file that is open for reading would end SQLite's locks (fcntl(2)).
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(status.st_mode) | GROUP_WRITES)  # noqa: PTH101
            finally:
                os.close(descriptor)


def _configure_sqlite(connection: Any, _record: object) -> None:
    # synchronous=FULL: in WAL mode NORMAL may lose the last commits on power loss (sqlite.org/pragma.html).
    busy_timeout = f"busy_timeout = {BUSY_TIMEOUT_MS}"
    for pragma in (busy_timeout, "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def begin_explicitly(engine: Engine) -> None:
    """Let SQLAlchemy, not the sqlite3 module, begin transactions, so that they include DDL.

    By default sqlite3 begins a transaction late, and not before DDL: a failed migration would keep half its
    tables. A writer takes the write lock at BEGIN, because the upgrade of a read transaction can fail at
    once, without waiting (sqlite.org/rescode.html#busy_snapshot).
    """

    @event.listens_for(engine, "connect")
    def disable_implicit_begin(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tidemark_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_in_turn(engine: Engine) -> None:
    """Serialise writers, as SQLite does; one waits for a lock for BUSY_TIMEOUT_MS.

    Setting and lock are of the transaction: behind a pooler the next one has another connection.
    Otherwise two writers that do not see each other's rows could end the same session, or insert the same
    change twice: the server completes the last statement of a killed client while the next client begins.
    """

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("tidemark_writes", False):
            _take_turn(connection, options.get("tidemark_lock_ms") or BUSY_TIMEOUT_MS)


def _take_turn(connection: Connection, milliseconds: int) -> None:
    connection.exec_driver_sql(
        f"SELECT set_config('lock_timeout', '{milliseconds}', true), pg_advisory_xact_lock({_WRITING})"
    )
