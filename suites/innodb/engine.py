"""What MySQL and MariaDB are alike as engines."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pymysql
from pymysql.cursors import SSCursor

from build.accounts import server_account
from build.files import open_checked
from suites.engine import (
    DIGEST_DIGITS,
    PATIENCE_SECONDS,
    Connect,
    DatabaseEngine,
    DataExtent,
    QuerySession,
    Rows,
    RowsError,
    SetupClient,
    SysbenchDriver,
    TableDigest,
    deepest,
    digest_of,
)
from suites.innodb import configuration
from suites.innodb.server import InnodbServer
from suites.processes import ProcessError, run
from suites.server import SETUP_SECONDS, Address, SetupError


def connect(address: Address, **options: Any) -> Any:
    """Return a connection of PyMySQL in autocommit mode, with further `options` of its.

    Raises pymysql.err.Error.
    """
    told = {"read_timeout": PATIENCE_SECONDS, "autocommit": True, **options}
    return pymysql.connect(
        unix_socket=str(address.socket),
        user=address.user,
        password=address.password,
        database=address.database,
        **told,
    )


SESSION_SECONDS = 60
"""How long a server that works for other streams may take to accept a connection."""


class InnodbSession:
    """A session of PyMySQL."""

    limit = "SET SESSION max_execution_time = {milliseconds:.0f}"
    """The statement that limits the time of later ones."""

    def __init__(self, address: Address) -> None:
        self._address = address
        # Values as the texts that the server sends. No limit but that of the server.
        self._connection = connect(
            address, local_infile=True, connect_timeout=SESSION_SECONDS, read_timeout=None, conv={}
        )

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            rows: Rows = cursor.fetchall()
            return rows

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


_ERROR = re.compile(r"^ERROR (?:\d+ \(\w+\) )?at line (?P<line>\d+): (?P<said>.+)$", re.M)
_LINE_OF_STATEMENT = re.compile(r" at line \d+$")
"""How a syntax error ends: the line within the statement, which is none of the file."""


def variables(address: Address) -> dict[str, str]:
    """Return the variables that tell a program of the server of an address.

    The client library reads MYSQL_UNIX_PORT and MYSQL_PWD by itself; the program has to pass on the others.
    """
    return {
        "MYSQL_UNIX_PORT": str(address.socket),
        "MYSQL_USER": address.user,
        "MYSQL_DATABASE": address.database,
        **address.password_variables,
    }


@contextlib.contextmanager
def with_all_rights(address: Address) -> Iterator[Address]:
    """Return a context with the address of root; then let clients use each database that there is.

    Raises pymysql.err.Error.
    """
    yield address.of_admin
    with connect(address.of_admin) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT schema_name, user, host FROM information_schema.schemata, mysql.user WHERE user = %s"
            " AND schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')",
            [address.user],
        )
        for database, user, host in cursor.fetchall():
            name = str(database).replace("`", "``")
            cursor.execute(f"GRANT ALL ON `{name}`.* TO '{user}'@'{host}'")


def run_file(client: Path, address: Address, folder: Path, name: str) -> None:
    """Run the SQL file `name` in `folder` up to its first error, with that folder as the current one.

    It may be what mysqldump writes. Raises SetupError with file, line and the server's sentence.
    """
    try:
        with (folder / name).open("rb") as file:
            run(
                [
                    *(client, "--no-defaults", "--batch", "--default-character-set=utf8mb4"),
                    *("--local-infile=1", f"--socket={address.socket}", f"--user={address.user}"),
                    address.database,
                ],
                what=name,
                cwd=folder,
                env=address.password_variables,
                seconds=SETUP_SECONDS,
                stdin=file,
                account=server_account(),
            )
    except ProcessError as error:
        match = _ERROR.search(error.what)
        if match is None:
            raise
        raise SetupError(
            f"{name}, line {match['line']}: {_LINE_OF_STATEMENT.sub('', match['said'])}",
            where=str(folder / name),
            hint="look at the statement that begins at this line",
        ) from error


CONNECT_SECONDS, ANSWER_SECONDS = 10, 60
"""The longest that a server may take to let a client in, and to answer it."""

PAGE_LEVEL = 64
"""The byte of an index's root page at which its level begins, in 2 bytes, the high one first: PAGE_LEVEL of
page0types.h in the page header, which begins at byte 38. A root that is a leaf has level 0."""

PAGE_TYPE, INDEX_PAGE = 24, (17855).to_bytes(2, "big")
"""Where InnoDB's type of a page is, and that of an index (FIL_PAGE_INDEX)."""


def setup_client(program: str) -> SetupClient:
    """Return the command line client of this name."""
    return SetupClient(program, run_file, variables, with_all_rights)


def _options(address: Address) -> dict[str, object]:
    place: dict[str, object] = {"socket": address.socket}
    if address.host:
        place = {"host": address.host, "port": address.port}
    tls = {} if address.tls is None else {"ssl": "on"}
    return {**place, **tls, "user": address.user, "db": address.database}


