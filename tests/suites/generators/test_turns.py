"""Rounds on real servers: from loaded data and back to them, and servers that take turns through sysbench."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest

from build.finished_build import Build
from build.version import Engine
from suites.accounting.costs import Meter
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators import sysbench
from suites.generators.load import Load, Share
from suites.generators.programs import lines_of_all
from suites.generators.sysbench import Sysbench
from suites.generators.transcript import Slice, SysbenchTranscript
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.postgres import shared_memory
from suites.postgres.server import PostgresServer
from suites.sizing import Sizes, this_machine
from suites.slices import Schedule, mirrored
from tests.new_servers.data_directories import create
from tests.suites.servers import exists, lives, of_each, small

pytestmark = pytest.mark.server

SUITE = load_suite("write-heavy")
ROWS, TABLES = 20_000, 2
AnyServer = PostgresServer | InnodbServer


def room(threads: int = 1) -> Sizes:
    """Bound to one core, as a machine with one client is."""
    return replace(small(rows=ROWS, tables=TABLES, threads=threads), bound_to=this_machine().usable[-1:])


@contextmanager
def loaded(build: Build, folder: Path, sizes: Sizes) -> Iterator[AnyServer]:
    """A server with loaded data, kept; it is down."""
    fast = {"fsync": "off"} if build.version.engine is Engine.POSTGRES else {}
    server = make_server(build, sizes, Durability.RELAXED, folder, fast)
    assert isinstance(server, PostgresServer | InnodbServer)
    try:
        create(server, sizes)
        server.start()
        Sysbench(SUITE, sizes).load(server.address)
        server.reset()
        server.keep()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="module")
def loaded_of(
    server_folders: Callable[[], AbstractContextManager[Path]],
) -> Iterator[Callable[[Build], AnyServer]]:
    """Gives the loaded server of a build, which all tests share: each begins from a copy of its data."""
    servers: dict[str, AnyServer] = {}
    with server_folders() as folder, ExitStack() as stack:

        def of(build: Build) -> AnyServer:
            if build.key not in servers:
                place = folder / str(len(servers))
                servers[build.key] = stack.enter_context(loaded(build, place, room()))
            return servers[build.key]

        yield of


@pytest.fixture(params=["postgres_18", "mysql_9", "mariadb_11"], ids=["postgres", "mysql", "mariadb"])
def server(request: pytest.FixtureRequest, loaded_of: Callable[[Build], AnyServer]) -> Iterator[AnyServer]:
    """A server of each engine with loaded data; it is down."""
    server = loaded_of(request.getfixturevalue(request.param))
    yield server
    server.abandon()


def fresh(server: AnyServer) -> None:
    """Up, from the loaded data."""
    server.restore()
    server.start()


def query(server: AnyServer, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a statement about the tables, which it calls {0} and {1}."""
    prefix = "" if isinstance(server, PostgresServer) else "tidemark."
    text = statement.format(*(f"{prefix}sbtest{table}" for table in range(1, TABLES + 1)))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []


def count(server: AnyServer) -> int:
    ((rows,),) = query(server, "SELECT (SELECT COUNT(*) FROM {0}) + (SELECT COUNT(*) FROM {1})")
    return int(rows)


def contents(server: AnyServer) -> list[tuple[Any, ...]]:
    """Differs when any row does."""
    if isinstance(server, InnodbServer):
        return query(server, "CHECKSUM TABLE {0}, {1}")
    whole = "SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM {} AS t"
    return query(server, whole.format("{0}")) + query(server, whole.format("{1}"))


def change_everything(server: AnyServer) -> None:
    for table in ("{0}", "{1}"):
        query(server, f"UPDATE {table} SET k = k + 1")
        query(server, f"DELETE FROM {table} WHERE id < 100")
    query(server, "DROP TABLE {1}" if isinstance(server, PostgresServer) else "TRUNCATE TABLE {1}")


# --- from loaded data and back


def test_every_restore_brings_back_the_loaded_rows(server: AnyServer) -> None:
    assert not list(server.loaded.rglob("#ib_redo*_tmp")), "InnoDB's spare files are copied for nothing"
    seen = []
    for _ in range(2):
        fresh(server)
        seen.append(contents(server))
        assert count(server) == ROWS * TABLES
        change_everything(server)
    assert seen[0] == seen[1]
    fresh(server)
    assert contents(server) == seen[0]
    assert "recovery" not in _since_last_start(server)


