"""Small servers of the MySQL family for tests, and work for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.load import Load, Share, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.layers.choice import NONE, Layers
from suites.measurement import Measurement
from suites.slices import Schedule
from suites.turns.run import run_slices
from tests.new_servers.data_directories import create
from tests.suites.servers import small

SUITE = load_suite("write-heavy")
ROOM = small(rows=5000, tables=2)


def made(
    build: Build, folder: Path, settings: dict[str, str] | None = None, layers: Layers = NONE
) -> InnodbServer:
    """A server object in a new folder `my` below `folder`; it has no file yet."""
    server = make_server(build, ROOM, Durability.RELAXED, folder / "my", settings or {}, layers)
    assert isinstance(server, InnodbServer)
    return server


@contextmanager
def running(
    build: Build, folder: Path, durability: Durability = Durability.RELAXED
) -> Iterator[InnodbServer]:
    """A server that answers; destroyed however the block ends."""
    server = make_server(build, ROOM, durability, folder / "my", {})
    assert isinstance(server, InnodbServer)
    try:
        create(server, ROOM)
        server.start()
        yield server
    finally:
        server.destroy()


def value(server: InnodbServer, query: str) -> object:
    """The first value of the only row that `query` yields."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        (row,) = cursor.fetchall()
        return row[0]


def step(name: str) -> Step:
    """A step of the suite."""
    return SUITE.select((name,))[0]


def load(server: InnodbServer, name: str, work: WorkLimit) -> Load:
    """A step's load alone."""
    return Sysbench(SUITE, ROOM).run(server.address, step(name), work, Meter(server.pid))


def measure(server: InnodbServer, name: str, transactions: int) -> Measurement:
    """A step of one server, as a session runs it."""
    share = Share(Schedule(1.0, (0,)), 1, transactions)
    (measured,) = run_slices([server], Sysbench(SUITE, ROOM), step(name), share, 0.0)
    return measured
