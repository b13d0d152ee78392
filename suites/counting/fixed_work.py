"""Fixed work of one client at full speed, and what the server holds of it after a crash."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from build.errors import TidemarkError
from suites.checking.queries import connected
from suites.checking.table_digests import Digests, digests
from suites.counting.counted_pass import MIN_WARM
from suites.counting.engines import COUNTED
from suites.generators.load import CountedWork, Generator, LoadError, LongPassError, PassLength
from suites.keys.step import Step
from suites.metric_names import PROVED_ROWS, RECOVERY
from suites.server import Server, ServerError
from suites.turns.failures import death_soon, with_logged

WORK_SECONDS = 1.0
"""What the transactions may take, by the cost of the first ones."""

MAX_WORK = 20_000
"""The most transactions."""

LIMIT_SECONDS = 60.0
"""Time limit of the client when its transactions take longer than the first ones did."""


@dataclass(frozen=True)
class Recovered:
    """A server that did its work, was ended without warning, and started again."""

    seconds: float | None
    """From its start until it accepted connections, recovery included; None if it did not come back."""

    digests: Digests | None
    """What it held then; None if something went wrong before."""

    problem: str = ""
    """How the server or its load failed, as in a round; empty if neither did."""


def proof_values(recovered: Recovered, *, are_same: bool) -> dict[str, float]:
    """Return what is recorded of a recovery, as metrics; `are_same` says whether its rows are the base's."""
    values: dict[str, float] = {}
    if recovered.seconds is not None:
        values[RECOVERY] = recovered.seconds
    if are_same and recovered.digests is not None:
        values[PROVED_ROWS] = float(recovered.digests.rows)
    return values


def work_and_crash(
    server: Server, generator: Generator, step: Step, most: int | None, agree: Callable[[int], int]
) -> Recovered:
    """Run fixed transactions of a step on a server from its loaded data, and crash it; it is down afterwards.

    There are at most `most` of them, if that is given; `agree` returns how many all versions run, from what
    one of them can afford. Raises TidemarkError for what need not be the server's fault: its data cannot be
    restored, the load reaches its time limit, or the rows of a server that is up cannot be read.
    """

    def choose(seconds: float) -> PassLength:
        affordable = max(1, min(MAX_WORK, most or MAX_WORK, int(WORK_SECONDS / max(seconds, 1e-6))))
        return PassLength(MIN_WARM, agree(affordable))

    work = CountedWork(COUNTED[server.build.version.engine].mark, LIMIT_SECONDS, choose)
    try:
        server.restore(is_timed=False)
        try:
            server.start()
            generator.count(server.address, step, work)
            return crashed(server)
        except TidemarkError as error:
            problem = _failure(server, step, error)
            if problem is None:
                raise
            return Recovered(None, None, problem)
    finally:
        server.abandon()


def _failure(server: Server, step: Step, error: TidemarkError) -> str | None:
    """Return how a server, or the load on it, failed by itself; None if it cannot be known."""
    if isinstance(error, ServerError):
        return str(error)
    if (ended := death_soon(server)) is not None:
        return f"{server.build.version} died during the fixed work of {step.name}: {ended}"
    if isinstance(error, LoadError) and not isinstance(error, LongPassError):
        return f"the fixed work of {step.name} fails: {with_logged(server, error)}"
    return None


def crashed(server: Server) -> Recovered:
    """End a server as a crash would, start it again, and return what it holds; it is up afterwards.

    Relaxed durability lets it lose its last commits, so these are written to the log before.
    """
    flush = COUNTED[server.build.version.engine].flush
    with connected(server.address) as connection, connection.cursor() as cursor:
        cursor.execute(flush)
    server.abandon()
    began = time.monotonic()
    try:
        server.start()
    except TidemarkError as error:
        return Recovered(None, None, f"it does not come back after a crash: {error}")
    seconds = time.monotonic() - began
    return Recovered(seconds, digests(server.address))
