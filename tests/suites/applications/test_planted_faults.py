"""The suites whose data are checked: every check is green after a step, and red once its fault is planted."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine
from suites.accounting.costs import Meter
from suites.checking.data_checks import DataChecks, DataError
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.load import Load, Share, committed_in
from suites.generators.registry import make_generator
from suites.keys.check import CheckOccasion
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.server import Server
from suites.sizing import Hardware, Sizes, sizes
from suites.slices import Schedule
from tests.new_servers.data_directories import create
from tests.suites.applications.planted_faults import faults_of, unseen

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
SUITES = {"payments": "payments-keep", "shop": "new-customer"}
CLIENTS = 2


@pytest.mark.parametrize("name", SUITES)
def test_there_is_a_fault_for_every_check(name: str) -> None:
    checks = {check.name for check in load_suite(name).checks}
    for engine in Engine:
        assert {fault.check for fault in faults_of(name, engine)} == checks


@pytest.fixture(params=[(name, engine) for name in SUITES for engine in BUILDS], ids="-".join)
def started(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, str, Step, Sizes]]:
    """A server with the loaded data of a suite, and a step of it."""
    name, engine = request.param
    suite = load_suite(name)
    build: Build = request.getfixturevalue(BUILDS[engine])
    step = suite.select((SUITES[name],))[0].at(CLIENTS)
    profile = suite.profile("smoke").model_copy(update={"scale": (1, 1)})
    room = sizes(suite, profile, Hardware(1, 1), [step])
    server = make_server(build, room, Durability.RELAXED, server_folder / "s", {})
    try:
        create(server, room)
        server.start()
        make_generator(suite, room, [build]).load(server.address)
        yield server, name, step, room
    finally:
        server.destroy()


@pytest.mark.server
def test_checks_are_green_after_a_step_and_red_on_faults(started: tuple[Server, str, Step, Sizes]) -> None:
    server, name, step, room = started
    suite = load_suite(name)
    rows = room.data.rows_by_table
    checks = DataChecks(suite.checks, "smoke", rows)
    assert checks.require(server.address, CheckOccasion.LOADED) is not None
    load = _work(server, name, step, room)
    assert load.transactions > 0
    committed = Counter(committed_in(load))
    assert committed.total() > load.transactions  # the warm-up too
    # What was inserted into order_items is counted of the other steps only.
    committed["insert-order-items"] = 0
    assert checks.require(server.address, CheckOccasion.STEP, step.plain_name, committed) is not None
    if name == "shop":
        from suites.checking.queries import connected

        with connected(server.address) as connection, connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM order_items WHERE id > {rows['order_items']}")
    planted, missed = unseen(server.address, suite, committed, rows)
    assert planted >= len(suite.checks)
    assert not missed
    with pytest.raises(DataError, match="the data are not as they must be") as found:
        checks.require(server.address, CheckOccasion.STEP, step.plain_name, committed)
    assert "check " in str(found.value)


def _work(server: Server, name: str, step: Step, room: Sizes) -> Load:
    share = Share(Schedule(0.25, (0, 0, 0), 1), 1)
    generator = make_generator(load_suite(name), room, [server.build])
    (load,) = generator.alternate([server.address], step, share, [Meter(server.pid, shared=True)])
    return load
