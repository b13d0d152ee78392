"""Real servers of the MySQL family: what MySQL and MariaDB have to do alike."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pymysql
import pytest

from build.finished_build import Build
from build.version import Engine
from suites.accounting.costs import Meter
from suites.accounting.work_curve import TotalsReader
from suites.capabilities import knows_setting
from suites.generators.load import LoadError, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.innodb.reset import ResetLimits
from suites.innodb.server import InnodbServer, log_capacity
from suites.keys.durability import Durability
from suites.metrics import BEFORE, BUFFER_POOL, DEADLOCKS
from suites.server import ResetError, ServerError
from tests.suites.innodb_servers import ROOM, SUITE, load, made, measure, running, step, value

pytestmark = pytest.mark.server

BUILDS = ("mysql_9", "mariadb_11")
HISTORY = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"


@pytest.fixture(scope="module", params=BUILDS)
def build(request: pytest.FixtureRequest) -> Build:
    """One build of each engine; skipped where it is not in the cache."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Build)
    return found


@pytest.fixture(scope="module")
def loaded(build: Build, server_folders: object) -> Iterator[InnodbServer]:
    """A server with the write-heavy tables, shared by the tests that only look or run steps."""
    assert callable(server_folders)
    with server_folders() as folder, running(build, folder) as server:
        Sysbench(SUITE, ROOM).load(server.address)
        server.reset()
        yield server


def test_reached_through_the_socket_only_and_not_as_root(loaded: InnodbServer) -> None:
    process = psutil.Process(loaded.pid)
    assert process.net_connections(kind="inet") == []
    if os.geteuid() == 0:
        assert process.uids().real != 0
    assert loaded.folder.stat().st_mode & 0o077 == 0
    assert value(loaded, "SELECT @@skip_networking") == 1


def test_the_rows_are_those_of_postgres(loaded: InnodbServer) -> None:
    """The load is a function of the seed alone: this is the sum that tests of Postgres' tables see too."""
    assert value(loaded, "SELECT COUNT(*) FROM tidemark.sbtest2") == 5000
    assert value(loaded, "SELECT CONCAT(MIN(k), ' ', MAX(k), ' ', SUM(k)) FROM tidemark.sbtest1") is not None


@pytest.mark.parametrize("name", [listed.name for listed in SUITE.steps])
def test_every_step_runs_and_does_what_it_says(loaded: InnodbServer, name: str) -> None:
    count = "SELECT (SELECT COUNT(*) FROM tidemark.sbtest1) + (SELECT COUNT(*) FROM tidemark.sbtest2)"
    before = int(str(value(loaded, count)))
    measured = measure(loaded, name, 2000)
    done = int(measured.values["transactions"])
    change = {"delete": -done, "insert": done}.get(name, 0)
    assert int(str(value(loaded, count))) == before + change
    assert not measured.warnings
    assert measured.values["errors"] == 0
    assert measured.values["wal_bytes_per_op"] > 20
    assert measured.values["pages_flushed_per_op"] >= 0
    assert measured.values["reset_history_after"] <= ResetLimits().history
    assert measured.values["reset_dirty_pages_after"] <= ResetLimits().dirty_pages
    assert measured.values["reset_purge_seconds"] >= 0
    assert measured.values["reset_flush_seconds"] >= 0
    assert measured.values["server_cpu_us_per_op"] > 0


def test_pages_that_the_buffer_pool_takes_in_are_private_memory_that_is_counted_apart(
    build: Build, server_folder: Path
) -> None:
    """A new server has most of its pool untouched; rows of 2 MB and more then use it."""
    with running(build, server_folder) as server, server.open_counters() as counters:
        reader = TotalsReader(server.pid, counters)
        before = reader.read()
        Sysbench(SUITE, ROOM).load(server.address)
        after = reader.read()
        pool = after.totals[BUFFER_POOL] - before.totals[BUFFER_POOL]
        grown = after.private[server.pid] - before.private[server.pid]
        assert list(after.private) == [server.pid]
        assert 2_000_000 < pool < grown < pool + 100_000_000


