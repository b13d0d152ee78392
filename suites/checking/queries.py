"""Queries over a connection of one's own, with the client library of the engine."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pymysql

from build.errors import TidemarkError
from suites.engines import engine_of
from suites.server import Address


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
