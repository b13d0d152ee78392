"""Digests of the rows of tables, by which two servers are known to hold the same data."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from build.engines import EngineRegistry
from build.version import Engine
from suites.checking.queries import connected
from suites.server import Address

_DIGITS = 15
"""Hexadecimal digits of a row's hash that are summed up: they fit into the integers of every engine."""


@dataclass(frozen=True)
class TableDigest:
    """The rows of one table: their number, and the sum of a digest of each, in which order does not count."""

    rows: int
    content: int


@dataclass(frozen=True)
class Digests:
    """The tables of a database. Equal digests mean equal rows, with a chance of error below 2**-40."""

    tables: Mapping[str, TableDigest]
    seconds: float
    """How long it took to read them."""

    indexes: Mapping[str, int] = field(default_factory=dict)
    """Index, with its table -> the rows that it leads to."""

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables.values())

    def differs_from(self, other: "Digests") -> tuple[str, ...]:
        """Return how the tables differ from those of `other`, in words, by name; nothing if all are equal."""
        names = sorted({*self.tables, *other.tables})
        tables = tuple(
            _difference(name, self.tables.get(name), other.tables.get(name))
            for name in names
            if self.tables.get(name) != other.tables.get(name)
        )
        # Where rows differ, so do those that an index leads to.
        return tables or tuple(
            f"index {name} leads to {self.indexes[name]} rows instead of {other.indexes[name]}"
            for name in sorted(self.indexes.keys() & other.indexes.keys())
            if self.indexes[name] != other.indexes[name]
        )


def _difference(name: str, mine: TableDigest | None, theirs: TableDigest | None) -> str:
    if mine is None or theirs is None:
        return f"{name} is {'missing' if mine is None else 'additional'}"
    if mine.rows != theirs.rows:
        return f"{name} has {mine.rows} rows instead of {theirs.rows}"
    return f"{name} has {mine.rows} rows with other content"


def digests(address: Address) -> Digests:
    """Return the digests of all tables of a database that outlive a crash, with the rows of their indexes.

    Columns of a time are left out, because the clock fills them. Raises QueryError.
    """
    began = time.monotonic()
    tables_of, indexes_of = _OF_ENGINE[address.engine]
    with connected(address.of_admin) as connection, connection.cursor() as cursor:
        tables, indexes = dict(tables_of(cursor)), dict(indexes_of(cursor))
    return Digests(tables, time.monotonic() - began, indexes)


def _of_postgres(cursor: Any) -> Iterator[tuple[str, TableDigest]]:
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
        number = f"('x' || left(md5({row}), {_DIGITS}))::bit({4 * _DIGITS})::bigint"
        cursor.execute(f"SELECT count(*), coalesce(sum({number}), 0) FROM ONLY {table} t")
        yield table, _digest(cursor)


def _indexes_of_postgres(cursor: Any) -> Iterator[tuple[str, int]]:
    cursor.execute(
        """
        SELECT i.indexrelid::regclass::text, c.oid::regclass::text, 't.' || quote_ident(a.attname)
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
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


def _of_innodb(cursor: Any) -> Iterator[tuple[str, TableDigest]]:
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
        # Without MD5, which MySQL has no more as a function of its own.
        number = f"CAST(CONV(LEFT(SHA2({row}, 256), {_DIGITS}), 16, 10) AS UNSIGNED)"
        name = table.replace("`", "``")
        cursor.execute(f"SELECT COUNT(*), COALESCE(SUM({number}), 0) FROM `{name}`")
        yield table, _digest(cursor)


def _indexes_of_innodb(cursor: Any) -> Iterator[tuple[str, int]]:
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


def _digest(cursor: Any) -> TableDigest:
    rows, content = cursor.fetchone()
    return TableDigest(int(rows), int(content))


_Reads = tuple[
    Callable[[Any], Iterator[tuple[str, TableDigest]]],
    Callable[[Any], Iterator[tuple[str, int]]],
]
"""What reads the tables of a database, and what counts rows through its indexes."""

_OF_ENGINE: EngineRegistry[_Reads] = EngineRegistry(
    "digest of a table",
    __name__,
    {
        Engine.POSTGRES: (_of_postgres, _indexes_of_postgres),
        Engine.MYSQL: (_of_innodb, _indexes_of_innodb),
        Engine.MARIADB: (_of_innodb, _indexes_of_innodb),
    },
)
