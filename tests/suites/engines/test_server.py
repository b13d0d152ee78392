"""A real Postgres server: how it is made, reached and stopped."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import psycopg
import pytest

from build.accounts import AccountError, server_account
from build.finished_build import Build
from suites.accounting.work_curve import TotalsReader
from suites.capabilities import SettingError
from suites.engines import require_settings
from suites.keys.durability import Durability
from suites.metrics import DEADLOCKS, FIRST_ANSWER, START
from suites.postgres.configuration import PORT
from suites.postgres.server import PostgresServer
from suites.server import ServerError
from tests.suites.servers import ask, exists, lives, of_each, running, segment, small, tree, value

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"wrok_mem": "8MB"}, 'unrecognized configuration parameter "wrok_mem"'),
        ({"shared_buffers": "lots"}, 'invalid value for parameter "shared_buffers": "lots"'),
    ],
)
def test_the_server_is_asked_before_whether_it_knows_a_setting(
    postgres_18: Build, settings: dict[str, str], said: str
) -> None:
    require_settings(postgres_18, small(), Durability.RELAXED, {"work_mem": "8MB"})
    with pytest.raises(SettingError, match=re.escape(f"{postgres_18.version} refuses its settings: {said}")):
        require_settings(postgres_18, small(), Durability.RELAXED, settings)


@pytest.fixture(scope="module")
def living(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[PostgresServer]:
    """A server for questions that change nothing."""
    with server_folders() as folder, running(postgres_18, folder) as server:
        yield server


# --- what it is like


def test_a_start_says_how_long_it_took(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        for end in (server.stop, server.abandon):
            end()
            began = time.monotonic()
            took = server.start()
            elapsed = time.monotonic() - began
            assert took.keys() == {START, FIRST_ANSWER}
            assert min(took.values()) > 0
            assert 0.5 * elapsed < sum(took.values()) <= elapsed, "all but closing the connection"


def test_data_checksums_are_on(living: PostgresServer) -> None:
    assert value(living, "SHOW data_checksums") == "on"


def test_no_tcp_socket_is_open(living: PostgresServer) -> None:
    assert value(living, "SHOW listen_addresses") == ""
    sockets = of_each(tree(living), lambda process: process.net_connections(kind="inet"))
    assert len(sockets) > 3
    assert not any(sockets)
    unix = psutil.Process(living.pid).net_connections(kind="unix")
    assert {str(connection.laddr) for connection in unix} - {""} == {str(living.folder / f".s.PGSQL.{PORT}")}


def test_every_process_belongs_to_the_unprivileged_user(living: PostgresServer) -> None:
    account = server_account()
    expected = os.geteuid() if account is None else account.pw_uid
    assert expected != 0
    assert set(of_each(tree(living), lambda process: process.uids().effective)) == {expected}
    assert (living.data / "PG_VERSION").stat().st_uid == expected
    assert living.data.stat().st_mode & 0o077 == 0


def test_the_effective_settings_are_all_there(living: PostgresServer) -> None:
    settings = living.settings()
    assert len(settings) == value(living, "SELECT count(*) FROM pg_settings") > 300
    assert settings["io_method"] == "sync"
    assert settings["shared_buffers"] == "8192 8kB"
    assert settings["max_wal_size"] == "256 MB"
    assert settings["synchronous_commit"] == "off"
    assert settings["jit"] == "off"


@pytest.mark.parametrize("engine", ["postgres_17", "postgres_18"])
def test_what_clients_do_is_told_by_their_wait_events(
    request: pytest.FixtureRequest, engine: str, server_folder: Path
) -> None:
    with (
        running(request.getfixturevalue(engine), server_folder) as server,
        server.connect() as holder,
        server.connect() as waiter,
        server.connect() as _idle,
        server.open_client_states() as states,
        ThreadPoolExecutor() as others,
    ):
        assert states.read() == {}, "nobody executes anything"
        holder.execute("CREATE TABLE held ()")
        holder.execute("BEGIN; LOCK TABLE held")
        waits = others.submit(waiter.execute, "SELECT FROM held")
        assert seen(states.read, "waiting;Lock:relation") == {"waiting;Lock:relation": 1}
        sleeps = others.submit(holder.execute, "SELECT sum(a) FROM generate_series(1, 3000000) a; COMMIT")
        assert seen(states.read, "working;CPU") == {"waiting;Lock:relation": 1, "working;CPU": 1}
        for done in (sleeps, waits):
            done.result()
        server.abandon()
        with pytest.raises(ServerError, match=re.escape(str(server.build.version))):
            states.read()


def seen(read: Callable[[], Mapping[str, int]], state: str) -> Mapping[str, int]:
    """Return what clients do as soon as one of them does this."""
    deadline = time.monotonic() + 20
    while state not in (found := read()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def test_before_18_there_is_no_io_method(server_folder: Path, postgres_17: Build) -> None:
    with running(postgres_17, server_folder, overrides={"work_mem": "5MB"}) as server:
        settings = server.settings()
        assert "io_method" not in settings
        assert settings["work_mem"] == "5120 kB"
        assert settings["server_version"] == postgres_17.release


def test_the_oldest_version_starts(server_folder: Path, postgres_13: Build) -> None:
    with running(postgres_13, server_folder) as server:
        assert value(server, "SHOW server_version") == postgres_13.release
        assert server.settings()["data_checksums"] == "on"


def test_another_folder_with_an_apostrophe_changes_no_setting(
    server_folder: Path, postgres_18: Build, living: PostgresServer
) -> None:
    folder = server_folder / "it's here"
    folder.mkdir(mode=0o755)
    with running(postgres_18, folder) as server:
        assert value(server, "SHOW unix_socket_directories") == str(folder / "pg")
        assert server.settings() == living.settings()
        assert server.settings()["data_directory"] == "FOLDER/data"


def test_deadlocks_are_counted(living: PostgresServer) -> None:
    before = living.counters()[DEADLOCKS]
    lock = "SELECT pg_advisory_xact_lock({})"
    with living.connect() as one, living.connect() as other, ThreadPoolExecutor() as pool:
        for connection, number in ((one, 1), (other, 2)):
            connection.execute("BEGIN")
            connection.execute(lock.format(number))
        waits = pool.submit(one.execute, lock.format(2))
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            other.execute(lock.format(1))
        other.close()
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            waits.result()
    deadline = time.monotonic() + 20  # a backend adds its own when its client is gone
    while living.counters()[DEADLOCKS] == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert living.counters()[DEADLOCKS] == before + 1


def test_the_position_in_the_log_advances_with_writes(living: PostgresServer) -> None:
    before = living.counters()["wal_bytes_per_op"]
    ask(living, "SELECT pg_logical_emit_message(false, 'test', repeat('x', 100000))")
    assert 100_000 <= living.counters()["wal_bytes_per_op"] - before < 200_000


def test_a_checkpoint_is_over_once_it_has_begun_and_ended(server_folder: Path, postgres_17: Build) -> None:
    with running(postgres_17, server_folder) as server:
        has_ended = server.checkpoint_meter()
        ask(server, "CREATE TABLE written AS SELECT 1 AS x")
        assert not has_ended(), "the last one began before"
        ask(server, "CHECKPOINT")
        assert has_ended()
        assert not server.checkpoint_meter()()


def test_private_memory_is_what_a_connection_keeps_and_not_the_buffers_that_it_reads(
    living: PostgresServer,
) -> None:
    reader = TotalsReader(living.pid, dict)
    with living.connect() as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None

        def grown_by(*queries: str) -> int:
            connection.execute("SELECT 1")
            before = reader.read().private
            for query in queries:
                connection.execute(query)
            after = reader.read().private
            assert living.pid in before
            return after[row[0]] - before[row[0]]

        create = "CREATE TEMP TABLE read AS SELECT repeat('x', 100) AS x FROM generate_series(1, 20000)"
        grown_by(create.replace(" TEMP", ""), "SELECT count(*) FROM read")
        assert grown_by("SELECT count(*) FROM read") < 200_000, "2 MB of shared buffers"
        kept = [f"PREPARE kept_{number} AS SELECT x FROM read WHERE x = '{number}'" for number in range(300)]
        assert grown_by(*kept) > 300 * 2000
        grown_by("DROP TABLE read")


# --- start and stop


def test_data_outlives_a_stop(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        ask(server, "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
        processes = tree(server)
        server.stop()
        assert not any(of_each(processes, lives))
        assert not (server.folder / f".s.PGSQL.{PORT}").exists()
        assert server.death() == "it was stopped"
        with pytest.raises(ServerError, match="is not running"):
            assert server.pid
        server.stop()
        server.start()
        assert value(server, "SELECT count(*) FROM kept") == 100
        assert "was shut down at" in server.log.read_text()


def test_a_stop_with_clients_leaves_nothing(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        client = server.connect()
        client.execute("BEGIN")
        shared = segment(server)
        server.destroy()
        assert not exists(shared)
        assert not server.folder.exists()
        client.close()


def test_a_setting_that_the_server_refuses(server_folder: Path, postgres_18: Build) -> None:
    server = PostgresServer(
        postgres_18, small(), Durability.RELAXED, server_folder / "pg", {"shared_buffers": "lots"}
    )
    server.create()
    with pytest.raises(ServerError) as caught:
        server.start()
    assert caught.value.what.startswith("postgres@18.6 did not start: exit status 1; the end of its log:\n")
    assert 'invalid value for parameter "shared_buffers": "lots"' in caught.value.what
    assert caught.value.where == str(server.log)
    server.destroy()


def test_a_socket_path_that_is_too_long(server_folder: Path, postgres_18: Build) -> None:
    folder = server_folder / ("x" * 100)
    server = PostgresServer(postgres_18, small(), Durability.RELAXED, folder)
    length = len(f"{folder}/.s.PGSQL.5432")
    with pytest.raises(ServerError) as caught:
        server.create()
    assert caught.value.what == (f"the path of the server's socket has {length} bytes; the limit is 107")
    assert "TIDEMARK_HOME" in caught.value.hint
    assert not folder.exists()


def test_the_longest_socket_path_works(server_folder: Path, postgres_18: Build) -> None:
    room = 107 - len(f"{server_folder}//pg/.s.PGSQL.5432")
    folder = server_folder / ("x" * room)
    folder.mkdir(mode=0o755)
    with running(postgres_18, folder) as server:
        assert value(server, "SELECT 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")
def test_a_folder_that_the_server_user_cannot_reach(server_folder: Path, postgres_18: Build) -> None:
    closed = server_folder / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(AccountError) as caught:
        PostgresServer(postgres_18, small(), Durability.RELAXED, closed / "pg").create()
    assert caught.value.where == str(closed)
