"""Real servers and clients that fail: what is told is the cause, and who is to blame."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from build.finished_build import Build
from suites.definition import load_suite
from suites.generators.load import LoadError, Share
from suites.generators.sysbench import Sysbench
from suites.postgres.server import PostgresServer
from suites.server import Server
from suites.slices import Schedule
from suites.turns.failures import ServerDiedError, loading_failure, with_logged
from suites.turns.run import run_slices
from tests.suites import innodb_servers
from tests.suites.servers import ask, running, small, value

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

SUITE = load_suite("write-heavy")
ROOM = small(rows=2000, threads=2)
BACKENDS = """FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND query !~ 'wal_lsn' AND pid <> pg_backend_pid()"""

AGAIN = """CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'made up, again and again' USING errcode = '40001'; END $$;
    CREATE TRIGGER again BEFORE UPDATE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION again()"""

AGAIN_INNODB = """CREATE TRIGGER tidemark.again BEFORE UPDATE ON tidemark.sbtest1 FOR EACH ROW
    SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'made up, again and again'"""


def failing(server: Server, generator: Sysbench, harm: Callable[[], object], slices: int = 60) -> str:
    """What is told of a step that is harmed while it runs."""

    def after_a_while() -> None:
        time.sleep(3)
        harm()

    (step,) = SUITE.select(("update-index",))
    thread = threading.Thread(target=after_a_while)
    thread.start()
    try:
        with pytest.raises(ServerDiedError) as caught:
            run_slices([server], generator, step, Share(Schedule(0.5, (0,) * slices), 1), 0.0)
    finally:
        thread.join()
    assert caught.value.place == 0
    return str(caught.value)


@pytest.fixture
def loaded(server_folder: Path, postgres_18: Build) -> Iterator[tuple[PostgresServer, Sysbench]]:
    with running(postgres_18, server_folder, ROOM) as server:
        generator = Sysbench(SUITE, ROOM)
        generator.load(server.address)
        yield server, generator


def test_a_lost_connection_is_no_crash(loaded: tuple[PostgresServer, Sysbench]) -> None:
    """Although sysbench crashes of it."""
    server, generator = loaded
    told = failing(server, generator, lambda: ask(server, f"SELECT pg_terminate_backend(pid) {BACKENDS}"))
    assert told.startswith(
        "the load generator lost its connection to postgres@18.6: "
        "terminating connection due to administrator command (sysbench was killed by signal 11"
    )
    assert server.death() is None


def test_a_crashed_backend_is_the_servers(loaded: tuple[PostgresServer, Sysbench]) -> None:
    """Although the client crashes as well, and the postmaster only ends."""
    server, generator = loaded
    of_a_client = f"SELECT pid {BACKENDS} AND query ~ 'sbtest' LIMIT 1"
    harm = lambda: os.kill(value(server, of_a_client), signal.SIGSEGV)  # noqa: E731
    told = failing(server, generator, harm)
    assert told.startswith("postgres@18.6 died during update-index: client backend (PID ")
    first, _, log = told.partition("; the end of its log:\n")
    assert first.endswith("was terminated by signal 11: Segmentation fault")
    assert "Failed process was running: UPDATE sbtest1" in log
    server.abandon()
    server.start()
    assert server.death() is None, "the crash was before this start"


def test_a_statement_that_fails_again_and_again(loaded: tuple[PostgresServer, Sysbench]) -> None:
    server, generator = loaded
    began = time.monotonic()
    told = failing(server, generator, lambda: ask(server, AGAIN), slices=120)
    assert time.monotonic() - began < 60, "the slices would take longer"
    assert "sysbench failed with exit status 1: a transaction was rolled back 1000 times in " in told
    assert " s: made up, again and again in " in told


def test_the_same_of_mysql(server_folder: Path, mysql_9: Build) -> None:
    with innodb_servers.running(mysql_9, server_folder) as server:
        generator = Sysbench(SUITE, small(rows=2000))
        generator.load(server.address)

        def harm() -> None:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(AGAIN_INNODB)

        told = failing(server, generator, harm, slices=120)
    assert "a transaction was rolled back 1000 times in " in told
    assert "made up, again and again" in told


def test_a_server_that_crashes_while_it_is_loaded(server_folder: Path, postgres_18: Build) -> None:
    room = small(rows=300_000)
    with running(postgres_18, server_folder, room) as server:

        def harm() -> None:
            while not (found := ask(server, f"SELECT pid {BACKENDS} AND query ~ '^INSERT'")):
                time.sleep(0.02)
            os.kill(found[0][0], signal.SIGSEGV)

        thread = threading.Thread(target=harm)
        thread.start()
        try:
            with pytest.raises(LoadError) as caught:
                Sysbench(SUITE, room).load(server.address)
        finally:
            thread.join()
        told = loading_failure(server, caught.value)
    assert told.startswith("postgres@18.6 died while it was loaded: client backend (PID ")
    assert "was terminated by signal 11" in told


def test_a_statement_that_failed_is_told_although_its_generator_was_ended() -> None:
    logged = ["division by zero", "connection to client lost"]
    server = SimpleNamespace(errors_logged=lambda: logged, build=SimpleNamespace(version="postgres@18.6"))
    error = LoadError("orders.sql, line 3: division by zero")
    assert with_logged(cast("Server", server), error) == "orders.sql, line 3: division by zero"
