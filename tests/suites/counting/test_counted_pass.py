"""Counted passes on a real Postgres under callgrind; a pass takes some ten seconds."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from suites.counting.counted_pass import PassTerms, count
from suites.counting.engines import COUNTED
from suites.counting.executed_functions import WatchedFunction
from suites.counting.tool import Callgrind, find_callgrind
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.load import LongPassError
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.processes import processes_in
from suites.server import Instrument, Server, beside
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

SUITE = load_suite("write-heavy")
ROOM = small(rows=2000)


@pytest.fixture(scope="module")
def callgrind() -> Callgrind:
    try:
        return find_callgrind()
    except TidemarkError as error:
        pytest.skip(str(error))


@pytest.fixture
def server(server_folder: Path, postgres_18: Build) -> Iterator[Server]:
    with loaded(postgres_18, server_folder / "pg") as server:
        yield server


@contextlib.contextmanager
def loaded(build: Build, folder: Path) -> Iterator[Server]:
    """A server with loaded data."""
    server = make_server(build, ROOM, Durability.RELAXED, folder, {})
    try:
        create(server, ROOM)
        server.start()
        Sysbench(SUITE, ROOM).load(server.address)
        server.keep()
        yield server
    finally:
        server.destroy()


def step(name: str, counted: int) -> Step:
    (chosen,) = SUITE.select((name,))
    return chosen.model_copy(update={"counted": counted})


def test_two_passes_agree_and_the_profile_adds_up(server: Server, callgrind: Callgrind) -> None:
    generator, update = Sysbench(SUITE, ROOM), step("update-index", 400)
    first, second = (
        count(server, generator, update, ROOM, callgrind, stacks=stacks) for stacks in (True, False)
    )
    counts = [measured.values[INSTRUCTIONS] for measured in (first, second)]
    assert min(counts) > 20_000
    assert max(counts) < min(counts) * (1 + COUNTED[server.build.version.engine].agreement)
    profile = first.profile
    assert profile is not None
    assert second.profile is None
    assert profile.is_exact
    assert profile.samples * profile.microseconds_per_sample == pytest.approx(counts[0], rel=0.001)
    assert {stack.split(";")[0] for stack in profile.stacks} == {"client backend"}
    assert profile.calls["heap_update"] == 400, "one for each transaction, without those of the warm-up"
    assert not [stack for stack in profile.stacks if "secure_read" in stack.split(";")]
    assert not list(processes_in(server.address.socket.parent))
    assert not beside(server.address.socket.parent, "counts").exists()


def test_functions_of_its_whole_life_are_looked_for_where_the_client_executes_none(
    server: Server, callgrind: Callgrind
) -> None:
    generator, update = Sysbench(SUITE, ROOM), step("update-index", 10)

    def found(*files: str) -> frozenset[str] | None:
        every = frozenset(range(1, 20_000))
        watched = [WatchedFunction(file.rpartition("/")[2], f"src/{file}", every) for file in files]
        return count(server, generator, update, ROOM, callgrind, stacks=False, watched=watched).executed

    vacuum, redo = "backend/access/heap/vacuumlazy.c", "backend/access/nbtree/nbtxlog.c"
    copy, cluster = "backend/commands/copyfromparse.c", "backend/commands/cluster.c"
    assert found(vacuum, redo, copy, cluster) == frozenset({"vacuumlazy.c", "nbtxlog.c"})
    update_of = "backend/executor/nodeModifyTable.c"
    assert found(update_of, vacuum) == frozenset({"nodeModifyTable.c"}), "the client is enough"
    assert not list(processes_in(server.address.socket.parent))


def test_passes_of_expensive_transactions_are_short_and_of_equal_work(
    server_folder: Path, postgres_17: Build, server: Server, callgrind: Callgrind
) -> None:
    """A transaction reads all rows of a table several times: 400 would take some minutes."""
    scan = step("read-write-10", 400).model_copy(
        update={"options": {"workload": "read-write", "range_size": 2000}}
    )
    agreed: dict[str, int] = {}
    terms = PassTerms(lambda affordable: agreed.setdefault("scan", affordable), budget_seconds=4.0)
    generator, took = Sysbench(SUITE, ROOM), list[float]()

    def passed(measured: Server) -> tuple[float, float]:
        began = time.monotonic()
        values = count(measured, generator, scan, ROOM, callgrind, terms, stacks=False).values
        took.append(time.monotonic() - began)
        return values[INSTRUCTIONS], values[COUNTED_TRANSACTIONS]

    with loaded(postgres_17, server_folder / "old") as old:
        passes = [passed(server), passed(old), passed(server)]
    transactions = {transactions for _, transactions in passes}
    assert transactions == {float(agreed["scan"])}
    assert agreed["scan"] < 100
    first, of_old, second = (instructions for instructions, _ in passes)
    assert first == pytest.approx(second, rel=COUNTED[server.build.version.engine].agreement)
    assert of_old == pytest.approx(first, rel=0.2)
    assert max(took) < 100, "the server starts in some seconds; 400 transactions took longer than 130"


def test_a_pass_that_reaches_its_limit_is_ended_with_its_server(server: Server, callgrind: Callgrind) -> None:
    update, told = step("update-index", 1_000_000), list[str]()
    terms = PassTerms(budget_seconds=1e9, limit_seconds=13.0, tell=lambda *at: told.append(str(at)))
    with pytest.raises(
        LongPassError, match=r"ended after 13 s, at [1-9][0-9]+ of 1000060 transactions"
    ) as error:
        count(server, Sysbench(SUITE, ROOM), update, ROOM, callgrind, terms, stacks=False)
    assert "--step" in error.value.hint
    assert len(told) == 1
    assert not list(processes_in(server.address.socket.parent))


@pytest.mark.timeout(900)
def test_a_pass_of_mysql(server_folder: Path, mysql_9: Build, callgrind: Callgrind) -> None:
    """Its server takes the better part of a minute to start, on a quiet machine."""
    update = step("update-index", 100)
    with loaded(mysql_9, server_folder / "db") as server:
        counted = count(server, Sysbench(SUITE, ROOM), update, ROOM, callgrind, stacks=False)
    assert counted.values[INSTRUCTIONS] > 50_000


def test_a_server_that_does_not_start_under_valgrind_is_told(server: Server) -> None:
    unknown = Callgrind("/usr/bin/false", "valgrind-3.19.0")
    with pytest.raises(TidemarkError, match="did not start: exit status 1"):
        count(server, Sysbench(SUITE, ROOM), step("delete", 10), ROOM, unknown, stacks=False)
    assert (server.address.socket.parent / "loaded").is_dir(), "what was loaded is there for the next round"


def test_a_setting_that_was_chosen_is_not_overridden_by_the_instrument(
    server_folder: Path, postgres_18: Build, mysql_9: Build
) -> None:
    """The instrument here is none: `env` runs the server as it is."""
    cases = [
        (postgres_18, {"JIT": "on"}, {"jit": "off", "autovacuum": "off"}),
        (
            mysql_9,
            {"innodb-stats-auto-recalc": "ON"},
            {"innodb_stats_auto_recalc": "OFF", "autocommit": "off"},
        ),
    ]
    for build, chosen, own in cases:
        server = make_server(build, ROOM, Durability.RELAXED, server_folder / build.version.engine, chosen)
        try:
            create(server, ROOM)
            server.start()
            server.keep()
            server.restore(is_timed=False)
            server.start(Instrument(("env",), own))
            settings = {name: value.casefold() for name, value in server.settings().items()}
        finally:
            server.destroy()
        first, second = own
        assert (settings[first], settings[second]) == ("on", own[second])
