"""Plans of statements, as a server's EXPLAIN prints them."""

from collections.abc import Callable, Sequence
from typing import Any

import pymysql

from build.engines import EngineRegistry
from build.errors import TidemarkError
from build.version import Engine
from suites.checking.queries import QueryError, connected
from suites.plans.trees import normalized
from suites.server import Address


class ExplainError(TidemarkError):
    """A server cannot explain a statement."""


def explain(address: Address, statements: Sequence[str]) -> str:
    """Return the plans of statements, a paragraph for each in alphabetical order. Raises ExplainError."""
    try:
        with connected(address) as connection:
            plans = _EXPLAIN[address.engine](connection, sorted(statements))
    except QueryError as error:
        raise ExplainError(f"the server cannot explain a statement: {error.what}") from error
    return "\n\n".join(map(normalized, plans))


def _postgres(connection: Any, statements: Sequence[str]) -> list[str]:
    return [
        "\n".join(str(line) for (line,) in connection.execute(f"EXPLAIN {text}".encode()))
        for text in statements
    ]


def _mysql(connection: Any, statements: Sequence[str]) -> list[str]:
    return [_tree(connection.cursor(), text) for text in statements]


def _mariadb(connection: Any, statements: Sequence[str]) -> list[str]:
    return [_tables(connection.cursor(), text) for text in statements]


def _tree(cursor: "pymysql.cursors.Cursor", text: str) -> str:
    """Return a plan as a tree, or in versions without one (before 8.0.16) its tables and keys."""
    try:
        cursor.execute(f"EXPLAIN FORMAT=TREE {text}")
        return "\n".join(str(row[0]) for row in cursor.fetchall())
    except pymysql.err.Error:
        return _tables(cursor, text)


def _tables(cursor: "pymysql.cursors.Cursor", text: str) -> str:
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


_EXPLAIN: EngineRegistry[Callable[[Any, Sequence[str]], list[str]]] = EngineRegistry(
    "explain",
    __name__,
    {Engine.POSTGRES: _postgres, Engine.MYSQL: _mysql, Engine.MARIADB: _mariadb},
)