class InnodbEngine(DatabaseEngine):
    """MySQL or MariaDB."""

    server: ClassVar[type[InnodbServer]]
    session_class: ClassVar[type[InnodbSession]] = InnodbSession

    # Both speak the same protocol, and Debian links this driver with MariaDB's own client library.
    driver = SysbenchDriver("mysql", _options, reads_certificate=True)
    table_names = "SHOW TABLES"
    held_transaction = (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    )

    def writes_directly(self, settings: Mapping[str, str]) -> bool:
        """Return whether innodb_flush_method is one of the direct ones."""
        return configuration.writes_directly(settings)

    def connect(self, address: Address) -> Any:
        """Return a connection of PyMySQL."""
        return connect(address)

    def connector(self, address: Address) -> Connect:
        """Return a connect through the Unix socket, whatever transport clients use."""

        limits = {"connect_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}

        def once() -> None:
            try:
                with (
                    connect(address, autocommit=False, **limits) as connection,
                    connection.cursor() as cursor,
                ):
                    cursor.execute("SELECT 1")
            except pymysql.err.Error as error:
                raise ConnectionError(str(error)) from error

        return once

    def session(self, address: Address) -> QuerySession:
        """Return a session of PyMySQL."""
        return self.session_class(address)

    def explain(self, connection: Any, statements: Sequence[str]) -> list[str]:
        """Return the tables of each plan, with keys and expected rows."""
        return [explained_tables(connection.cursor(), text) for text in statements]

    def table_digests(self, cursor: Any) -> Iterator[tuple[str, TableDigest]]:
        """Yield the digests by SHA-256, because MySQL has no MD5 as a function of its own any more."""
        cursor.execute("SET SESSION group_concat_max_len = 1000000")
        cursor.execute(
            """
            SELECT t.table_name, GROUP_CONCAT(
                CONCAT('IFNULL(HEX(CONCAT(`', REPLACE(c.column_name, '`', '``'), '`)), ''N'')')
                ORDER BY c.ordinal_position)
            FROM information_schema.tables t LEFT JOIN information_schema.columns c
                ON c.table_schema = t.table_schema AND c.table_name = t.table_name
                AND c.data_type NOT IN ('date', 'time', 'datetime', 'timestamp', 'year')
            WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE'
            GROUP BY t.table_name ORDER BY t.table_name
            """
        )
        for table, columns in cursor.fetchall():
            row = f"CONCAT_WS(',', {columns})" if columns else "''"
            number = f"CAST(CONV(LEFT(SHA2({row}, 256), {DIGEST_DIGITS}), 16, 10) AS UNSIGNED)"
            name = table.replace("`", "``")
            cursor.execute(f"SELECT COUNT(*), COALESCE(SUM({number}), 0) FROM `{name}`")
            yield table, digest_of(cursor)

    def index_rows(self, cursor: Any) -> Iterator[tuple[str, int]]:
        """Yield the rows that each B-tree leads to, which the query is forced to read."""
        cursor.execute(
            """
            SELECT DISTINCT table_name, index_name FROM information_schema.statistics
            WHERE table_schema = DATABASE() AND index_type = 'BTREE' ORDER BY table_name, index_name
            """
        )
        for names in cursor.fetchall():
            table, index = (name.replace("`", "``") for name in names)
            # COUNT(*) alone may read another index than the one that is forced.
            cursor.execute(f"SELECT COALESCE(SUM(1), 0) FROM `{table}` FORCE INDEX (`{index}`)")
            yield f"{names[1]} of {names[0]}", int(cursor.fetchone()[0])

    def extent(self, cursor: Any) -> DataExtent:
        """Return the statistics of InnoDB, and the levels that the root pages in its files say."""
        cursor.execute(
            """
            SELECT COALESCE(SUM(n_rows), 0),
                COALESCE(SUM(clustered_index_size + sum_of_other_index_sizes), 0) * @@innodb_page_size,
                @@innodb_buffer_pool_size, @@innodb_page_size, @@datadir
            FROM mysql.innodb_table_stats WHERE database_name = DATABASE()
            """
        )
        rows, size, cache, page, folder = cursor.fetchone()
        levels = _root_levels(cursor, Path(str(folder)), int(page))
        return DataExtent(int(rows), int(size), deepest([*levels]), int(cache))


def _root_levels(cursor: Any, folder: Path, page_bytes: int) -> Iterator[int]:
    """Yield the level of the root page of each index whose file can be read."""
    # MariaDB, and MySQL before 8.0, have SYS in the names of these tables.
    cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema'"
        " AND table_name IN ('INNODB_INDEXES', 'INNODB_SYS_INDEXES')"
    )
    for (indexes,) in cursor.fetchall():
        tables = str(indexes).replace("INDEXES", "TABLES")
        cursor.execute(
            f"SELECT t.name, i.page_no FROM information_schema.{indexes} i"
            f" JOIN information_schema.{tables} t ON t.table_id = i.table_id"
            " WHERE t.name LIKE CONCAT(DATABASE(), '/%')"
        )
        for name, number in cursor.fetchall():
            level = _root_level(folder / f"{name}.ibd", int(number) * page_bytes)
            if level is not None:
                yield level


def _root_level(file: Path, page: int) -> int | None:
    """Return the level of the page that begins at byte `page` of a file; None if it is no page of an
    index."""
    try:
        descriptor = open_checked(file)
    except OSError:
        return None
    try:
        header = os.pread(descriptor, PAGE_LEVEL + 2, page)
    finally:
        os.close(descriptor)
    is_index = header[PAGE_TYPE : PAGE_TYPE + 2] == INDEX_PAGE
    return int.from_bytes(header[PAGE_LEVEL : PAGE_LEVEL + 2], "big") if is_index else None


def explained_tables(cursor: "pymysql.cursors.Cursor", text: str) -> str:
    """Return the tables of a plan, with the keys by which they are read and the rows that are expected."""
    cursor.execute(f"EXPLAIN {text}")
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return "\n".join(map(_table_line, rows))


def _table_line(row: dict[str, Any]) -> str:
    # One line for each table, so that a text of the server's must not break it.
    extra = " ".join(str(row["Extra"]).split())
    expected = "" if row["rows"] is None else f" (rows={row['rows']})"
    return f"{row['table']}: {row['type']} by {row['key']}{f'; {extra}' if extra else ''}{expected}"
