"""What is read of loaded data over a connection of one's own: rows, digests, sizes."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pymysql

from build.errors import TidemarkError
from suites.engine import DataExtent, TableDigest
from suites.engines import engine_of
from suites.plans.trees import normalized
from suites.server import Address


def data_extent(address: Address) -> DataExtent:
    """Return how large the data of a database are. Raises QueryError.

    The depth of indexes is read from their files, and is that of the last checkpoint.
    """
    with connected(address.of_admin) as connection, connection.cursor() as cursor:
        return engine_of(address.engine).extent(cursor)


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
    engine = engine_of(address.engine)
    with connected(address.of_admin) as connection, connection.cursor() as cursor:
        tables, indexes = dict(engine.table_digests(cursor)), dict(engine.index_rows(cursor))
    return Digests(tables, time.monotonic() - began, indexes)


class QueryError(TidemarkError):
    """A server does not answer a query."""


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Any]:
    """Yield a connection (DB-API 2.0, PEP 249) in autocommit mode. Raises QueryError for what fails on it."""
    try:
        with contextlib.closing(engine_of(address.engine).connect(address)) as connection:
            yield connection
    except (psycopg.Error, pymysql.err.Error) as error:
        raise QueryError(f"the server does not answer: {str(error).strip()}") from error


class ExplainError(TidemarkError):
    """A server cannot explain a statement."""


def explain(address: Address, statements: Sequence[str]) -> str:
    """Return the plans of statements, a paragraph for each in alphabetical order. Raises ExplainError."""
    try:
        with connected(address) as connection:
            plans = engine_of(address.engine).explain(connection, sorted(statements))
    except QueryError as error:
        raise ExplainError(f"the server cannot explain a statement: {error.what}") from error
    return "\n\n".join(map(normalized, plans))
