"""A transaction with a snapshot that is open beside a load, as a forgotten session or a long report is."""

import contextlib
from collections.abc import Iterator, Sequence

from build.engines import EngineRegistry
from build.version import Engine
from suites.checking.queries import connected
from suites.server import Server

_POSTGRES = ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
"""The snapshot is that of the first query."""

_INNODB = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
)

STATEMENTS: EngineRegistry[Sequence[str]] = EngineRegistry(
    "held transaction",
    __name__,
    {Engine.POSTGRES: _POSTGRES, Engine.MYSQL: _INNODB, Engine.MARIADB: _INNODB},
)
"""The statements that open a transaction from whose snapshot on no old row version is removed."""


@contextlib.contextmanager
def held_transaction(server: Server) -> Iterator[None]:
    """Hold a transaction open in the block. Raises QueryError if the server refuses it.

    When the block ends the connection is closed, which rolls it back; a server that has died meanwhile is the
    business of others.
    """
    with connected(server.address) as connection:
        cursor = connection.cursor()
        for statement in STATEMENTS[server.build.version.engine]:
            cursor.execute(statement)
        yield
