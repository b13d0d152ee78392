"""A real MySQL: its files, its configuration, its logins, its death and its recovery."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pymysql
import pytest

from build.build import Build
from suites.accounting.costs import Meter
from suites.capabilities import SettingError
from suites.definition import Step, load_suite
from suites.durability import Durability
from suites.engines import require_settings
from suites.generators.load import Load, LoadError, Share, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.measurement import Measurement
from suites.mysql.reset import DRIVEN, ResetLimits
from suites.mysql.server import MysqlServer
from suites.server import ResetError, ServerError
from suites.slices import Schedule
from suites.step import run_slices
from tests.suites.servers import small

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"no_such_thing": "1"}, "unknown variable 'no_such_thing=1'"),
        ({"sort_buffer_size": "lots"}, "Error while setting value 'lots' to 'sort_buffer_size'"),
    ],
)
def test_the_server_is_asked_before_whether_it_knows_a_setting(
    mysql_9: Build, settings: dict[str, str], said: str
) -> None:
    require_settings(mysql_9, small(), Durability.RELAXED, {"sort_buffer_size": "1M"})
    with pytest.raises(SettingError, match=re.escape(said)):
        require_settings(mysql_9, small(), Durability.RELAXED, settings)


SUITE = load_suite("write-heavy")
ROOM = small(rows=5000, tables=2)


@contextmanager
def running(build: Build, folder: Path, durability: Durability = Durability.RELAXED) -> Iterator[MysqlServer]:
    server = MysqlServer(build, ROOM, durability, folder / "my", {})
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="module")
def loaded(mysql_9: Build, server_folders: object) -> Iterator[MysqlServer]:
    """A server with the write-heavy tables, shared by the tests that only look or run steps."""
    assert callable(server_folders)
    with server_folders() as folder, running(mysql_9, folder) as server:
        Sysbench(SUITE, ROOM).load(server.address)
        server.reset()
        yield server


def value(server: MysqlServer, query: str) -> object:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        (row,) = cursor.fetchall()
        return row[0]


def load(server: MysqlServer, name: str, work: WorkLimit) -> Load:
    generator = Sysbench(SUITE, ROOM)
    return generator.run(server.address, step(name), work, Meter(server.pid))


def measure(server: MysqlServer, name: str, transactions: int) -> Measurement:
    """A step of one server, as a session runs it."""
    share = Share(Schedule(1.0, (0,)), 1, transactions)
    (measured,) = run_slices([server], Sysbench(SUITE, ROOM), step(name), share, 0.0)
    return measured


def step(name: str) -> Step:
    return SUITE.select((name,))[0]


def test_reached_through_the_socket_only_and_not_as_root(loaded: MysqlServer) -> None:
    process = psutil.Process(loaded.pid)
    assert process.net_connections(kind="inet") == []
    if os.geteuid() == 0:
        assert process.uids().real != 0
    assert loaded.folder.stat().st_mode & 0o077 == 0
    assert value(loaded, "SELECT @@skip_networking") == 1


def test_the_configuration_is_in_effect(loaded: MysqlServer) -> None:
    settings = loaded.settings()
    assert settings["innodb_flush_log_at_trx_commit"] == "0"
    assert settings["sync_binlog"] == "0"
    assert settings["gtid_mode"] == "OFF"
    assert settings["log_bin"] == "ON"
    assert settings["innodb_adaptive_hash_index"] == "OFF"
    assert int(settings["innodb_buffer_pool_size"]) >= ROOM.buffer_bytes
    assert int(settings["innodb_redo_log_capacity"]) == ROOM.wal_limit_bytes
    assert "mysqlx_port" not in settings or settings.get("mysqlx") == "OFF"
    assert "default_authentication_plugin" not in settings


def test_the_account_logs_in_by_caching_sha2_password(loaded: MysqlServer) -> None:
    plugin = "SELECT plugin FROM mysql.user WHERE user = 'tidemark'"
    assert value(loaded, plugin) == "caching_sha2_password"
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(unix_socket=str(loaded.address.socket), user="tidemark", password="wrong")


def test_the_rows_are_those_of_postgres(loaded: MysqlServer) -> None:
    """The load is a function of the seed alone: this is the sum that tests of Postgres' tables see too."""
    assert value(loaded, "SELECT COUNT(*) FROM tidemark.sbtest2") == 5000
    assert value(loaded, "SELECT CONCAT(MIN(k), ' ', MAX(k), ' ', SUM(k)) FROM tidemark.sbtest1") is not None


