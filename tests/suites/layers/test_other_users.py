"""What another user of the machine can do with a server, and what the account of the load can do in it."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from build.version import Engine
from suites.accounting.costs import Meter
from suites.additions.companions import accompanied
from suites.additions.variant import CompanionName
from suites.checking.queries import QueryError, connected
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.placement import Placement
from suites.generators.sysbench import Sysbench
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.layers.choice import layers_of
from suites.postgres.server import PostgresServer
from suites.server import session_password
from suites.setup.loading import load_files
from suites.turns.connects import connect_values
from tests.new_servers.data_directories import create
from tests.suites.servers import ask, small, value

pytestmark = pytest.mark.server

ROOM = small(threads=2)
TCP = {"transport": "tcp"}

AnyServer = PostgresServer | InnodbServer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture(params=["postgres_17", "mysql_9", "mariadb_11"])
def build(request: pytest.FixtureRequest) -> Build:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Build)
    return found


@contextlib.contextmanager
def served(
    build: Build, folder: Path, layers: Mapping[str, str], data: Path | None = None
) -> Iterator[AnyServer]:
    found = layers_of(layers)
    server = make_server(build, ROOM, Durability.RELAXED, folder, {}, found)
    assert isinstance(server, PostgresServer | InnodbServer)
    try:
        if data is None:
            create(server, ROOM)
        else:
            server.create(data)
        server.start()
        yield server
    finally:
        server.destroy()


def as_nobody(*words: str | Path, password: str = "") -> subprocess.CompletedProcess[str]:
    identity = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
    return subprocess.run(
        [*identity, *map(str, words)],
        env={"PATH": os.environ["PATH"], "PGPASSWORD": password, "MYSQL_PWD": password},
        capture_output=True,
        text=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        check=False,
    )


def logins(server: AnyServer) -> list[list[str | Path]]:
    """The client program of the server's engine with every account, over TCP and the socket."""
    address, build = server.address, server.build
    if build.version.engine is Engine.POSTGRES:
        psql: list[str | Path] = [
            build.program("psql"),
            "--no-psqlrc",
            "--no-password",
            f"--port={address.port}",
        ]
        ask_it = ["--dbname=tidemark", "--command=COPY (SELECT 1) TO PROGRAM 'cat'"]
        places = [f"--host={place}" for place in (address.host, address.socket.parent)]
        return [
            [*psql, *ask_it, place, f"--username={user}"]
            for place in places
            for user in ("tidemark", "tidemark_admin", "postgres")
        ]
    name = "mysql" if build.version.engine is Engine.MYSQL else "mariadb"
    client: list[str | Path] = [build.program(name), "--no-defaults", "--execute=SELECT 1"]
    tcp = [f"--host={address.host}", f"--port={address.port}", "--protocol=TCP"]
    return [
        [*client, *place, f"--user={user}"]
        for place in (tcp, [f"--socket={address.socket}"])
        for user in ("tidemark", "root", "")
    ]


@needs_root
def test_another_user_of_the_machine_is_let_in_by_no_account(build: Build, server_folder: Path) -> None:
    with served(build, server_folder / "1", TCP) as server:
        for login in logins(server):
            for guess in ("", "tidemark", "postgres", "root"):
                refused = as_nobody(*login, password=guess)
                assert refused.returncode != 0, (login, guess, refused.stdout)
                reasons = ("password", "denied", "pg_hba.conf", "(13")
                assert any(word in refused.stderr for word in reasons), refused
        connect_values([server])
        assert as_nobody("ls", server.folder).returncode != 0
        assert as_nobody("cat", server.log).returncode != 0


def test_files_of_a_server_are_its_own(build: Build, server_folder: Path) -> None:
    with served(build, server_folder / "1", TCP) as server:
        assert server.folder.stat().st_mode & 0o777 == 0o700
        assert server.log.stat().st_mode & 0o777 == 0o600
        (data,) = server.folder.glob("data")
        assert data.stat().st_mode & 0o007 == 0
        # What only the first start needs, which has a password.
        assert not list(server.folder.glob("*.sql"))


def as_clients(server: AnyServer, *statements: str) -> list[Any]:
    """The first value of each statement's answer for the account of the load; raises QueryError."""
    answers = []
    with connected(server.address) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            answers.append(row and row[0])
    return answers


def test_clients_own_the_tables_and_have_no_rights_beyond(build: Build, server_folder: Path) -> None:
    suite = load_suite("write-heavy")
    with served(build, server_folder / "1", TCP) as server:
        sysbench = Sysbench(suite, ROOM)
        sysbench.load(server.address)
        done = sysbench.run(server.address, suite.steps[0], WorkLimit(10, 50), Meter(server.pid))
        assert done.transactions == 50
        as_clients(server, "ALTER TABLE sbtest1 ADD COLUMN more int", "CREATE TABLE other (id int)")
        server.settings(), server.counters(), server.debt(), server.roles()
        for statement in BEYOND[build.version.engine]:
            with pytest.raises(QueryError, match=r"denied|superuser|must be|privilege"):
                as_clients(server, statement)


_OF_INNODB = (
    "SET GLOBAL max_connections = 1",
    "SELECT * FROM mysql.user",
    "SELECT 1 INTO OUTFILE '/tmp/tidemark-test'",
    "CREATE USER other",
    "SHUTDOWN",
)

BEYOND = {
    Engine.POSTGRES: (
        "COPY sbtest1 FROM PROGRAM 'id'",
        "COPY sbtest1 TO '/tmp/tidemark-test'",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER SYSTEM SET fsync = off",
        "CREATE ROLE other SUPERUSER",
        "ALTER ROLE tidemark SUPERUSER",
        "SET ROLE tidemark_admin",
    ),
    Engine.MYSQL: _OF_INNODB,
    Engine.MARIADB: _OF_INNODB,
}


