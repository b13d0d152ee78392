"""Which server class serves which engine."""

from collections.abc import Mapping
from pathlib import Path

from build.build import Build
from build.version import Engine
from suites.durability import Durability
from suites.mysql.server import MysqlServer
from suites.postgres.server import PORT, PostgresServer
from suites.server import Server, require_short
from suites.sizing import Sizes


def make_server(
    build: Build, sizes: Sizes, durability: Durability, folder: Path, settings: Mapping[str, str]
) -> Server:
    """A server of `build` that will live in `folder`; nothing is made yet.

    Raises CapabilityError when the version cannot be served, or does not have one of the `settings`.
    """
    if build.version.engine is Engine.MYSQL:
        return MysqlServer(build, sizes, durability, folder, settings)
    return PostgresServer(build, sizes, durability, folder, settings)


def require_short_sockets(folder: Path) -> None:
    """Raise ServerError when a server in `folder` would have a socket path that is too long."""
    require_short(folder / f".s.PGSQL.{PORT}")
