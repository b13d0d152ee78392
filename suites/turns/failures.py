"""How a server or its load generator failed during a step."""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence

from build.errors import TidemarkError
from suites.generators.load import LoadError
from suites.keys.step import Step
from suites.metrics import OVER_LIMIT
from suites.server import Server, ServerError


class ServerDiedError(ServerError):
    """A server died during a step, or its load generator failed; `place` is its index among the servers."""

    def __init__(self, what: str, place: int | None) -> None:
        super().__init__(what)
        self.place = place


class CensoredError(ServerError):
    """A query took longer than its limit of `limit` seconds, so that its time is known on no server for sure.

    `seconds` are those of one execution by the index of the server, None where it was over the limit.
    """

    def __init__(self, what: str, limit: float, seconds: Mapping[int, float | None]) -> None:
        super().__init__(what)
        self.limit = limit
        self.seconds = seconds

    @property
    def values(self) -> Mapping[str, float]:
        """The only metric of a run that was ended at its limit."""
        return {OVER_LIMIT: self.limit}


@contextlib.contextmanager
def blaming(place: int) -> Iterator[None]:
    """Raise what goes wrong in the block as a ServerDiedError of the server with the index `place`."""
    try:
        yield
    except TidemarkError as error:
        raise ServerDiedError(str(error), place) from error


def blame(servers: Sequence[Server], step: Step, error: LoadError) -> ServerDiedError:
    """Return the error for the server that died, else for the one whose load generator failed first."""
    dead = {place: ended for place, server in enumerate(servers) if (ended := server.death()) is not None}
    if not dead and error.place is not None:
        ended = death_soon(servers[error.place])
        dead = {error.place: ended} if ended is not None else {}
    for place, ended in dead.items():
        return ServerDiedError(f"{servers[place].build.version} died during {step.name}: {ended}", place)
    if error.place is None:
        return ServerDiedError(str(error), None)
    return ServerDiedError(with_logged(servers[error.place], error), error.place)


_LOST = re.compile(r"terminating connection|conflict with recovery|connection to client lost")
"""What Postgres logs when it ends a connection."""


def with_logged(server: Server, error: LoadError) -> str:
    """Return the text of an error of a load generator, with the error that the server has logged last.

    sysbench does not say why Postgres ended a connection: it crashes.
    """
    text, logged = str(error), server.errors_logged()
    if any(line in text for line in logged):
        return text  # the generator was then ended, whose connections are lost
    lost = next((line for line in logged if _LOST.search(line)), None)
    if lost is not None:
        return f"the load generator lost its connection to {server.build.version}: {lost} ({text})"
    if not logged:
        return text
    return f"{text}\n  the server's log: {logged[-1]}"


def loading_failure(server: Server, error: TidemarkError) -> str:
    """Return why a version could not be loaded: how its server died, if it did, or the error."""
    if not isinstance(error, LoadError):
        return str(error)
    ended = death_soon(server)
    if ended is not None:
        return f"{server.build.version} died while it was loaded: {ended}"
    return with_logged(server, error)


def death_soon(server: Server) -> str | None:
    """Return how the server ended, or None; wait, as clients may notice before it has ended."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        ended = server.death()
        if ended is not None:
            return ended
        time.sleep(0.05)
    return None
