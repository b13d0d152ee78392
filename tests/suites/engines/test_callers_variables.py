"""Real servers and clients of a caller with hostile variables: measured is what was asked for."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import psycopg
import pytest

from build.environment import kept_from_process
from build.finished_build import Build
from suites.checking.queries import connected
from suites.generators.load import WorkLimit
from suites.generators.programs import lines_of
from suites.generators.sysbench import Sysbench
from suites.postgres.configuration import PORT
from suites.postgres.server import PostgresServer
from tests.suites import innodb_servers
from tests.suites.servers import running

pytestmark = pytest.mark.server

HOSTILE = {
    "PGOPTIONS": "-c work_mem=64kB",
    "PGSSLMODE": "verify-full",
    "PGHOSTADDR": "192.0.2.1",
    "PGCONNECT_TIMEOUT": "never",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGCHANNELBINDING": "require",
    "PGTARGETSESSIONATTRS": "standby",
    "PGGSSENCMODE": "require",
    "PGCLIENTENCODING": "LATIN1",
    "PGMINPROTOCOLVERSION": "3.2",
    "PGTZ": "Asia/Kathmandu",
    "PGDATESTYLE": "German",
    "PGGEQO": "off",
    "PGSERVICEFILE": "/nowhere",
    "TZ": "Asia/Kathmandu",
}
"""Values that do harm; any other variable of libpq gets one that is none."""

OF_LIBPQ = {option.envvar.decode() for option in psycopg.pq.Conninfo.get_defaults() if option.envvar}

QUESTION = """SELECT current_setting('work_mem') = '8MB' AND current_setting('TimeZone') = 'UTC'
    AND current_setting('DateStyle') = 'ISO, MDY' AND current_setting('geqo') = 'on'"""

SCRIPT = (
    f"SELECT ({QUESTION})::int AS as_asked \\gset\n\\if :as_asked\nSELECT 1;\n\\else\nSELECT 1/0;\n\\endif\n"
)
"""A script of pgbench that fails in a session that is not as the server's settings say."""


@pytest.fixture(scope="module")
def living(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[PostgresServer]:
    with server_folders() as folder, running(postgres_18, folder, overrides={"work_mem": "8MB"}) as server:
        yield server


@pytest.mark.parametrize("name", sorted(OF_LIBPQ | HOSTILE.keys()))
def test_no_variable_of_libpq_reaches_a_session(
    name: str, living: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone, because one with which nobody connects would hide the others."""
    monkeypatch.setenv(name, HOSTILE.get(name, "no-such-value"))
    script = tmp_path / "script"
    script.write_text(SCRIPT)
    pgbench: list[str | Path] = [
        living.build.program("pgbench"),
        "--no-vacuum",
        "--transactions=1",
        f"--file={script}",
    ]
    where = [f"--host={living.folder}", f"--port={PORT}", f"--username={living.address.user}"]
    with kept_from_process():
        with living.connect() as connection:
            assert connection.execute(QUESTION.encode()).fetchone() == (True,)
        with connected(living.address) as other:
            assert other.execute(QUESTION).fetchone() == (True,)
        said = [line for _, line in lines_of([*pgbench, *where, "tidemark"], 20)]
    assert "number of transactions actually processed: 1/1" in said


def test_a_server_is_told_nothing_of_its_caller(
    server_folder: Path, postgres_18: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres itself reads PGPORT, PGDATESTYLE and PGCLIENTENCODING."""
    for name in ("PGPORT", "PGDATESTYLE", "PGCLIENTENCODING", "MALLOC_ARENA_MAX", "NOTIFY_SOCKET", "PGDATA"):
        monkeypatch.setenv(name, "no-such-value")
    with kept_from_process(), running(postgres_18, server_folder) as server:
        given = psutil.Process(server.pid).environ()
    assert given == {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


def test_mysql_and_its_client_read_nothing_of_its_caller(
    server_folder: Path, mysql_9: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".my.cnf").write_text(
        "[mysqld]\nport = none\n[client]\nhost = 192.0.2.1\nssl-mode = REQUIRED\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYSQL_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("MYSQL_UNIX_PORT", "MYSQL_TCP_PORT", "MYSQL_PWD", "LIBMYSQL_PLUGIN_DIR"):
        monkeypatch.setenv(name, "no-such-value")
    with innodb_servers.running(mysql_9, server_folder) as server:
        given = psutil.Process(server.pid).environ()
        assert not any(name.startswith(("MYSQL", "LIBMYSQL", "TMP")) for name in given)
        assert innodb_servers.value(server, "SELECT @@tmpdir") == "/tmp"
        assert innodb_servers.value(server, "SELECT @@system_time_zone") == "UTC"
        Sysbench(innodb_servers.SUITE, innodb_servers.ROOM).load(server.address)
        assert innodb_servers.load(server, "insert", WorkLimit(5, 20)).transactions == 20
