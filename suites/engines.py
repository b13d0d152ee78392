"""Which server class serves which engine, and the name of its socket."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from build.build import Build
from build.engines import EngineRegistry
from build.version import Engine
from suites.durability import Durability
from suites.mysql.server import SOCKET as MYSQL_SOCKET
from suites.mysql.server import MysqlServer
from suites.postgres.server import SOCKET as POSTGRES_SOCKET
from suites.postgres.server import PostgresServer
from suites.server import Server, require_short
from suites.sizing import Sizes


@dataclass(frozen=True)
class ServedEngine:
    """What a session must know of one engine's servers before there is one."""

    make: Callable[[Build, Sizes, Durability, Path, Mapping[str, str]], Server]
    """Makes a server of a build that will live in a folder, with settings of the session's own."""

    socket: str
    """The name of its socket in that folder."""


SERVERS = EngineRegistry(
    "server class",
    __name__,
    {
        Engine.POSTGRES: ServedEngine(PostgresServer, POSTGRES_SOCKET),
        Engine.MYSQL: ServedEngine(MysqlServer, MYSQL_SOCKET),
    },
)


def make_server(
    build: Build, sizes: Sizes, durability: Durability, folder: Path, settings: Mapping[str, str]
) -> Server:
    """A server of `build` that will live in `folder`; nothing is made yet.

    Raises CapabilityError when the version cannot be served, or does not have one of the `settings`.
    """
    return SERVERS[build.version.engine].make(build, sizes, durability, folder, settings)


def require_short_sockets(folder: Path) -> None:
    """Raise ServerError when a server in `folder` would have a socket path that is too long."""
    for served in SERVERS.values():
        require_short(folder / served.socket)
