"""A server that is killed in the middle of tpcc has, after its recovery, what clients saw committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.checking.queries import connected
from suites.engines import make_server
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.sizing import Hardware, Sizes, sizes
from tests.new_servers.data_directories import create
from tests.suites.tpcc.killed_servers import KilledServer, WitnessedSuite
from tests.suites.tpcc.smaller import smaller

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
ENOUGH = 150
"""Transactions that clients have seen committed when the server is killed."""


@pytest.fixture
def witnessed(tmp_path: Path) -> WitnessedSuite:
    (tmp_path / "tpcc").mkdir()
    return WitnessedSuite(smaller(tmp_path / "tpcc"), tmp_path / "witnessed")


@pytest.fixture
def room(witnessed: WitnessedSuite) -> Sizes:
    suite = witnessed.suite
    return sizes(suite, suite.profile("smoke"), Hardware(cores=1, memory_bytes=1))


@pytest.fixture(params=BUILDS)
def killed(
    server_folder: Path, witnessed: WitnessedSuite, room: Sizes, request: pytest.FixtureRequest
) -> Iterator[KilledServer]:
    """With the loaded data; every commit is on stable storage before the client is told."""
    build: Build = request.getfixturevalue(BUILDS[request.param])
    server = make_server(build, room, Durability.FULL, server_folder / "s", {})
    try:
        create(server, room)
        server.start()
        Sysbench(witnessed.suite, room).load(server.address)
        yield KilledServer(server, witnessed, room, "smoke")
    finally:
        server.destroy()


def test_what_clients_saw_committed_survives(killed: KilledServer) -> None:
    seen, wrong = killed.kill_once(ENOUGH)
    assert seen >= ENOUGH
    assert wrong == []


@pytest.mark.parametrize("killed", ["postgres"], indirect=True)
def test_a_lost_transaction_is_noticed(killed: KilledServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the recovery, an order is as if it had never been."""
    server = killed.server
    start = server.start

    def forgetful() -> None:
        start()
        with connected(server.address) as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE district SET d_next_o_id = d_next_o_id - 10 WHERE d_id = 1 AND d_w_id = 1")

    monkeypatch.setattr(server, "start", forgetful)
    _, wrong = killed.kill_once(ENOUGH)
    assert any(fault.startswith("new-order: ") for fault in wrong)
    assert any("condition-2" in fault for fault in wrong)
