"""How long clients take to connect: the median of some connects to each of the servers that take turns.

The client is this process, with the client library of the engine: a program of its own would take longer to
start than all of its connects.
"""

import time
from collections.abc import Sequence
from statistics import median

from suites.engines import engine_of
from suites.metrics import CONNECT
from suites.server import Server
from suites.turns.failures import ServerDiedError, death_soon

CONNECTS, AT_ONCE = 30, 5
"""The connects to each server, and how many of them follow each other until it is the next server's turn."""


def connect_times(servers: Sequence[Server]) -> list[float]:
    """Return the median of a connect with one statement to each running server, in ms.

    The order of the servers is reversed at each turn. Raises ServerDiedError.
    """
    connects = [engine_of(server.address.engine).connector(server.address) for server in servers]
    seconds: list[list[float]] = [[] for _ in servers]
    places = range(len(servers))
    for turn in range(CONNECTS // AT_ONCE):
        for place in places if turn % 2 == 0 else reversed(places):
            for _ in range(AT_ONCE):
                began = time.perf_counter()
                try:
                    connects[place]()
                except ConnectionError as error:
                    ended = death_soon(servers[place])
                    what = (
                        f"died while clients connected: {ended}"
                        if ended
                        else f"lets no client connect: {error}"
                    )
                    raise ServerDiedError(f"{servers[place].build.version} {what}", place) from error
                seconds[place].append(time.perf_counter() - began)
    return [1000 * median(taken) for taken in seconds]


def connect_values(servers: Sequence[Server]) -> list[dict[str, float]]:
    """Return `connect_times` as metrics of each server. Raises ServerDiedError."""
    return [{CONNECT: milliseconds} for milliseconds in connect_times(servers)]
