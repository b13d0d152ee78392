"""A session of psycopg for long queries: statements, a limit of their time, and loading a table."""

from pathlib import Path

import psycopg

from suites.engine import Rows
from suites.postgres.connecting import connect
from suites.server import Address

CHUNK_BYTES = 1 << 20
"""How much of a table is sent at once."""

CONNECT_SECONDS = 60
"""How long a server that works for other streams may take to accept a connection."""

DONE = (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)
"""What Postgres says of a statement that has succeeded."""


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


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
