"""A suite with its own scale, which touches nothing but its folder, on real servers of every engine."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import Load, LoadError, Share
from suites.generators.registry import make_generator
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.postgres.server import PostgresServer
from suites.server import Server
from suites.sizing import Hardware, Sizes, max_transactions, sizes
from suites.slices import Schedule
from tests.docs.test_docs import example
from tests.new_servers.data_directories import create

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
MIN_MACHINE = Hardware(cores=1, memory_bytes=1)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """The example of docs/suites.md with two warehouses, outside of the checkout."""
    example(tmp_path)
    file = tmp_path / "stockroom/suite.toml"
    file.write_text(file.read_text().replace("scale = [10, 100]", "scale = [2, 2]"))
    return load_suite(f"{tmp_path}/stockroom")


@pytest.fixture
def room(suite: Suite) -> Sizes:
    return sizes(suite, suite.profile("smoke"), MIN_MACHINE)


@pytest.fixture(params=BUILDS)
def server(
    server_folder: Path, room: Sizes, suite: Suite, request: pytest.FixtureRequest
) -> Iterator[Server]:
    """With the loaded data."""
    build: Build = request.getfixturevalue(BUILDS[request.param])
    started = make_server(build, room, Durability.RELAXED, server_folder / "s", {})
    try:
        create(started, room)
        started.start()
        make_generator(suite, room, [build]).load(started.address)
        yield started
    finally:
        started.destroy()


def total(server: Server, expression: str, table: str) -> int:
    """What an aggregate over a table comes to; Tidemark's database is the only one with tables."""
    schema = "" if server.build.version.engine == "postgres" else f"{server.address.database}."
    assert isinstance(server, PostgresServer | InnodbServer)
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression} FROM {schema}{table}")
        ((value,),) = cursor.fetchall()
    return int(value)


def work(server: Server, suite: Suite, room: Sizes, step: str, share: Share) -> Load:
    generator = make_generator(suite, room, [server.build])
    (load,) = generator.alternate(
        [server.address], suite.select((step,))[0], share, [Meter(server.pid, shared=True)]
    )
    return load


def test_the_scale_is_what_is_loaded_and_used(server: Server, suite: Suite, room: Sizes) -> None:
    for table, rows in room.data.rows_by_table.items():
        assert total(server, "COUNT(*)", table) == rows
    assert total(server, "COUNT(DISTINCT warehouse)", "stock") == room.data.scale == 2

    load = work(server, suite, room, "sell", Share(Schedule(0.3, (0, 0, 0), warming=1), 1))
    assert load.errors == 0
    assert load.queries == pytest.approx(5 * load.transactions)
    sold = total(server, "SUM(sold)", "warehouses")
    assert sold == load.watched_queries / 5 > load.transactions > 0
    assert total(server, "MIN(sold)", "warehouses") > 0, "both warehouses sell"

    limit = max_transactions(suite.select(("scrap",))[0], room)
    assert limit == 1000
    for number in (1, 2):
        before = total(server, "COUNT(*)", "stock")
        share = Share(Schedule(0.5, (0, 0)), number, limit // 2, (number - 1) * (limit // 2))
        load = work(server, suite, room, "scrap", share)
        assert before - total(server, "COUNT(*)", "stock") == load.transactions > 0, "no row is met twice"


def test_a_script_that_fails_to_load_a_unit_says_which(server: Server, suite: Suite, room: Sizes) -> None:
    with pytest.raises(LoadError) as caught:
        make_generator(suite, room, [server.build]).load(server.address)
    assert "--unit=0" in caught.value.where
