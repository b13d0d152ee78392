"""A server of its own with the data of a suite's smoke profile, and a version of each engine for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.home import Home
from build.make import provide
from build.version import Version, parse_version
from runners.console import Lines
from suites.definition import Suite
from suites.engines import make_server
from suites.generators.registry import make_generator
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import sizes, this_machine

ENGINES = tuple(map(parse_version, ("postgres@18.6", "mysql@9.7.2", "mariadb@11.8.6")))
"""A version of each engine."""


@contextmanager
def loaded_server(
    suite: Suite, version: Version, home: Home, folder: Path, durability: Durability = Durability.RELAXED
) -> Iterator[Server]:
    """Yield a running server in `folder`, which is removed afterwards. Raises TidemarkError."""
    build = provide(version, home, Lines())
    room = sizes(suite, suite.profile("smoke"), this_machine(), suite.steps)
    settings = dict(suite.server.get(version.engine, {}))
    server = make_server(build, room, durability, folder, settings)
    try:
        server.create()
        server.start()
        make_generator(suite, room, [build]).load(server.address)
        yield server
    finally:
        server.destroy()
