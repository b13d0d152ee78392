"""Queries over a connection of one's own, with the client library of the engine."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pymysql

from build.engines import EngineRegistry
from build.errors import TidemarkError
from build.version import Engine
from suites.postgres.connecting import connect
from suites.server import Address

PATIENCE_SECONDS = 2 * 3600
"""The longest that one query may take."""


class QueryError(TidemarkError):
    """A server does not answer a query."""


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Any]:
    """Yield a connection (DB-API 2.0, PEP 249) in autocommit mode. Raises QueryError for what fails on it."""
    try:
        with contextlib.closing(_CONNECT[address.engine](address)) as connection:
            yield connection
    except (psycopg.Error, pymysql.err.Error) as error:
        raise QueryError(f"the server does not answer: {str(error).strip()}") from error


def _postgres(address: Address) -> Any:
    return connect(address, options=f"-c statement_timeout={PATIENCE_SECONDS}s")


def _mysql(address: Address) -> Any:
    return pymysql.connect(
        unix_socket=str(address.socket),
        user=address.user,
        password=address.password,
        database=address.database,
        autocommit=True,
        read_timeout=PATIENCE_SECONDS,
    )


_CONNECT: EngineRegistry[Callable[[Address], Any]] = EngineRegistry(
    "connection",
    __name__,
    {Engine.POSTGRES: _postgres, Engine.MYSQL: _mysql, Engine.MARIADB: _mysql},
)
