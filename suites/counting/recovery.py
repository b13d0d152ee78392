"""What a server holds after a crash at the end of a counted pass: the work that it acknowledged, or less."""

import time
from dataclasses import dataclass

from build.errors import TidemarkError
from suites.checking.queries import connected
from suites.checking.table_digests import Digests, digests
from suites.counting.engines import COUNTED
from suites.server import Server


@dataclass(frozen=True)
class Recovered:
    """A server that was ended without warning, and started again without callgrind."""

    seconds: float | None
    """From its start until it accepted connections, recovery included; None if it did not come back."""

    digests: Digests | None
    """What it held then; None if that could not be read."""

    problem: str = ""
    """What went wrong; empty if nothing did."""


def recovered(server: Server) -> Recovered:
    """End a server as a crash would, start it again, and return what it holds.

    Relaxed durability lets it lose its last commits, so these are written to the log before.
    """
    flush = COUNTED[server.build.version.engine].flush
    try:
        with connected(server.address) as connection, connection.cursor() as cursor:
            cursor.execute(flush)
        server.abandon()
    except TidemarkError as error:
        return Recovered(0.0, None, f"its rows were not read after a crash: {error}")
    began = time.monotonic()
    try:
        server.start()
    except TidemarkError as error:
        return Recovered(None, None, f"it does not come back after a crash: {error}")
    seconds = time.monotonic() - began
    try:
        return Recovered(seconds, digests(server.address))
    except TidemarkError as error:
        return Recovered(seconds, None, f"its rows cannot be read after a crash: {error}")
