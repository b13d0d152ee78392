"""Tables that a suite has beside sysbench's: the example of docs/suites.md, on real servers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.checking.queries import connected
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import Load, Share
from suites.generators.registry import make_generator
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import Hardware, Sizes, sizes
from suites.slices import Schedule
from tests.docs.test_docs import example
from tests.new_servers.data_directories import create

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
GIB = 1024**3


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    example(tmp_path)
    return load_suite(f"{tmp_path}/beside")


def test_memory_and_disk_are_divided_among_all_tables(suite: Suite) -> None:
    machine = Hardware(cores=4, memory_bytes=100 * GIB)
    both = sizes(suite, suite.profile("short"), machine)
    alone = sizes(suite.model_copy(update={"beside": {}}), suite.profile("short"), machine)
    assert both.data.bytes == pytest.approx(both.data.rows * (260 + 0.01 * 100) + 16 * 60, abs=1)
    assert both.data.rows == pytest.approx(alone.data.rows * 260 / 261, rel=1e-6)
    assert both.data.bytes == pytest.approx(alone.data.bytes, rel=1e-6)


@pytest.fixture(params=BUILDS)
def served(
    server_folder: Path, suite: Suite, request: pytest.FixtureRequest
) -> Iterator[tuple[Server, Sizes]]:
    """A server with the loaded data, and their sizes."""
    build: Build = request.getfixturevalue(BUILDS[request.param])
    room = sizes(suite, suite.profile("smoke"), Hardware(cores=2, memory_bytes=1))
    server = make_server(build, room, Durability.RELAXED, server_folder / "s", {})
    try:
        create(server, room)
        server.start()
        make_generator(suite, room, [build]).load(server.address)
        yield server, room
    finally:
        server.destroy()


def value(server: Server, query: str) -> int:
    with connected(server.address) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])


def work(server: Server, suite: Suite, room: Sizes, step: str) -> Load:
    (load,) = make_generator(suite, room, [server.build]).alternate(
        [server.address],
        suite.select((step,))[0],
        Share(Schedule(0.5, (0, 0)), 1),
        [Meter(server.pid, shared=True)],
    )
    return load


@pytest.mark.server
def test_a_queue_and_counters_are_loaded_and_worked_on(served: tuple[Server, Sizes], suite: Suite) -> None:
    server, room = served
    rows = room.data.rows // 100
    assert value(server, "SELECT COUNT(*) FROM queue1") == pytest.approx(rows, abs=1)
    assert value(server, "SELECT COUNT(*) FROM counters") == 16
    load = work(server, suite, room, "queue")
    assert load.errors == 0
    assert load.transactions > 0
    assert value(server, "SELECT COUNT(*) FROM queue1") == pytest.approx(rows, abs=room.threads)
    assert value(server, "SELECT MIN(id) FROM queue1") > load.transactions / 2, "the oldest are taken"
    load = work(server, suite, room, "counters")
    assert value(server, "SELECT SUM(n) FROM counters") >= load.transactions > 0
