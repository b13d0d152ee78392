"""The queries of tpch on real servers of every engine: answers, limits, and plans."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine
from suites.accounting.costs import Meter
from suites.checking.queries import explain
from suites.definition import load_suite
from suites.engines import engine_of, make_server
from suites.generators.load import LoadError, OverLimitError, Share
from suites.generators.queries.client import ERRORS, execute
from suites.generators.queries.conductor import QueryConductor
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.server import Server
from suites.sizing import Hardware, Sizes, sizes
from suites.slices import Schedule
from tests.new_servers.data_directories import create

pytestmark = pytest.mark.server

SUITE = load_suite("tpch")
ROOM = sizes(SUITE, SUITE.profile("smoke"), Hardware(1, 8 * 1024**3))
STEPS: Mapping[str, Step] = {step.name: step for step in SUITE.steps}
NEVER_TRUE = "FROM lineitem a, lineitem b, revenue WHERE a.l_quantity + b.l_quantity + total_revenue < 0"
ENDLESS = f"SELECT COUNT(*) {NEVER_TRUE}"
"""A query over the view that would take hours."""

ENGINES = ("postgres", "mysql", "mariadb")


def started(build: Build, folder: Path, room: Sizes = ROOM) -> Server:
    settings = dict(SUITE.server[build.version.engine])
    server = make_server(build, room, Durability.RELAXED, folder / str(build.version.engine)[:2], settings)
    create(server, room)
    server.start()
    return server


class Servers:
    """Servers with the tables of scale factor 0.01, each started and loaded when it is first asked for."""

    def __init__(self, builds: Sequence[Build], folder: Path, stack: ExitStack) -> None:
        self.builds = {str(build.version.engine): build for build in builds}
        self.folder, self.stack = folder, stack
        self.running: dict[str, Server] = {}

    def __getitem__(self, engine: str) -> Server:
        if engine not in self.running:
            server = started(self.builds[engine], self.folder)
            self.stack.callback(server.destroy)
            QueryConductor(SUITE, ROOM).load(server.address)
            server.reset()
            self.running[engine] = server
        return self.running[engine]


@pytest.fixture(scope="module")
def servers(
    server_folders: Callable[[], AbstractContextManager[Path]],
    postgres_18: Build,
    mysql_9: Build,
    mariadb_11: Build,
) -> Iterator[Servers]:
    """All engines."""
    with ExitStack() as stack:
        folder = stack.enter_context(server_folders())
        yield Servers((postgres_18, mysql_9, mariadb_11), folder, stack)


@pytest.fixture(params=ENGINES)
def server(servers: Servers, request: pytest.FixtureRequest) -> Server:
    return servers[request.param]


def rows(server: Server, text: str) -> list[str]:
    with closing(engine_of(server.address.engine).session(server.address)) as session:
        return [str(cell) for row in session.execute(text) for cell in row]


def test_every_query_has_one_answer_on_all_engines_and_a_plan(servers: Servers) -> None:
    generator, both = QueryConductor(SUITE, ROOM), [servers[name] for name in ENGINES]
    share = Share(Schedule(1e-9, (*range(3), *range(3)), warming=3), 1, limit_seconds=60)
    for step in SUITE.steps:
        meters = [Meter(server.pid) for server in both]
        loads = generator.alternate([server.address for server in both], step, share, meters)
        assert [load.transactions for load in loads] == [1, 1, 1], step.name
        for server in both:
            assert explain(server.address, generator.statements(server.address, step)), step.name


def test_another_answer_is_no_measurement(servers: Servers) -> None:
    """Whichever works first, it is the later version of the session that has another answer."""
    both = [servers[name] for name in ("postgres", "mysql")]
    rows(both[0], "UPDATE region SET r_name = 'ASIEN' WHERE r_name = 'ASIA'")
    share = Share(Schedule(1e-9, (1, 0, 1, 0), warming=2), 1, limit_seconds=60)
    try:
        with pytest.raises(
            LoadError, match=r"q5 has another answer than version 1 .*: 5 rows instead of 0"
        ) as caught:
            QueryConductor(SUITE, ROOM).alternate(
                [server.address for server in both],
                STEPS["q5"],
                share,
                [Meter(server.pid) for server in both],
            )
    finally:
        rows(both[0], "UPDATE region SET r_name = 'ASIA' WHERE r_name = 'ASIEN'")
    assert caught.value.place == 1


# --- limits


WRITE = f"INSERT INTO region SELECT 1000, 'x', 'y' {NEVER_TRUE}"
"""It would take as long, and MySQL ends no such statement by itself."""


@pytest.mark.parametrize(
    ("engine", "statement"),
    [*((engine, ENDLESS) for engine in ENGINES), ("postgres", WRITE), ("mariadb", WRITE)],
)
def test_a_statement_is_ended_at_its_limit(servers: Servers, engine: str, statement: str) -> None:
    server = servers[engine]
    with closing(engine_of(server.address.engine).session(server.address)) as session:
        session.set_limit(0.4)
        done = execute(session, [statement, "DELETE FROM region"], 0.4)
    assert done.is_over
    assert 0.4 <= done.seconds < 30
    assert rows(server, "SELECT COUNT(*) FROM region") == ["5"]
    assert nobody_works(server)


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT nothing"])
def test_what_ends_in_time_is_not_over_and_an_error_is_one(server: Server, text: str) -> None:
    with closing(engine_of(server.address.engine).session(server.address)) as session:
        session.set_limit(20)
        if text == "SELECT 1":
            assert not execute(session, [text], 20).is_over
        else:
            with pytest.raises(ERRORS, match="nothing"):
                execute(session, [text], 20)


def test_a_query_over_its_limit_on_one_server_tells_the_time_of_the_other(
    servers: Servers, tmp_path: Path
) -> None:
    """What the other needs is a bound of the ratio."""
    shutil.copytree(SUITE.folder, tmp_path, dirs_exist_ok=True)
    # Without such a region there is nothing to be done.
    text = f"{ENDLESS} AND EXISTS (SELECT * FROM region WHERE r_regionkey = 77);"
    (tmp_path / "q6.sql").write_text(text)
    generator = QueryConductor(SUITE.model_copy(update={"folder": tmp_path}), ROOM)
    both = [servers[name] for name in ("postgres", "mysql")]
    share = Share(Schedule(0.001, (1, 0, 1, 0), warming=2), 1, limit_seconds=1)
    meters = [Meter(server.pid) for server in both]
    rows(both[1], "INSERT INTO region VALUES (77, 'x', 'y')")
    try:
        with pytest.raises(OverLimitError) as caught:
            generator.alternate([tenant.address for tenant in both], STEPS["q6"], share, meters)
    finally:
        rows(both[1], "DELETE FROM region WHERE r_regionkey = 77")
    assert caught.value.limit == 1
    assert caught.value.seconds[1] is None
    assert 0 < (caught.value.seconds[0] or 0) < 1


def nobody_works(server: Server) -> bool:
    """Whether no connection but the one that asks executes a statement, soon."""
    active = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%lineitem a%'"
    if server.address.engine is Engine.POSTGRES:
        active = "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%lineitem a%'"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if rows(server, active) == ["1"]:
            return True
        time.sleep(0.05)
    return False
