"""Indexes that a variant adds to the loaded tables, such as `sbtest*(id) INCLUDE (c, pad)`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import psycopg
import pymysql

from build.engines import EngineRegistry
from build.errors import TidemarkError
from build.version import Engine
from suites.server import Address, postgres_port

MOST_LENGTH = 300
"""Characters of the description of an index."""

_INDEX = re.compile(r"([a-z_*][a-z0-9_*]{0,62})(\([^;]*\)[^;]*)", re.ASCII)


class ExtraIndexError(TidemarkError):
    """The description of an index is not well-formed, or fits no table."""


@dataclass(frozen=True)
class ExtraIndex:
    """An index on every table whose name fits `tables`."""

    tables: str
    """A name in which * stands for any characters."""

    columns: str
    """What CREATE INDEX takes behind the table, from the parenthesis on."""


def parse_index(text: str) -> ExtraIndex:
    """Return the index that a text like `sbtest*(c)` describes. Raises ExtraIndexError."""
    match = _INDEX.fullmatch(text) if len(text) <= MOST_LENGTH and text.isprintable() else None
    if match is None:
        raise ExtraIndexError(
            f"'{text[:80]}' describes no index",
            where="--index",
            hint="write tables and columns, such as 'sbtest*(id) INCLUDE (c, pad)'",
        )
    return ExtraIndex(match[1], match[2])


def create_indexes(address: Address, indexes: Sequence[str]) -> None:
    """Create the indexes in the order of their descriptions. Raises ExtraIndexError."""
    if not indexes:
        return
    database = _DATABASES[address.engine]
    try:
        tables = sorted(str(row[0]) for row in database.ask(address, [database.tables])[0])
        for number, text in enumerate(indexes):
            database.ask(address, _statements(number, text, tables))
    except (psycopg.Error, pymysql.err.Error) as error:
        reason = str(error).strip()
        raise ExtraIndexError(f"the server cannot create an index: {reason}", where="--index") from error


def _statements(number: int, text: str, tables: Sequence[str]) -> list[str]:
    index = parse_index(text)
    chosen = [table for table in tables if fnmatchcase(table, index.tables)]
    if not chosen:
        raise ExtraIndexError(
            f"no table is called {index.tables}", where="--index", hint=f"the tables are: {', '.join(tables)}"
        )
    return [f"CREATE INDEX tidemark_{number}_{table} ON {table} {index.columns}" for table in chosen]


Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class _Database:
    """How statements are executed on an engine."""

    tables: str
    """The query for the names of all tables."""

    ask: Callable[[Address, Sequence[str]], list[Rows]]
    """Executes statements, and returns the rows of each."""


def _postgres(address: Address, statements: Sequence[str]) -> list[Rows]:
    with psycopg.connect(
        host=str(address.socket.parent),
        port=postgres_port(address.socket),
        user=address.user,
        dbname=address.database,
        autocommit=True,
    ) as connection:
        cursors = [connection.execute(statement.encode()) for statement in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _innodb(address: Address, statements: Sequence[str]) -> list[Rows]:
    found: list[Rows] = []
    with (
        pymysql.connect(
            unix_socket=str(address.socket),
            user=address.user,
            password=address.password,
            database=address.database,
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statement in statements:
            cursor.execute(statement)
            found.append(list(cursor.fetchall()))
    return found


_INNODB = _Database("SHOW TABLES", _innodb)

_DATABASES = EngineRegistry(
    "way to execute statements",
    __name__,
    {
        Engine.POSTGRES: _Database("SELECT relname FROM pg_stat_user_tables", _postgres),
        Engine.MYSQL: _INNODB,
        Engine.MARIADB: _INNODB,
    },
)