def _since_last_start(server: AnyServer) -> str:
    """Of Postgres: what it was loaded from had been shut down in order."""
    log = server.log.read_text()
    return log[log.rindex("starting PostgreSQL") :] if isinstance(server, PostgresServer) else ""


def test_abandoned_servers_leave_nothing(server: AnyServer) -> None:
    fresh(server)
    root = psutil.Process(server.pid)
    processes = [root, *root.children(recursive=True)]
    shared = shared_memory.segments_of(server.data).system_v
    client = server.connect()
    server.abandon()
    assert not any(of_each(processes, lives))
    assert shared is None or not exists(shared)
    assert not server.address.socket.exists()
    assert server.death() == "it was stopped"
    client.close()
    server.abandon()
    fresh(server)
    assert count(server) == ROWS * TABLES


@pytest.mark.skipif(len(this_machine().usable) < 2, reason="bound to one core already")
def test_a_bound_server_is_bound_with_all_its_processes(server: AnyServer) -> None:
    fresh(server)
    client = server.connect()
    root = psutil.Process(server.pid)
    processes = [root, *root.children(recursive=True)]
    threads = [Path(f"/proc/{process.pid}/task") for process in processes]
    allowed = {_allowed(task) for thread in threads for task in thread.iterdir()}
    assert allowed == {str(this_machine().usable[-1])}
    client.close()


def _allowed(task: Path) -> str:
    status = (task / "status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list"))


# --- turns


@dataclass
class Pair:
    """Two servers with the same loaded data, and what their load generators printed last."""

    servers: list[AnyServer]
    lines: list[list[str]]
    origin: float = 0.0
    """Second of the monotonic clock at which the first slice of the last run was to begin."""

    def run(self, step: str, share: Share, sizes: Sizes | None = None) -> list[Load]:
        for said in self.lines:
            said.clear()
        addresses = [server.address for server in self.servers]
        meters = [Meter(server.pid, shared=True) for server in self.servers]
        generator = Sysbench(SUITE, sizes or room())
        return generator.alternate(addresses, SUITE.select((step,))[0], share, meters)

    def slices(self, place: int) -> list[Slice]:
        """Those of one server, with the ones that only warm up; each at its place."""
        said = [line.replace("tidemark: warm-up", "tidemark: slice") for line in self.lines[place]]
        return _transcript(said).slices

    def warmed(self, place: int) -> int:
        return _transcript(self.lines[place]).warming


def _transcript(lines: Sequence[str]) -> SysbenchTranscript:
    read = SysbenchTranscript()
    for line in lines:
        read.read(line)
    return read


@pytest.fixture(params=["postgres_17", "mysql_9"])
def servers(
    request: pytest.FixtureRequest, postgres_18: Build, loaded_of: Callable[[Build], AnyServer]
) -> list[AnyServer]:
    """Postgres 18 and another one."""
    return [loaded_of(build) for build in (postgres_18, request.getfixturevalue(request.param))]


