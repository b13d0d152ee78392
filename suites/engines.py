"""Finding the class of an engine, and making servers of any."""

from collections.abc import Mapping
from pathlib import Path

from build.engines import EngineRegistry
from build.finished_build import Build
from build.version import Engine
from suites.engine import DatabaseEngine, Leftover
from suites.keys.durability import Durability
from suites.layers.choice import NONE, Layers
from suites.mariadb.engine import Mariadb
from suites.mysql.engine import Mysql
from suites.postgres.engine import Postgres
from suites.server import Server, require_short
from suites.sizing import Sizes, with_own_cache

ENGINE_CLASSES: EngineRegistry[DatabaseEngine] = EngineRegistry(
    "class of an engine",
    __name__,
    {Engine.POSTGRES: Postgres(), Engine.MYSQL: Mysql(), Engine.MARIADB: Mariadb()},
)


def engine_of(engine: Engine) -> DatabaseEngine:
    """Return the class with all in which an engine differs from others."""
    return ENGINE_CLASSES[engine]


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
    engine = engine_of(build.version.engine)
    own = own_sizes(build.version.engine, sizes, settings)
    options = (initdb,) if initdb else ()  # require_initdb has refused those of an engine without an initdb
    return engine.server(build, own, durability, folder, settings, layers, *options)


def own_sizes(engine: Engine, sizes: Sizes, settings: Mapping[str, str]) -> Sizes:
    """Return the sizes of a server with these settings: more buffers if nothing else caches its data."""
    of = engine_of(engine)
    return with_own_cache(sizes, of.memory_beside_buffers) if of.writes_directly(settings) else sizes


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
        make_server(build, sizes, durability, Path("/nonexistent"), settings, layers).require_accepted()


def require_short_sockets(folder: Path) -> None:
    """Raise ServerError if the path of a server's socket in `folder` would be too long."""
    for engine in ENGINE_CLASSES.values():
        require_short(folder / engine.socket)


def leftovers(data: Path) -> list[Leftover]:
    """Return the resources that a server of any engine on the data directory `data` has outside of it."""
    return [leftover for engine in ENGINE_CLASSES.values() for leftover in engine.leftovers(data)]