def test_deadlocks_are_counted(loaded: InnodbServer) -> None:
    before = loaded.counters()[DEADLOCKS]
    with loaded.connect() as connection:  # a table of its own: steps delete rows of the others
        connection.query("CREATE TABLE tidemark.locked (id int PRIMARY KEY)")
        connection.query("INSERT INTO tidemark.locked VALUES (1), (2)")
        connection.commit()
    lock = "SELECT id FROM tidemark.locked WHERE id = {} FOR UPDATE"
    with loaded.connect() as one, loaded.connect() as other, ThreadPoolExecutor() as pool:
        for connection, number in ((one, 1), (other, 2)):
            connection.query("BEGIN")
            connection.query(lock.format(number))
        waits = pool.submit(one.query, lock.format(2))
        with suppress(pymysql.err.OperationalError):
            other.query(lock.format(1))
        other.query("ROLLBACK")
        with suppress(pymysql.err.OperationalError):
            waits.result()
    assert loaded.counters()[DEADLOCKS] == before + 1
    with loaded.connect() as connection:
        connection.query("DROP TABLE tidemark.locked")


@contextmanager
def never_flushing_when_idle(server: InnodbServer) -> Iterator[None]:
    """MariaDB never does, unless innodb_max_dirty_pages_pct_lwm is set."""
    if not knows_setting(server.build, "innodb_idle_flush_pct"):
        yield
        return
    with server.connect() as connection:
        connection.query("SET GLOBAL innodb_idle_flush_pct = 0")
        yield
        connection.query("SET GLOBAL innodb_idle_flush_pct = DEFAULT")


def test_the_reset_purges_and_puts_the_settings_back(loaded: InnodbServer) -> None:
    before = {name: value(loaded, f"SELECT @@global.{name}") for name in loaded.DRIVEN}
    # Purge goes on as soon as nobody reads any more, and can be done before the reset looks; so can flushing,
    # which takes any moment without work for a time to write everything, unless told not to.
    with never_flushing_when_idle(loaded):
        with loaded.keeping_row_versions():
            load(loaded, "update-nonindex", WorkLimit(2, 4000))
            time.sleep(2.5)  # the page cleaner takes a server without work for idle after a second
            unpurged = float(str(value(loaded, HISTORY)))
        metrics = loaded.reset()
    assert unpurged > loaded.limits.history >= metrics["reset_history_after"]
    assert metrics["reset_dirty_pages_before"] > metrics["reset_dirty_pages_after"]
    assert metrics["table_bytes"] > 1_000_000
    assert metrics["index_bytes"] > 100_000
    assert metrics["reset_history_left"] == metrics["reset_dirty_pages_left"] == 0
    assert min(metrics["log_file_bytes"], metrics["undo_bytes"]) > 1_000_000
    assert min(metrics[name] for name in BEFORE.values()) > 100_000
    assert {name: value(loaded, f"SELECT @@global.{name}") for name in loaded.DRIVEN} == before


def test_a_purge_that_cannot_finish_names_the_transaction_and_its_age(loaded: InnodbServer) -> None:
    limits, loaded.limits = loaded.limits, replace(loaded.limits, seconds=2)
    holder = loaded.connect()
    try:
        with holder.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute("SELECT CONNECTION_ID()")
            (row,) = cursor.fetchall()
        time.sleep(1.1)
        load(loaded, "update-nonindex", WorkLimit(2, 2000))
        with pytest.raises(ResetError) as caught:
            loaded.reset()
        assert f"connection {row[0]}" in str(caught.value)
        assert "open for " in str(caught.value)
        left = caught.value.metrics["reset_history_left"]
        assert left == caught.value.metrics["reset_history_after"] > limits.history
        measured = measure(loaded, "update-one", 500)
        assert "not reset" in measured.warnings[0]
        assert measured.values["reset_history_after"] > limits.history
    finally:
        holder.close()
        loaded.limits = limits
    assert loaded.reset()["reset_history_after"] <= limits.history


