"""One connection of the client to a server: statements, a limit of their time, and loading a table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import psycopg
import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from build.engines import EngineRegistry
from build.version import Engine
from suites.postgres.connecting import connect
from suites.server import Address

CHUNK_BYTES = 1 << 20
"""How much of a table is sent to Postgres at once."""

CONNECT_SECONDS = 60
"""How long a server that works for other streams may take to accept a connection."""

DONE = (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)
"""What Postgres says of a statement that has succeeded."""

Rows = Sequence[Sequence[str | None]]
"""Values as the texts that the server sends."""

ERRORS = (psycopg.Error, pymysql.err.Error)
"""What a statement raises in any session."""


def is_limit(error: Exception) -> bool:
    """Return whether an error of ERRORS is that a server has ended a statement at its limit."""
    if isinstance(error, pymysql.err.Error):
        return error.args[0] in (ER.QUERY_TIMEOUT, ER.STATEMENT_TIMEOUT)
    return isinstance(error, psycopg.errors.QueryCanceled)


class RowsError(Exception):
    """A table does not take its rows; the text says why."""


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


class QuerySession(Protocol):
    """A connection in which statements take effect at once, unless a transaction is begun."""

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows. Raises one of ERRORS."""

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive all its rows, but do not read them. Raises one of ERRORS."""

    def set_limit(self, seconds: float) -> None:
        """Ask the server to end every later statement after so many seconds; MySQL ends queries alone."""

    def fill(self, table: str, rows: Path) -> None:
        """Load a table from a file of CSV with a header. Raises one of ERRORS, OSError, or RowsError."""

    def prepare_load(self) -> None:
        """Do what comes before the tables are created."""

    def close(self) -> None:
        """Close the connection."""


class PostgresSession:
    """A session of psycopg."""

    def __init__(self, address: Address) -> None:
        self._connection = connect(address, connect_timeout=CONNECT_SECONDS)

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows."""
        result = self._done(text)
        columns = range(result.nfields)
        return [[_text(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive its rows."""
        self._done(text)

    def _done(self, text: str) -> psycopg.pq.abc.PGresult:
        """Carry one statement out with the simple protocol, so that it is planned each time.

        A cursor of psycopg would do the same, and take longer than everything else that the client does.
        """
        result = self._connection.pgconn.exec_(text.encode())
        if result.status not in DONE:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        return result

    def set_limit(self, seconds: float) -> None:
        """Set statement_timeout, in milliseconds."""
        self.execute(f"SET statement_timeout = {max(1, round(seconds * 1000))}")

    def fill(self, table: str, rows: Path) -> None:
        """Load a table with COPY, in one transaction."""
        with (
            rows.open("rb") as lines,
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)".encode()) as copy,
        ):
            while chunk := lines.read(CHUNK_BYTES):
                copy.write(chunk)

    def prepare_load(self) -> None:
        """Do nothing: the database has the C locale."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class InnodbSession:
    """A session of PyMySQL."""

    limit = "SET SESSION max_execution_time = {milliseconds:.0f}"
    """The statement that limits the time of later ones."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection = pymysql.connect(
            unix_socket=str(address.socket),
            user=address.user,
            password=address.password,
            database=address.database,
            autocommit=True,
            local_infile=True,
            connect_timeout=CONNECT_SECONDS,
            conv={},  # values as the texts that the server sends
        )

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall()

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive its rows, without the time that PyMySQL takes to read them."""
        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(text)

    def set_limit(self, seconds: float) -> None:
        """Set the server's own limit."""
        self.execute(self.limit.format(seconds=seconds, milliseconds=max(1, seconds * 1000)))

    def fill(self, table: str, rows: Path) -> None:
        """Load a table with LOAD DATA."""
        self.execute(
            f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE {table} FIELDS TERMINATED BY ',' "
            "OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' IGNORE 1 LINES"
        )
        # With LOCAL, rows that do not fit are changed or left out, with a warning each.
        for _, _, text in self.execute("SHOW WARNINGS LIMIT 1"):
            raise RowsError(f"{table} does not take its rows: {text}")

    def prepare_load(self) -> None:
        """Compare bytes, as the other engine's C locale does, and keep the load out of the binary log."""
        self.execute(f"ALTER DATABASE {self._address.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self.execute("SET sql_log_bin = 0")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class MariadbSession(InnodbSession):
    """MariaDB's max_statement_time holds for every statement; MySQL's max_execution_time for SELECT alone."""

    limit = "SET SESSION max_statement_time = {seconds:.3f}"


SESSIONS: EngineRegistry[Callable[[Address], QuerySession]] = EngineRegistry(
    "session of long queries",
    __name__,
    {Engine.POSTGRES: PostgresSession, Engine.MYSQL: InnodbSession, Engine.MARIADB: MariadbSession},
)
"""The class of the session with a server of each engine."""
