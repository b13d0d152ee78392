"""A real Postgres server that is killed: what it is found to have died of, what it leaves, how it comes back.

No other server of ours lives meanwhile: of the shared memory of a killed one nobody could say whose it was.
"""

import os
import signal
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.postgres import reset
from suites.postgres.server import PostgresServer
from suites.server import ServerError
from tests.suites.servers import ask, dead, exists, lives, of_each, running, segment, tree, value

pytestmark = pytest.mark.server


def test_a_killed_postmaster_comes_back(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        assert server.death() is None
        ask(server, "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
        ask(server, "SET synchronous_commit = on; CREATE TABLE flushed ()")
        shared = segment(server)
        os.kill(server.pid, signal.SIGKILL)
        ended = dead(server)
        assert ended.startswith("killed by SIGKILL; the end of its log:\n")
        assert "database system is ready to accept connections" in ended
        with pytest.raises(ServerError, match="does not accept connections"):
            server.settings()
        server.stop()
        assert not exists(shared)
        server.start()
        assert value(server, "SELECT count(*) FROM kept") == 100
        assert "automatic recovery in progress" in server.log.read_text()


def test_a_killed_backend_ends_the_server_which_comes_back(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        with server.connect() as connection:
            victim = connection.info.backend_pid
            os.kill(victim, signal.SIGKILL)
            ended = dead(server)
        assert ended.startswith("client backend (PID ")
        assert f"client backend (PID {victim}) was terminated by signal 9: Killed" in ended
        server.stop()
        server.start()
        assert server.death() is None
        assert value(server, "SELECT 1") == 1


def test_destroy_cleans_up_after_a_killed_postmaster(server_folder: Path, postgres_17: Build) -> None:
    """Also a backend that has not noticed: one that is stopped notices nothing."""
    with running(postgres_17, server_folder) as server:
        client = server.connect()
        processes, shared = tree(server), segment(server)
        os.kill(client.info.backend_pid, signal.SIGSTOP)
        os.kill(server.pid, signal.SIGKILL)
        server.destroy()
        assert not any(of_each(processes, lives))
        assert not exists(shared)
        assert not server.folder.exists()
        client.close()


def test_a_server_that_dies_in_its_reset(
    server_folder: Path, postgres_18: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg's exceptions do not leave the room: the step fails, and the session goes on."""
    with running(postgres_18, server_folder) as server:
        monkeypatch.setattr(reset, "vacuum_all", lambda *_: os.kill(server.pid, signal.SIGKILL))
        with pytest.raises(ServerError) as caught:
            _reset_often(server)
        assert "killed by SIGKILL" in str(caught.value)


def _reset_often(server: PostgresServer) -> None:
    """Backends notice that the postmaster is gone only when they next wait."""
    for _ in range(100):
        server.reset()
