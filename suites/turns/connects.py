"""How long clients take to connect: the median of some connects to each of the servers that take turns.

The client is this process, with the client library of the engine: a program of its own would take longer to
start than all of its connects.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median

import pymysql
from psycopg import pq
from psycopg.conninfo import make_conninfo

from build.engines import EngineRegistry
from build.version import Engine
from suites.metric_names import CONNECT
from suites.postgres.client_options import client_place, client_words
from suites.postgres.connecting import CONNECT_SECONDS, told_of
from suites.server import Address, Server
from suites.turns.failures import ServerDiedError, death_soon

CONNECTS, AT_ONCE = 30, 5
"""The connects to each server, and how many of them follow each other until it is the next server's turn."""

ANSWER_SECONDS = 60
"""The longest that a server may take to answer."""

Connect = Callable[[], None]
"""Connects, has one statement answered, and disconnects. Raises ConnectionError."""


def connect_times(servers: Sequence[Server]) -> list[float]:
    """Return the median of a connect with one statement to each running server, in ms.

    The order of the servers is reversed at each turn. Raises ServerDiedError.
    """
    connects = [_CONNECTS[server.address.engine](server.address) for server in servers]
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


def _postgres(address: Address) -> Connect:
    """Return a connect by libpq itself, through the transport of clients."""
    host, port = client_place(address)
    options = f"-c statement_timeout={ANSWER_SECONDS}s"
    told = {**told_of(address), **client_words(address), "host": host, "port": str(port), "options": options}
    conninfo = make_conninfo("", **told).encode()

    def connect() -> None:
        connection = pq.PGconn.connect(conninfo)
        try:
            if connection.status != pq.ConnStatus.OK:
                raise ConnectionError(connection.error_message.decode(errors="replace").strip())
            result = connection.exec_(b"SELECT 1")
            if result.status != pq.ExecStatus.TUPLES_OK:
                raise ConnectionError(result.error_message.decode(errors="replace").strip())
        finally:
            connection.finish()

    return connect


def _mysql(address: Address) -> Connect:
    """Return a connect through the Unix socket, whatever transport clients use."""

    def connect() -> None:
        try:
            connection = pymysql.connect(
                unix_socket=str(address.socket),
                user=address.user,
                password=address.password,
                database=address.database,
                connect_timeout=CONNECT_SECONDS,
                read_timeout=ANSWER_SECONDS,
            )
            with connection, connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except pymysql.err.Error as error:
            raise ConnectionError(str(error)) from error

    return connect


_CONNECTS: EngineRegistry[Callable[[Address], Connect]] = EngineRegistry(
    "connect of a client",
    __name__,
    {Engine.POSTGRES: _postgres, Engine.MYSQL: _mysql, Engine.MARIADB: _mysql},
)