@pytest.fixture
def pair(servers: list[AnyServer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    made = Pair(servers, [[] for _ in servers])

    def noting(
        commands: Sequence[Sequence[str]], *arguments: Any, **options: Any
    ) -> Iterator[tuple[int, int, str]]:
        (made.origin,) = {float(_option(command, "--slice_origin=")) for command in commands}
        for place, pid, line in lines_of_all(commands, *arguments, **options):
            made.lines[place].append(line)
            yield place, pid, line

    monkeypatch.setattr(sysbench, "lines_of_all", noting)
    for server in servers:
        fresh(server)
    yield made
    for server in servers:
        server.abandon()


def _option(command: Sequence[str], name: str) -> str:
    return next(word.removeprefix(name) for word in command if word.startswith(name))


def test_slices_do_not_overlap_and_each_server_works_in_its_own(pair: Pair) -> None:
    """None begins too early. On a busy machine single ones wake late, or have a slow last transaction."""
    schedule = mirrored(range(2), 2.4, 0.3, "seed", 0.3)
    pair.run("update-nonindex", Share(schedule, 1))
    worked = sorted(
        (part.began, part.ended, server, part.place) for server in (0, 1) for part in pair.slices(server)
    )
    assert [server for _, _, server, _ in worked] == list(schedule.order)
    for server in (0, 1):
        assert [place for *_, whose, place in worked if whose == server] == list(range(1, 10))
    begins = [pair.origin + 0.3 * place for place in range(len(worked) + 1)]
    late = [began - begin for (began, *_), begin in zip(worked, begins[:-1], strict=True)]
    assert min(late) > -1e-5, "the clock is read to a microsecond"
    assert median(late) < schedule.gap_seconds
    beyond = [ended - end for (_, ended, *_), end in zip(worked, begins[1:], strict=True)]
    assert median(beyond) < 0
    assert all(sum(part.per_second) > 0 for server in (0, 1) for part in pair.slices(server))


def test_what_is_counted_is_what_the_servers_have_committed(pair: Pair) -> None:
    before = [count(server) for server in pair.servers]
    loads = pair.run("insert", Share(mirrored(range(2), 1.2, 0.3, "seed", 0.3), 1))
    for place, server in enumerate(pair.servers):
        assert pair.warmed(place) > 0
        assert count(server) - before[place] == loads[place].transactions + pair.warmed(place)
        assert loads[place].watched_queries == loads[place].queries + pair.warmed(place)
        assert loads[place].errors == 0
        assert loads[place].seconds == pytest.approx(4 * (0.3 - 0.02), abs=0.05)


def test_waiting_is_no_latency(pair: Pair) -> None:
    """Of four slices of half a second each server waits for two: its latencies would be twice its time."""
    loads = pair.run("update-index", Share(Schedule(0.5, (0, 1, 1, 0)), 1))
    for load in loads:
        assert load.latency_ms["mean"] * load.transactions / 1000 < 1.05 * load.seconds
        assert 1 <= len(load.longest_ms) <= 2
        assert max(load.longest_ms) == pytest.approx(load.latency_ms["max"], rel=0.05, abs=0.05)


def test_several_threads_take_their_turns_together(pair: Pair) -> None:
    sizes = room(threads=3)
    before = [count(server) for server in pair.servers]
    loads = pair.run("insert", Share(Schedule(0.4, (0, 1, 1, 0)), 1), sizes)
    for place, server in enumerate(pair.servers):
        slices = pair.slices(place)
        for number in (1, 2):
            began = [part.began for part in slices if part.place == number]
            assert len(began) == 3
            assert max(began) - min(began) < 0.15
        assert count(server) - before[place] == loads[place].transactions
        assert loads[place].seconds == pytest.approx(2 * 0.38, abs=0.08)


# --- delete


def test_a_delete_spends_its_limit_evenly_over_its_slices(pair: Pair) -> None:
    """The limit holds for what warms up too: those rows are gone as well.

    Spent in the first slices alone, an A B B A would be cut off after A B, and favour whoever came first.
    """
    limit, slices = 700, 7  # a busy machine, too, does a hundred in 0.3 s
    loads = pair.run("delete", Share(Schedule(0.3, (0, 1, *(0, 1, 1, 0) * 3), warming=2), 1, limit))
    for place, server in enumerate(pair.servers):
        assert ROWS * TABLES - count(server) == limit, "every delete found its row"
        assert [sum(part.per_second) for part in pair.slices(place)] == [limit // slices] * slices
        assert pair.warmed(place) == limit // slices
        assert loads[place].transactions == limit - limit // slices


@pytest.mark.parametrize("threads", [1, 2])
def test_a_delete_that_goes_on_never_meets_a_row_that_is_gone(pair: Pair, threads: int) -> None:
    """Blocks of mode long: each begins where the ones before may have ended, however far they came."""
    sizes, part = room(threads=threads), 300
    for block in range(4):
        before = [count(server) for server in pair.servers]
        share = Share(Schedule(0.5, (0, 1, 1, 0)), block + 1, part, block * part)
        loads = pair.run("delete", share, sizes)
        for place, server in enumerate(pair.servers):
            assert before[place] - count(server) == loads[place].transactions
            assert 0 < loads[place].transactions <= part