@pytest.mark.parametrize("name", [each.name for each in SUITE.steps])
def test_every_step_runs_and_does_what_it_says(loaded: MysqlServer, name: str) -> None:
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


@contextmanager
def never_flushing_when_idle(server: MysqlServer) -> Iterator[None]:
    with server.connect() as connection:
        connection.query("SET GLOBAL innodb_idle_flush_pct = 0")
        yield
        connection.query("SET GLOBAL innodb_idle_flush_pct = DEFAULT")


def test_the_reset_purges_and_puts_the_settings_back(loaded: MysqlServer) -> None:
    before = {name: value(loaded, f"SELECT @@global.{name}") for name in DRIVEN}
    # Purge goes on in the background and can be done before the reset looks, unless somebody still reads; so
    # does flushing, which takes any moment without work for a time to write everything, unless told not to.
    with never_flushing_when_idle(loaded):
        with contextlib.closing(loaded.connect()) as holder:
            holder.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            load(loaded, "update-nonindex", WorkLimit(2, 4000))
            time.sleep(2.5)  # the page cleaner takes a server without work for idle after a second
        metrics = loaded.reset()
    assert metrics["reset_history_before"] > metrics["reset_history_after"]
    assert metrics["reset_dirty_pages_before"] > metrics["reset_dirty_pages_after"]
    assert metrics["table_bytes"] > 1_000_000
    assert metrics["index_bytes"] > 100_000
    assert {name: value(loaded, f"SELECT @@global.{name}") for name in DRIVEN} == before


def test_a_purge_that_cannot_finish_names_the_transaction_and_its_age(loaded: MysqlServer) -> None:
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
        assert caught.value.metrics["reset_history_after"] > limits.history
        measured = measure(loaded, "update-one", 500)
        assert "not reset" in measured.warnings[0]
        assert measured.values["reset_history_after"] > limits.history
    finally:
        holder.close()
        loaded.limits = limits
    assert loaded.reset()["reset_history_after"] <= limits.history


def test_full_durability_is_in_effect(mysql_9: Build, server_folder: Path) -> None:
    with running(mysql_9, server_folder, Durability.FULL) as server:
        settings = server.settings()
        assert (settings["innodb_flush_log_at_trx_commit"], settings["sync_binlog"]) == ("1", "1")


def test_killed_in_a_step_it_says_so_and_recovers(mysql_9: Build, server_folder: Path) -> None:
    with running(mysql_9, server_folder) as server:
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


def test_a_refused_login_is_said(mysql_9: Build, server_folder: Path) -> None:
    with running(mysql_9, server_folder) as server:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("ALTER USER tidemark@localhost ACCOUNT LOCK")
        with pytest.raises(ServerError) as caught:
            server.connect()
        assert "refuses the login of 'tidemark'" in str(caught.value)
        with pytest.raises(LoadError, match="sysbench failed"):
            load(server, "update-one", WorkLimit(1, 10))


def test_a_data_directory_left_by_another_version_is_refused(mysql_9: Build, server_folder: Path) -> None:
    server = MysqlServer(mysql_9, ROOM, Durability.RELAXED, server_folder / "my", {})
    server.create()
    history = server.data / "mysql_upgrade_history"
    history.write_text(history.read_text().replace('"9.7.2"', '"9.6.0"'))
    with pytest.raises(ServerError, match=r"last used by MySQL 9\.6\.0, not 9\.7\.2"):
        server.start()
    with pytest.raises(ServerError, match=r"last used by MySQL 9\.6\.0"):
        server.create()


def test_a_damaged_redo_log_is_said_with_the_log(mysql_9: Build, server_folder: Path) -> None:
    server = MysqlServer(mysql_9, ROOM, Durability.RELAXED, server_folder / "my", {})
    try:
        server.create()
        for file in (server.data / "#innodb_redo").iterdir():
            file.unlink()
        (server.data / "#innodb_redo").rmdir()
        (server.data / "ibdata1").write_bytes(b"nothing")
        with pytest.raises(ServerError) as caught:
            server.start()
        assert "did not start" in str(caught.value)
        assert "InnoDB" in str(caught.value)
    finally:
        server.destroy()


def test_a_setting_it_does_not_know_is_said_with_the_log(mysql_9: Build, server_folder: Path) -> None:
    server = MysqlServer(mysql_9, ROOM, Durability.RELAXED, server_folder / "my", {"innodb_nonsense": "1"})
    with pytest.raises(ServerError, match="innodb_nonsense"):
        server.create()
    server.destroy()