def test_pages_that_are_still_dirty_at_the_end_of_the_limit_are_counted(loaded: InnodbServer) -> None:
    limits, loaded.limits = loaded.limits, replace(loaded.limits, dirty_pages=-1, seconds=2)
    try:
        with pytest.raises(ResetError, match="pages are still dirty after 2 s") as caught:
            loaded.reset()
    finally:
        loaded.limits = limits
    metrics = caught.value.metrics
    assert metrics["reset_dirty_pages_left"] == metrics["reset_dirty_pages_after"]
    assert loaded.reset()["reset_dirty_pages_left"] == 0


def test_a_checkpoint_is_over_once_the_log_was_written_around(build: Build, server_folder: Path) -> None:
    name = "redo_log_capacity" if build.version.engine is Engine.MYSQL else "log_file_size"
    with (
        running(build, server_folder) as server,
        server.connect() as connection,
        connection.cursor() as cursor,
    ):
        assert log_capacity(connection) == ROOM.wal_limit_bytes
        cursor.execute(f"SET GLOBAL innodb_{name} = {8 * 2**20}")
        assert log_capacity(connection) == 8 * 2**20
        written = server.checkpoint_meter()
        cursor.execute("CREATE TABLE tidemark.large (x LONGBLOB)")
        cursor.execute("INSERT INTO tidemark.large VALUES (REPEAT('x', 4000000))")
        assert 0.3 < written() < 1
        cursor.execute("INSERT INTO tidemark.large SELECT x FROM tidemark.large")
        cursor.execute("INSERT INTO tidemark.large SELECT x FROM tidemark.large")
        assert written() == 1


def test_full_durability_is_in_effect(build: Build, server_folder: Path) -> None:
    with running(build, server_folder, Durability.FULL) as server:
        settings = server.settings()
        assert (settings["innodb_flush_log_at_trx_commit"], settings["sync_binlog"]) == ("1", "1")
        places = (str(server_folder), str(build.prefix))
        assert not [name for name, value in settings.items() if any(place in value for place in places)]
        assert (settings["datadir"], settings["basedir"][:6]) == ("FOLDER/data/", "PREFIX")
        assert "server_uuid" not in settings


def test_killed_in_a_step_it_says_so_and_recovers(build: Build, server_folder: Path) -> None:
    with running(build, server_folder) as server:
        Sysbench(SUITE, ROOM).load(server.address)
        killer = psutil.Process(server.pid)

        class Killing(Meter):
            def begin(self, pid: int) -> None:
                super().begin(pid)
                time.sleep(0.5)
                killer.send_signal(signal.SIGKILL)

        with pytest.raises(LoadError):
            Sysbench(SUITE, ROOM).run(
                server.address, step("update-index"), WorkLimit(5, None), Killing(server.pid)
            )
        ended = server.death()
        assert ended is not None
        assert "killed by SIGKILL" in ended
        server.stop()
        server.start()
        log = server.log.read_text()
        assert "crash recovery" in log or "Starting XA crash recovery" in log
        assert value(server, "SELECT COUNT(*) FROM tidemark.sbtest1") == 5000
        server.reset()


def test_a_refused_login_is_said(build: Build, server_folder: Path) -> None:
    with running(build, server_folder) as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("ALTER USER root@localhost ACCOUNT LOCK")
        with pytest.raises(ServerError) as caught:
            server.connect()
        assert "refuses the login of 'root'" in str(caught.value)
        with pytest.raises(LoadError, match="sysbench failed"):
            load(server, "update-one", WorkLimit(1, 10))


def test_a_setting_it_does_not_know_is_said_with_the_log(build: Build, server_folder: Path) -> None:
    server = made(build, server_folder, {"innodb_nonsense": "1"})
    with pytest.raises(ServerError, match="innodb_nonsense"):
        server.create()
    server.destroy()


def test_the_loaded_rows_come_back(loaded: InnodbServer) -> None:
    """As between rounds: keep, restore and start; the changes of a round are gone."""
    rows = "SELECT COUNT(*) FROM tidemark.sbtest1"
    loaded.keep()
    for _ in range(2):
        loaded.restore()
        loaded.start()
        before = value(loaded, rows)
        with loaded.connect() as connection:
            connection.query("DELETE FROM tidemark.sbtest1 WHERE id < 100")
        assert value(loaded, rows) != before
