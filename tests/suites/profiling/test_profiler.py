"""perf on real servers: roles, functions, and what becomes of a step when perf is in trouble."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from build.finished_build import Build
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.load import Share
from suites.generators.pgbench.client import Pgbench
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.postgres.server import PostgresServer
from suites.profiling.perf import Perf, PerfError, find_perf
from suites.profiling.profiler import Profiling
from suites.server import Server
from suites.slices import Schedule
from suites.turns.run import run_slices
from tests.new_servers.data_directories import create
from tests.suites.servers import running, small

pytestmark = pytest.mark.server
SUITE = load_suite("write-heavy")
STEP = SUITE.select(("update-index",))[0]
SHARE = Share(Schedule(0.25, (0, 0, 0, 0)), round=1)


@pytest.fixture(scope="module")
def profiling() -> Profiling:
    try:
        perf = find_perf()
    except PerfError as error:
        pytest.skip(str(error))
    return Profiling(perf, seconds=2, slice_seconds=0.25)


@pytest.fixture(scope="module")
def postgres(server_folders, postgres_18: Build) -> Iterator[Server]:  # type: ignore[no-untyped-def]
    with server_folders() as folder, running(postgres_18, folder, small(rows=10_000)) as server:
        Sysbench(SUITE, small(rows=10_000)).load(server.address)
        yield server


def generator() -> Sysbench:
    return Sysbench(SUITE, small(rows=10_000))


def rows_of(server: PostgresServer) -> int:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM sbtest1")
        ((rows,),) = cursor.fetchall()
    return int(rows)


@pytest.mark.parametrize("during", [False, True])
def test_a_step_of_postgres_is_profiled(postgres: Server, profiling: Profiling, during: bool) -> None:
    chosen = replace(profiling, during=during)
    (measured,) = run_slices([postgres], generator(), STEP, SHARE, 0, profiling=chosen)
    profile = measured.profile
    assert profile is not None, measured.warnings
    assert profile.event in ("cycles", "cpu-clock")
    assert profile.samples > 200
    roles = {stack.split(";")[0] for stack in profile.stacks}
    assert "client backend" in roles
    assert roles <= {
        "client backend", "postmaster", "checkpointer", "background writer", "walwriter", "io worker",
        "autovacuum launcher", "autovacuum worker", "logical replication launcher", "other",
    }  # fmt: skip
    assert any("heap_update" in stack for stack in profile.stacks)
    assert profile.quality.unknown < 0.05
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "perf"]


@pytest.mark.alone
def test_as_much_is_sampled_as_the_meter_sees(
    server_folder: Path, postgres_18: Build, profiling: Profiling
) -> None:
    """Per query, of one client that shares the server's core, as sessions bind both.

    On two cores that idle between queries a timer is no measure: 0.7 to 1.8 times as much is sampled there.
    """
    room = replace(small(rows=10_000), bound_to=(max(os.sched_getaffinity(0)),))
    with running(postgres_18, server_folder, room) as server:
        sysbench = Sysbench(SUITE, room)
        sysbench.load(server.address)
        during = replace(profiling, during=True)
        share = Share(Schedule(0.25, (0,) * 8), round=11)
        (measured,) = run_slices([server], sysbench, STEP, share, 0, profiling=during)
    profile = measured.profile
    assert profile is not None, measured.warnings
    sampled = profile.samples * profile.microseconds_per_sample
    assert 0.85 < sampled / measured.values["server_cpu_us_per_op"] < 1.2


def test_two_servers_are_profiled_apart(
    server_folder: Path, postgres: Server, postgres_17: Build, profiling: Profiling
) -> None:
    with running(postgres_17, server_folder, small(rows=10_000)) as other:
        generator().load(other.address)
        share = Share(Schedule(0.25, (0, 1, 1, 0)), round=2)
        found = run_slices([postgres, other], generator(), STEP, share, 0, profiling=profiling)
    for measured in found:
        assert measured.profile is not None
        assert measured.profile.samples > 50, "a quarter of its half a second, on a busy machine"


def test_a_delete_is_profiled_beyond_the_rows_it_has_used(
    postgres: PostgresServer, profiling: Profiling
) -> None:
    step = SUITE.select(("delete",))[0]
    share = Share(Schedule(0.25, (0, 0)), 3, transactions=2000)
    before = rows_of(postgres)
    (measured,) = run_slices([postgres], generator(), step, share, 0, profiling=profiling)
    assert measured.values["transactions"] <= 2000
    assert measured.profile is not None
    assert 0 < measured.profile.queries <= 1000
    assert before - rows_of(postgres) == measured.values["transactions"] + measured.profile.queries


def test_pgbench_is_profiled_within_its_runs(
    server_folder: Path, postgres_18: Build, profiling: Profiling
) -> None:
    suite = load_suite("pgbench")
    room = small(rows=100_000)
    with running(postgres_18, server_folder, room) as server:
        pgbench = Pgbench(suite, room, postgres_18)
        pgbench.load(server.address)
        step = suite.steps[0]
        chosen = replace(profiling, slice_seconds=3, seconds=6)
        share = Share(Schedule(3, (0, 0)), round=1)
        (measured,) = run_slices([server], pgbench, step, share, 0, profiling=chosen)
    assert measured.profile is not None
    assert measured.profile.samples > 200


@pytest.mark.parametrize(
    ("build", "background"), [("mysql_9", "log writer"), ("mariadb_11", "InnoDB worker")]
)
def test_threads_of_innodb_servers_have_roles(
    server_folder: Path, build: str, background: str, profiling: Profiling, request: pytest.FixtureRequest
) -> None:
    room = small(rows=5000)
    server = make_server(request.getfixturevalue(build), room, Durability.RELAXED, server_folder / "my", {})
    try:
        create(server, room)
        server.start()
        load = Sysbench(SUITE, room)
        load.load(server.address)
        stacks: set[str] = set()
        # On a busy machine a thread in the background may not be on a core in any sample of a second.
        for _ in range(5):
            (measured,) = run_slices([server], load, STEP, SHARE, 0, profiling=profiling)
            assert measured.profile is not None
            stacks |= set(measured.profile.stacks)
            roles = {stack.split(";")[0] for stack in stacks}
            if background in roles:
                break
    finally:
        server.destroy()
    assert {"client connection", background} <= roles
    assert any("row_upd" in stack for stack in stacks)


def test_a_perf_that_fails_costs_the_profile_only(
    postgres: Server, profiling: Profiling, tmp_path: Path
) -> None:
    broken = tmp_path / "perf"
    broken.write_text("#!/bin/sh\necho out of events >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    chosen = replace(profiling, perf=Perf(str(broken), "cpu-clock"))
    (measured,) = run_slices([postgres], generator(), STEP, SHARE, 0, profiling=chosen)
    assert measured.profile is None
    assert measured.values["qps"] > 0
    (warning,) = [text for text in measured.warnings if text.startswith("no profile")]
    assert "out of events" in warning


def test_a_machine_without_perf_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PerfError, match="perf is not installed") as caught:
        find_perf()
    assert "run ./tidemark setup, which installs it" in str(caught.value)


def test_a_perf_that_may_not_sample_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forbidden = tmp_path / "perf"
    forbidden.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit\n"
        "printf 'Error:\\nAccess to performance monitoring is limited.\\n' >&2\nexit 255\n"
    )
    forbidden.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(PerfError, match="perf may not sample here") as caught:
        find_perf()
    assert "Access to performance monitoring is limited" in str(caught.value)
    assert "./tidemark check --fix" in str(caught.value)
