"""Many rows of a table in one statement."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, Float, LargeBinary, TableClause, insert, text

from history.store.schema import StoredText

_ARRAYS: Mapping[type, str] = {
    BigInteger: "bigint[]",
    Float: "double precision[]",
    LargeBinary: "bytea[]",
    StoredText: "text[]",
}
"""By the type of a column, that of an array of its values in Postgres."""


def insert_rows(connection: Connection, table: TableClause, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows, which have the same columns, and return their number.

    On Postgres each column is one array: a statement for each row would take ten times as long, most of it
    in this process.
    """
    if not rows:
        return 0
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), [dict(row) for row in rows])
        return len(rows)
    names = list(rows[0])
    arrays = ", ".join(f"CAST(:{name} AS {_ARRAYS[type(table.c[name].type)]})" for name in names)
    statement = text(f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})")
    connection.execute(statement, {name: [row[name] for row in rows] for name in names})
    return len(rows)