@contextlib.contextmanager
def every_command_line() -> Iterator[list[str]]:
    """The command lines of all programs that this process starts in the block."""
    seen: list[str] = []
    active = [True]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and active:
            seen.append(" ".join(os.fsdecode(word) for word in arguments[1]))

    sys.addaudithook(hook)
    try:
        yield seen
    finally:
        active.clear()


SETUP = {
    "setup.sql": "CREATE TABLE notes (id int PRIMARY KEY);\n",
    "suite.toml": """
name = "own"
title = "Own"
generator = "plain-sysbench"
script = "own.lua"
engines = ["postgres", "mysql", "mariadb"]
seed = 1
setup = "setup.sql"

[profiles.smoke]
title = "short"
seconds = 2
slice_seconds = 1
repetitions = 3
data_to_memory = 0.001
buffer_to_memory = 0.02
settle_seconds = 0

[[steps]]
name = "own"
title = "Own"
""",
    "own.lua": """
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT count(*) FROM notes") end
""",
}


def own_suite(folder: Path, setup: str = "") -> Suite:
    folder.mkdir()
    for name, text in SETUP.items():
        (folder / name).write_text(setup or text if name == "setup.sql" else text)
    return load_suite(f"{folder}/")


def test_no_command_line_has_the_password(build: Build, server_folder: Path, tmp_path: Path) -> None:
    suite = load_suite("write-heavy")
    is_postgres = build.version.engine is Engine.POSTGRES
    beside = (CompanionName.LOGICAL_CONSUMER if is_postgres else CompanionName.BINLOG_CONSUMER,)
    settings = {"wal_level": "logical", "max_slot_wal_keep_size": "1GB", "max_wal_senders": "4"}
    server = make_server(
        build,
        ROOM,
        Durability.RELAXED,
        server_folder / "1",
        settings if is_postgres else {},
        layers_of(TCP),
    )
    try:
        with every_command_line() as seen:
            create(server, ROOM)
            server.start()
            load_files([build], server.address, own_suite(tmp_path / "own"))
            generators: Sequence[tuple[Any, Suite]] = [(Sysbench(suite, ROOM), suite)]
            if is_postgres:
                banking = load_suite("pgbench")
                generators = [*generators, (Pgbench(banking, ROOM, build), banking)]
            for generator, its_suite in generators:
                generator.load(server.address)
                with accompanied(server, beside, Placement(None, None), (0, 1)):
                    work, meter = WorkLimit(2, 20), Meter(server.pid)
                    generator.run(server.address, its_suite.steps[0], work, meter)
        passwords = [server.address.password, server.address.admin_password]
        assert passwords[0]
        assert len(seen) > 5
        assert not [line for line in seen for password in passwords if password and password in line]
        recorded = str(server.settings())
        assert not any(password in recorded for password in passwords if password)
    finally:
        server.destroy()


def test_data_of_another_session_get_the_password_of_this_one(build: Build, server_folder: Path) -> None:
    with served(build, server_folder / "1", TCP) as server:
        as_clients(server, "CREATE TABLE kept (id int)")
        server.stop()
        data = server_folder / "kept"
        shutil.copytree(server.data, data)
        shutil.chown(data, server.data.owner(), server.data.group())
        for path in data.rglob("*"):
            shutil.chown(path, server.data.owner(), server.data.group())
        before = session_password()
    session_password.cache_clear()
    assert session_password() != before
    with served(build, server_folder / "2", TCP, data) as again:
        assert as_clients(again, "SELECT count(*) FROM kept") == [0]
        connect_values([again])
        older = replace(again.address, password=before)
        with pytest.raises(QueryError, match="password"), connected(older):
            pass


def test_a_setup_may_do_what_clients_may_not(postgres_17: Build, server_folder: Path, tmp_path: Path) -> None:
    setup = (
        "CREATE TABLE notes (id int);\n"
        "CREATE FUNCTION f(text, text) RETURNS bool LANGUAGE internal AS 'texteq';\n"
    )
    with served(postgres_17, server_folder / "1", {}) as server:
        assert isinstance(server, PostgresServer)
        load_files([postgres_17], server.address, own_suite(tmp_path / "own", setup))
        owned = "SELECT rolname, rolsuper FROM pg_class c JOIN pg_roles r ON r.oid = relowner"
        assert ask(server, f"{owned} WHERE relname = 'notes'") == [("tidemark", False)]
        assert value(server, "SELECT f('a', 'a')") is True
        with pytest.raises(Exception, match="line 1"):
            load_files([postgres_17], server.address, own_suite(tmp_path / "wrong", "SELECT 1 FROM;\n"))
        assert value(server, "SELECT rolsuper FROM pg_roles WHERE rolname = 'tidemark'") is False


def test_clients_of_mysql_use_every_database_of_a_setup(
    mysql_9: Build, server_folder: Path, tmp_path: Path
) -> None:
    setup = (
        "CREATE TABLE notes (id int);\nCREATE DATABASE shop;\nCREATE TABLE shop.items (id int);\n"
        "CREATE TRIGGER t BEFORE INSERT ON notes FOR EACH ROW SET NEW.id = NEW.id + 1;\n"
    )
    with served(mysql_9, server_folder / "1", {}) as server:
        load_files([mysql_9], server.address, own_suite(tmp_path / "own", setup))
        as_clients(server, "INSERT INTO shop.items VALUES (1)", "INSERT INTO notes VALUES (1)")
        assert as_clients(server, "SELECT id FROM notes") == [2]
