"""Indexes that a variant adds to the loaded tables, such as `sbtest*(id) INCLUDE (c, pad)`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from build.errors import TidemarkError
from suites.checking.queries import QueryError, connected
from suites.engines import engine_of
from suites.server import Address

MAX_LENGTH = 300
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
    match = _INDEX.fullmatch(text) if len(text) <= MAX_LENGTH and text.isprintable() else None
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
    try:
        with connected(address.of_admin) as connection:
            cursor = connection.cursor()
            cursor.execute(engine_of(address.engine).table_names)
            tables = sorted(str(row[0]) for row in cursor.fetchall())
            for number, text in enumerate(indexes):
                for statement in _statements(number, text, tables):
                    cursor.execute(statement)
    except QueryError as error:
        raise ExtraIndexError(f"the server cannot create an index: {error.what}", where="--index") from error


def _statements(number: int, text: str, tables: Sequence[str]) -> list[str]:
    index = parse_index(text)
    chosen = [table for table in tables if fnmatchcase(table, index.tables)]
    if not chosen:
        raise ExtraIndexError(
            f"no table is called {index.tables}", where="--index", hint=f"the tables are: {', '.join(tables)}"
        )
    return [f"CREATE INDEX tidemark_{number}_{table} ON {table} {index.columns}" for table in chosen]
