"""pgbench's steps on a real server: the client of one version against the server of another."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import load_suite
from suites.generators.load import Load, LoadError, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.postgres.server import PostgresServer
from suites.turns.turn import load_values
from tests.suites.servers import ask, running, small, value

pytestmark = pytest.mark.server

SUITE = load_suite("pgbench")
ROOM = small(rows=100_000, threads=2)


@pytest.fixture(scope="module")
def server(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_17: Build, postgres_18: Build
) -> Iterator[PostgresServer]:
    with server_folders() as folder, running(postgres_17, folder, ROOM) as started:
        Pgbench(SUITE, ROOM, postgres_18).load(started.address)
        yield started


def step_run(
    server: PostgresServer, client: Build, name: str, work: WorkLimit, meter: Meter | None = None
) -> Load:
    (step,) = SUITE.select((name,))
    return Pgbench(SUITE, ROOM, client).run(server.address, step, work, meter or Meter(server.pid))


def history(server: PostgresServer) -> int:
    """Rows of the table to which every writing transaction adds one."""
    return int(value(server, "SELECT count(*) FROM pgbench_history"))


def test_the_client_is_of_another_version(server: PostgresServer, postgres_18: Build) -> None:
    assert Pgbench(SUITE, ROOM, postgres_18).version() == f"pgbench (PostgreSQL) {postgres_18.release}"
    assert value(server, "SHOW server_version") == server.build.release != postgres_18.release
    assert value(server, "SELECT count(*) FROM pgbench_accounts") == 100_000


@pytest.mark.parametrize(
    ("name", "queries", "writes"),
    [("tpcb-like", 7, True), ("simple-update", 5, True), ("select-only", 1, False)],
)
def test_each_step(server: PostgresServer, postgres_18: Build, name: str, queries: int, writes: bool) -> None:
    before = history(server)
    meter = Meter(server.pid)
    load = step_run(server, postgres_18, name, WorkLimit(3, None), meter)
    assert load.errors == 0
    assert load.queries == queries * load.transactions
    assert history(server) - before == (load.transactions if writes else 0)
    assert load.seconds == pytest.approx(3, abs=0.3)
    assert load.latency_ms.keys() == {"mean", "p50", "p95", "p99", "p999", "max"}
    assert load.latency_ms["p50"] <= load.latency_ms["p95"] <= load.latency_ms["max"]
    assert load.latency_ms["mean"] <= load.latency_ms["max"]
    assert len(load.per_second) in (2, 3)
    assert 0.5 < load.watched_seconds < 2.5
    costs = meter.per_query(load.watched_queries)
    assert costs["server_cpu_us_per_op"] > 1
    assert costs["client_cpu_us_per_op"] > 0.1


def test_fixed_work_is_exact(server: PostgresServer, postgres_18: Build) -> None:
    before = history(server)
    load = step_run(server, postgres_18, "simple-update", WorkLimit(30, 500))
    assert load.transactions == history(server) - before == 500


def test_the_oldest_client_is_understood(server: PostgresServer, postgres_13: Build) -> None:
    load = step_run(server, postgres_13, "select-only", WorkLimit(2, None))
    assert load.transactions > 100
    assert load.seconds == pytest.approx(2, abs=0.3)
    assert load.latency_ms["p99"] > 0


def test_a_server_without_the_tables(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder, ROOM) as empty, pytest.raises(LoadError) as caught:
        step_run(empty, postgres_18, "tpcb-like", WorkLimit(2, None))
    assert caught.value.what == (
        "pgbench failed with exit status 1: could not count number of branches: "
        'ERROR: relation "pgbench_branches" does not exist'
    )


def test_a_suite_of_ones_own_needs_no_python(
    server: PostgresServer, postgres_18: Build, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(
        (SUITE.folder / "suite.toml").read_text().split("[[steps]]")[0]
        + '[[steps]]\nname = "add"\ntitle = "Add"\nscripts = ["x.sql"]\nqueries = 2\n'
    )
    (tmp_path / "x.sql").write_text("SELECT 1;\nUPDATE counted SET n = n + 1;\n")
    tmp_path.chmod(0o755)
    suite = load_suite(str(tmp_path))
    ask(server, "SET ROLE tidemark; CREATE TABLE counted AS SELECT 0 AS n")
    load = Pgbench(suite, ROOM, postgres_18).run(
        server.address, suite.steps[0], WorkLimit(30, 100), Meter(server.pid)
    )
    assert (load.transactions, load.queries) == (100, 200)
    assert value(server, "SELECT n FROM counted") == 100


FAILING = """
CREATE FUNCTION fail_or_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.aid % 50 = 0 THEN RAISE EXCEPTION 'not now' USING ERRCODE = 'serialization_failure'; END IF;
    IF NEW.aid % 400 = 1 THEN PERFORM pg_sleep(0.25); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fail_or_wait BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION fail_or_wait()
"""


def test_failures_have_a_cause_and_waits_a_second(server: PostgresServer, postgres_18: Build) -> None:
    """One transaction in 50 is rolled back with 40001, and one in 400 waits for a quarter of a second."""
    ask(server, FAILING)
    try:
        load = step_run(server, postgres_18, "simple-update", WorkLimit(3, None))
    finally:
        ask(server, "DROP FUNCTION fail_or_wait() CASCADE")
    assert load.failed == {"serialisation": load.errors, "deadlock": 0}
    assert load.errors == pytest.approx(load.transactions / 50, rel=0.8)
    values = load_values(load)
    assert values["failed_serialisation"] == load.errors > 0
    assert 2 <= values["seconds_beyond_200_ms"] <= len(load.longest_ms) <= 5
    assert max(load.longest_ms) == pytest.approx(values["latency_max_ms"])
    assert max(load.longest_ms) >= 250
