"""The reset after a step, on real servers."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg
import pytest

from build.finished_build import Build
from suites import server as server_module
from suites.generators.load import CountedLoad, CountedWork, Load, Observer, Share, WorkLimit
from suites.keys.step import Step
from suites.metrics import BEFORE, DEAD_ITEMS, DEAD_ITEMS_LEFT, LOG_BYTES, METRICS, NOT_FROZEN, NOT_VISIBLE
from suites.postgres import reset
from suites.postgres.server import PostgresServer
from suites.server import Address, ResetError, ServerError
from suites.slices import Schedule
from suites.turns.run import run_slices
from tests.suites.servers import ask, dead, running, value

pytestmark = pytest.mark.server

ROWS = 5000
TABLE = f"""CREATE TABLE debt WITH (autovacuum_enabled = off) AS
SELECT id, 0 AS n, repeat('x', 50) AS pad FROM generate_series(1, {ROWS}) AS id"""


@pytest.fixture
def server(server_folder: Path, postgres_18: Build) -> Iterator[PostgresServer]:
    with running(postgres_18, server_folder) as started:
        make_debt(started)
        yield started


def make_debt(server: PostgresServer) -> None:
    """A table with an index, whose rows have all been updated once."""
    ask(server, TABLE)
    ask(server, "CREATE UNIQUE INDEX ON debt (id)")
    ask(server, "UPDATE debt SET n = n + 1")
    deadline = time.monotonic() + 30
    while not dead_tuples(server) and time.monotonic() < deadline:
        time.sleep(0.05)


def dead_tuples(server: PostgresServer) -> int:
    return int(value(server, "SELECT sum(n_dead_tup) FROM pg_stat_user_tables"))


def require_rest(server: PostgresServer) -> None:
    """Reset the server and check that it is at rest, and that the metrics tell the truth."""
    assert dead_tuples(server) == ROWS
    before = server.counters()["wal_bytes_per_op"]
    sizes = [value(server, f"SELECT {size}('debt')") for size in ("pg_table_size", "pg_indexes_size")]
    metrics = server.reset()
    assert metrics.keys() <= METRICS.keys()
    assert metrics["reset_dead_tuples_before"] == ROWS
    assert metrics["reset_dead_tuples_after"] == 0 == dead_tuples(server)
    if server.build.numbers[0] >= 14:
        assert ROWS * 0.9 < metrics[DEAD_ITEMS] <= ROWS
        assert metrics[DEAD_ITEMS_LEFT] == 0
    assert 0 < metrics["reset_wal_bytes"] <= server.counters()["wal_bytes_per_op"] - before
    parts = metrics["reset_vacuum_seconds"], metrics["reset_checkpoint_seconds"]
    assert min(parts) > 0
    assert sum(parts) <= metrics["reset_seconds"]
    assert [metrics[BEFORE[name]] for name in ("table_bytes", "index_bytes")] == sizes
    assert metrics["table_bytes"] == value(server, "SELECT pg_table_size('debt')")
    assert metrics["index_bytes"] == value(server, "SELECT pg_indexes_size('debt')")
    wal = sum(file.stat().st_size for file in (server.data / "pg_wal").iterdir() if file.is_file())
    assert metrics[LOG_BYTES] == wal
    assert value(server, "SELECT count(*) FROM pg_stat_progress_vacuum") == 0
    vacuums = "SELECT vacuum_count, analyze_count, n_live_tup FROM pg_stat_user_tables"
    assert ask(server, vacuums) == [(1, 1, ROWS)]


def test_every_page_is_all_visible_though_commits_were_asynchronous(
    server_folder: Path, postgres_18: Build
) -> None:
    """Without a flush a vacuum cannot mark pages whose commits only the WAL writer would write to disk.

    The commits of the vacuum of one table kept those of the others from it: of three, two had no marks.
    """
    sleepy = {"wal_writer_delay": "10000", "wal_writer_flush_after": "1GB", "autovacuum": "off"}
    with running(postgres_18, server_folder, overrides=sleepy) as server:
        for number in range(3):
            ask(server, TABLE.replace("debt", f"debt{number}"))
        metrics = server.reset()
        rows = "SELECT sum(relallvisible), sum(relpages) FROM pg_class WHERE relname LIKE 'debt%'"
        ((visible, pages),) = ask(server, rows)
        assert visible == pages > 30
        assert metrics[NOT_VISIBLE] == pytest.approx(3 / (pages + 3)), "only the maps have no mark"


@pytest.mark.parametrize("version", ["postgres_18", "postgres_17", "postgres_13"])
def test_the_share_of_pages_that_a_vacuum_left_to_do(
    server_folder: Path, version: str, request: pytest.FixtureRequest
) -> None:
    """Partitions have pages, and the table above them has none."""
    with running(request.getfixturevalue(version), server_folder) as server:
        ask(server, "CREATE TABLE parted (id int) PARTITION BY RANGE (id)")
        ask(server, "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9999999)")
        ask(server, "INSERT INTO parted SELECT generate_series(1, 50000)")
        ask(server, "VACUUM (FREEZE, ANALYZE)")
        ask(server, TABLE)
        metrics = server.reset()
        pages = {
            name: value(server, f"SELECT pg_relation_size('{name}') / 8192") for name in ("part", "debt")
        }
    every = sum(pages.values()) + 2
    assert metrics[NOT_VISIBLE] == pytest.approx(2 / every)
    if version == "postgres_18":
        assert metrics[NOT_FROZEN] == pytest.approx((pages["debt"] + 2) / every)
    else:
        assert NOT_FROZEN not in metrics, "vacuums do not count them"


def test_dead_tuples_are_gone(server: PostgresServer) -> None:
    require_rest(server)
    log = server.log.read_text()
    assert "checkpoint complete: " in log


@pytest.mark.parametrize("version", ["postgres_17", "postgres_15", "postgres_13"])
def test_dead_tuples_are_gone_in_older_versions(
    server_folder: Path, version: str, request: pytest.FixtureRequest
) -> None:
    with running(request.getfixturevalue(version), server_folder) as server:
        make_debt(server)
        require_rest(server)


def test_what_a_vacuum_says_of_dead_rows_is_read() -> None:
    removed = (
        "index scan needed: 94 pages from table (100.00% of total) had 5000 dead item identifiers removed"
    )
    left = "index scan bypassed: 1 pages from table (0.96% of total) have 12 dead item identifiers"
    assert reset.dead_items([]) == reset.dead_items(['analyzing "public.debt"']) == {}
    assert reset.dead_items([f"finished vacuuming\n{removed}\n", left]) == {
        DEAD_ITEMS: 5012,
        DEAD_ITEMS_LEFT: 12,
    }


def test_dead_rows_that_a_vacuum_leaves_in_the_indexes_are_counted(server: PostgresServer) -> None:
    messages: list[str] = []
    with server.connect() as connection:
        connection.add_notice_handler(lambda notice: messages.append(notice.message_primary or ""))
        connection.execute("VACUUM (VERBOSE, INDEX_CLEANUP OFF) debt")
    found = reset.dead_items(messages)
    assert found[DEAD_ITEMS_LEFT] == found[DEAD_ITEMS] > ROWS * 0.9


def test_every_table_of_every_schema_is_vacuumed(server: PostgresServer) -> None:
    ask(server, 'CREATE SCHEMA "Odd one"')
    for name in ('"Odd one"."select"', "third", "fourth"):
        ask(server, f"CREATE TABLE {name} AS SELECT generate_series(1, 100) AS id")
    server.reset()
    assert value(server, "SELECT array_agg(vacuum_count) FROM pg_stat_user_tables") == [1, 1, 1, 1]


def test_a_server_without_tables_can_be_reset(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as empty:
        metrics = empty.reset()
    assert metrics["table_bytes"] == metrics["reset_dead_tuples_before"] == 0
    assert metrics.keys() & {NOT_VISIBLE, NOT_FROZEN} == set()


# --- what stands in the way


class Updating:
    """A load generator that updates every row once more."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def version(self) -> str:
        return "none"

    def load(self, address: Address) -> None:
        del address

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        raise AssertionError("it takes turns, if alone")

    def statements(self, address: Address, step: Step) -> list[str]:
        return []

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        raise AssertionError("it is not counted")

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        del addresses, step, share, observers
        ask(self.server, "UPDATE debt SET n = n + 1")
        return [Load(1, 1.0, 1.0, 0, (), {}, 0.0, 0.0)]


