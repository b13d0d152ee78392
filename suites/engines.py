"""The registry of server classes, one for each engine, and the names of the servers' sockets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from build.build import Build
from build.engines import EngineRegistry
from build.version import Engine
from suites.innodb import configuration as innodb_configuration
from suites.keys.durability import Durability
from suites.layers.choice import NONE, Layers
from suites.mariadb.server import MariadbServer
from suites.mysql.server import MysqlServer
from suites.postgres import configuration as postgres_configuration
from suites.postgres.server import SOCKET as POSTGRES_SOCKET
from suites.postgres.server import PostgresServer
from suites.server import Server, require_short
from suites.sizing import MEMORY_BESIDE_BUFFERS, Sizes, with_own_cache

MEMORY_OF_MYSQL = 576 * 1024**2
"""What MySQL needs beside its buffer pool: 9.7.2 with one client has 510 MiB, and 40 MiB of its program."""

MEMORY_OF_MARIADB = 160 * 1024**2
"""What MariaDB needs beside its buffer pool: 11.8.6 with one client has 75 MiB, and 25 MiB of its program."""


@dataclass(frozen=True)
class ServedEngine:
    """How servers of one engine are created."""

    make: Callable[..., Server]
    """Creates a server object for a build, in a folder, with the settings of the session and layers, and the
    options of initdb if it has one."""

    socket: str
    """The name of the server's socket in that folder."""

    render: Callable[[Build, Sizes, Durability, Path, Mapping[str, str], Layers], str]
    """Returns the text of the configuration of a server in a folder. Raises CapabilityError."""

    check: Callable[[Build, str], None]
    """Asks the server whether it accepts such a text. Raises SettingError."""

    writes_directly: Callable[[Mapping[str, str]], bool]
    """Whether a server with such settings writes its data past the page cache."""

    has_initdb: bool = False
    """Whether `make` takes the options of an initdb after the layers."""

    memory_beside_buffers: int = MEMORY_BESIDE_BUFFERS
    """The bytes of memory without which, beside its buffer cache, a server does not start or work."""


SERVERS = EngineRegistry(
    "server class",
    __name__,
    {
        Engine.POSTGRES: ServedEngine(
            PostgresServer,
            POSTGRES_SOCKET,
            postgres_configuration.render,
            postgres_configuration.check,
            postgres_configuration.writes_directly,
            has_initdb=True,
        ),
        Engine.MYSQL: ServedEngine(
            MysqlServer,
            MysqlServer.SOCKET,
            MysqlServer.render,
            MysqlServer.check,
            innodb_configuration.writes_directly,
            memory_beside_buffers=MEMORY_OF_MYSQL,
        ),
        Engine.MARIADB: ServedEngine(
            MariadbServer,
            MariadbServer.SOCKET,
            MariadbServer.render,
            MariadbServer.check,
            innodb_configuration.writes_directly,
            memory_beside_buffers=MEMORY_OF_MARIADB,
        ),
    },
)


def make_server(
    build: Build,
    sizes: Sizes,
    durability: Durability,
    folder: Path,
    settings: Mapping[str, str],
    layers: Layers = NONE,
    initdb: Mapping[str, str] | None = None,
) -> Server:
    """Return a server of `build` in `folder`, without creating any file yet.

    `initdb` are the options of its initdb by name, of an engine that has one. Raises CapabilityError if the
    version is too old or does not have one of the `settings`, or of these options.
    """
    served = SERVERS[build.version.engine]
    options = (initdb or {},) if served.has_initdb else ()
    own = own_sizes(build.version.engine, sizes, settings)
    return served.make(build, own, durability, folder, settings, layers, *options)


def own_sizes(engine: Engine, sizes: Sizes, settings: Mapping[str, str]) -> Sizes:
    """Return the sizes of a server with these settings: more buffers if nothing else caches its data."""
    served = SERVERS[engine]
    direct = served.writes_directly(settings)
    return with_own_cache(sizes, served.memory_beside_buffers) if direct else sizes


def require_settings(
    build: Build,
    sizes: Sizes,
    durability: Durability,
    settings: Mapping[str, str],
    layers: Layers = NONE,
) -> None:
    """Ask the server of `build` whether it accepts `settings` and `layers`; nothing is asked without any.

    Raises SettingError, which names what it does not know or refuses.
    """
    if settings or layers != NONE:
        served = SERVERS[build.version.engine]
        own = own_sizes(build.version.engine, sizes, settings)
        text = served.render(build, own, durability, Path("/nonexistent"), settings, layers)
        served.check(build, text)


def require_short_sockets(folder: Path) -> None:
    """Raise ServerError if the path of a server's socket in `folder` would be too long."""
    for served in SERVERS.values():
        require_short(folder / served.socket)
