"""Connects to real servers that take turns: how long they take, and who is to blame when one fails."""

import time
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.metrics import CONNECT
from suites.postgres.server import PostgresServer
from suites.turns.connects import connect_values
from suites.turns.failures import ServerDiedError
from tests.suites import innodb_servers
from tests.suites.servers import running, value

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]


def sessions(server: PostgresServer) -> int:
    """The sessions of the database so far, once all others have ended."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'tidemark' AND pid <> pg_backend_pid()"
    while value(server, others):
        time.sleep(0.02)
    return int(value(server, "SELECT sessions FROM pg_stat_database WHERE datname = 'tidemark'"))


def test_every_server_has_as_many_connects(
    server_folder: Path, postgres_17: Build, postgres_18: Build
) -> None:
    with running(postgres_17, server_folder / "1") as old, running(postgres_18, server_folder / "2") as new:
        before = [sessions(server) for server in (old, new)]
        found = connect_values([old, new])
        assert [values.keys() for values in found] == [{CONNECT}, {CONNECT}]
        assert all(0.1 < values[CONNECT] < 500 for values in found)
        extra = [sessions(server) - known for server, known in zip((old, new), before, strict=True)]
        assert extra[0] == extra[1] >= 30


def test_a_server_that_is_gone_is_named(server_folder: Path, postgres_17: Build, postgres_18: Build) -> None:
    with running(postgres_17, server_folder / "1") as old, running(postgres_18, server_folder / "2") as new:
        new.stop()
        died = r"postgres@18\.\d+ died while clients connected: it was stopped"
        with pytest.raises(ServerDiedError, match=died) as error:
            connect_values([old, new])
        assert error.value.place == 1


def test_mysql_has_connects(server_folder: Path, mysql_9: Build) -> None:
    with innodb_servers.running(mysql_9, server_folder) as server:
        assert 0.1 < connect_values([server])[0][CONNECT] < 500
