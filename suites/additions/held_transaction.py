"""A transaction with a snapshot that is open beside a load, as a forgotten session or a long report is."""

import contextlib
from collections.abc import Iterator

from suites.checking.queries import connected
from suites.engines import engine_of
from suites.server import Server


@contextlib.contextmanager
def held_transaction(server: Server) -> Iterator[None]:
    """Hold a transaction open in the block. Raises QueryError if the server refuses it.

    When the block ends the connection is closed, which rolls it back; a server that has died meanwhile is the
    business of others.
    """
    with connected(server.address) as connection:
        cursor = connection.cursor()
        for statement in engine_of(server.build.version.engine).held_transaction:
            cursor.execute(statement)
        yield