def test_the_debt_waits_for_no_connection_of_tidemark(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for clients that are about to disconnect, which what reads totals meanwhile was not."""
    waited, read = [], server.debt

    def timed() -> Mapping[str, float]:
        began = time.monotonic()
        found = read()
        waited.append(time.monotonic() - began)
        return found

    monkeypatch.setattr(server, "debt", timed)
    run_slices(
        [server], Updating(server), Step(name="update", title="Update"), Share(Schedule(1.0, (0,)), 1), 0
    )
    assert max(waited) < reset.STATISTICS_SECONDS / 2


def test_a_transaction_that_still_sees_dead_rows_is_named(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reset, "STATISTICS_SECONDS", 0.5)
    share = Share(Schedule(1.0, (0,)), 1)
    step = Step(name="update", title="Update")
    with server.connect() as holder:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM debt")
        pid = holder.info.backend_pid
        time.sleep(1.1)
        (measurement,) = run_slices([server], Updating(server), step, share, 0.0)
        holder.execute("ROLLBACK")
    (warning,) = measurement.warnings
    assert warning.startswith(f"not reset: {ROWS} dead tuples are left after the vacuum of public.debt")
    assert f"process {pid} (client backend, idle in transaction, transaction open" in warning
    age = int(warning.split("transaction open for ")[1].split(" s")[0])
    assert 1 <= age <= 30
    assert "end the transaction that may still need them" in warning
    assert measurement.values["wal_bytes_per_op"] > 100 * ROWS / 2
    assert measurement.values["reset_dead_tuples_after"] == ROWS
    assert measurement.values[NOT_VISIBLE] > 0.5, "pages with dead tuples are not marked"
    assert measurement.values["reset_vacuum_seconds"] > 0
    assert "reset_seconds" not in measurement.values, "it waited for statistics without dead tuples"
    assert server.reset()["reset_dead_tuples_after"] == 0


def test_a_vacuum_that_runs_is_waited_for(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vacuum of somebody else, slowed down to last longer than the reset of the other tables."""
    monkeypatch.setattr(reset, "TABLES", "SELECT 'public', 'none' WHERE false")
    monkeypatch.setattr(reset, "NAMEABLE_DEAD_SHARE", 2.0)

    def slow() -> None:
        with server.connect() as connection:
            connection.execute("SET vacuum_cost_delay = 20")
            connection.execute("SET vacuum_cost_limit = 25")
            connection.execute("VACUUM debt")

    other = threading.Thread(target=slow)
    other.start()
    while value(server, "SELECT count(*) FROM pg_stat_progress_vacuum") == 0:
        time.sleep(0.01)
    metrics = server.reset()
    assert value(server, "SELECT count(*) FROM pg_stat_progress_vacuum") == 0
    assert (
        metrics["reset_seconds"] > metrics["reset_vacuum_seconds"] + metrics["reset_checkpoint_seconds"] + 0.1
    )
    other.join()


def test_a_vacuum_that_does_not_end_is_named(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset, "VACUUM_WAIT_SECONDS", 0)
    monkeypatch.setattr(reset, "TABLES", "SELECT 'public', 'none' WHERE false")
    with server.connect() as other:
        pid = other.info.backend_pid
        other.execute("SET vacuum_cost_delay = 100")
        other.execute("SET vacuum_cost_limit = 1")
        slow = threading.Thread(target=lambda: _until_cancelled(other))
        slow.start()
        while value(server, "SELECT count(*) FROM pg_stat_progress_vacuum") == 0:
            time.sleep(0.01)
        with pytest.raises(ResetError) as caught:
            server.reset()
        other.cancel_safe()
        slow.join()
    assert caught.value.what == "a vacuum still runs after 0 s"
    assert f"process {pid} on debt, " in caught.value.where


def _until_cancelled(connection: reset.Connection) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("VACUUM debt")


def test_a_reset_of_a_server_that_hangs_is_ended(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", 0.5)
    # A backend that sleeps stands for one that hangs.
    monkeypatch.setattr(reset, "wal_position", lambda connection: connection.execute("SELECT pg_sleep(60)"))
    with pytest.raises(ServerError, match=r"the reset took longer than 0\.5 s; the server was killed"):
        server.reset()
    assert dead(server)
