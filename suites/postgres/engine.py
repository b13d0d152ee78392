"""Postgres as an engine."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from suites.engine import (
    DIGEST_DIGITS,
    PATIENCE_SECONDS,
    Connect,
    DatabaseEngine,
    DataExtent,
    Leftover,
    QuerySession,
    Rows,
    SetupClient,
    SysbenchDriver,
    TableDigest,
    deepest,
    digest_of,
)
from suites.postgres import configuration, setup_file, shared_memory
from suites.postgres.connecting import client_database, client_place, client_words, connect, told_of
from suites.postgres.server import SOCKET, PostgresServer
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


ANSWER_SECONDS = 60
"""The longest that a server may take to let a client in and answer."""

META_LEVEL = 36
"""The byte of a B-tree's first page at which the level of its root begins, in 4 bytes: the field btm_level of
BTMetaPageData (nbtree.h), behind a page header of 24 bytes. A root that is a leaf has level 0."""

_OWN = """
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""


def _options(address: Address) -> dict[str, object]:
    host, port = client_place(address)
    return {"host": host, "port": port, "user": address.user, "db": client_database(address)}


class Postgres(DatabaseEngine):
    """Postgres."""

    server = PostgresServer
    socket = SOCKET
    driver = SysbenchDriver("pgsql", _options)
    setup = SetupClient(
        "psql",
        setup_file.run_file,
        setup_file.variables,
        setup_file.with_all_rights,
        setup_file.restore,
        setup_file.advice,
        setup_file.trial_copy,
    )
    table_names = "SELECT relname FROM pg_stat_user_tables"
    # The snapshot is that of the first query.
    held_transaction = ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")

    def writes_directly(self, settings: Mapping[str, str]) -> bool:
        """Return whether debug_io_direct has data in it."""
        return configuration.writes_directly(settings)

    def leftovers(self, data: Path) -> Sequence[Leftover]:
        """Return shared memory."""
        return shared_memory.of_postmaster(data)

    def connect(self, address: Address) -> Any:
        """Return a connection of psycopg."""
        return connect(address, options=f"-c statement_timeout={PATIENCE_SECONDS}s")

    def connector(self, address: Address) -> Connect:
        """Return a connect by libpq itself, through the transport of clients."""
        host, port = client_place(address)
        options = f"-c statement_timeout={ANSWER_SECONDS}s"
        told = {
            **told_of(address),
            **client_words(address),
            "host": host,
            "port": str(port),
            "options": options,
        }
        conninfo = make_conninfo("", **told).encode()

        def connect() -> None:
            connection = pq.PGconn.connect(conninfo)
            try:
                if connection.status != pq.ConnStatus.OK:
                    raise ConnectionError(connection.error_message.decode(errors="replace").strip())
                result = connection.exec_(b"SELECT 1")
                if result.status != pq.ExecStatus.TUPLES_OK:
                    raise ConnectionError(result.error_message.decode(errors="replace").strip())
            finally:
                connection.finish()

        return connect

    def session(self, address: Address) -> QuerySession:
        """Return a session of psycopg."""
        return PostgresSession(address)

    def explain(self, connection: Any, statements: Sequence[str]) -> list[str]:
        """Return what EXPLAIN prints, a line a row."""
        return [
            "\n".join(str(line) for (line,) in connection.execute(f"EXPLAIN {text}".encode()))
            for text in statements
        ]

    def table_digests(self, cursor: Any) -> Iterator[tuple[str, TableDigest]]:
        """Yield the digests by MD5 of the text of each row."""
        cursor.execute(
            """
            SELECT c.oid::regclass::text, string_agg('t.' || quote_ident(a.attname), ', ' ORDER BY a.attnum)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND a.atttypid::regtype::text NOT LIKE 'time%' AND a.atttypid::regtype::text <> 'date'
            WHERE c.relkind = 'r' AND c.relpersistence = 'p'
                AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
            GROUP BY c.oid ORDER BY 1
            """
        )
        for table, columns in cursor.fetchall():
            row = f"ROW({columns})::text" if columns else "''"
            number = f"('x' || left(md5({row}), {DIGEST_DIGITS}))::bit({4 * DIGEST_DIGITS})::bigint"
            cursor.execute(f"SELECT count(*), coalesce(sum({number}), 0) FROM ONLY {table} t")
            yield table, digest_of(cursor)

    def index_rows(self, cursor: Any) -> Iterator[tuple[str, int]]:
        """Yield the rows that each B-tree leads to, by plans that can use nothing else."""
        cursor.execute(
            """
            SELECT i.indexrelid::regclass::text, c.oid::regclass::text, 't.' || quote_ident(a.attname)
            FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam AND m.amname = 'btree'
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
            WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND i.indisvalid AND i.indpred IS NULL
                AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
            ORDER BY 1
            """
        )
        found = cursor.fetchall()
        # Then only an index that begins with the column gives its order.
        for method in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET enable_{method} = off")
        for index, table, column in found:
            ordered = f"SELECT {column} FROM ONLY {table} t ORDER BY {column} OFFSET 0"
            cursor.execute(f"SELECT count(*) FROM ({ordered}) s")
            yield f"{index} of {table}", int(cursor.fetchone()[0])

    def extent(self, cursor: Any) -> DataExtent:
        """Return the estimates of the last VACUUM, and the levels that the meta pages of B-trees say."""
        cursor.execute(
            f"""
            SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint,
                coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
                pg_size_bytes(current_setting('shared_buffers'))
            {_OWN} AND c.relkind IN ('r', 'm')
            """
        )
        rows, size, cache = cursor.fetchone()
        cursor.execute(
            f"""
            SELECT pg_read_binary_file(pg_relation_filepath(c.oid), {META_LEVEL}, 4, true)
            {_OWN} AND c.relkind = 'i' AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
            """
        )
        levels = [int.from_bytes(level, sys.byteorder) for (level,) in cursor.fetchall() if level]
        return DataExtent(int(rows), int(size), deepest(levels), int(cache))
