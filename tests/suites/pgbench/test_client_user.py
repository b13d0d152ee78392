"""Clients out of a build, which root measures: the user as whom they run, and what this one can read."""

import os
import pwd
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from build.accounts import SERVER_USER, AccountError
from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import Suite, load_suite
from suites.generators.load import CountedWork, LoadError, PassLength, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.pgbench.transcript import logged_transactions
from suites.processes import require_files, run
from suites.setup.loading import load_files
from tests.suites.layers.test_other_users import own_suite, served
from tests.suites.pgbench.test_own_data import own
from tests.suites.pgbench.test_own_schema import ROOM, suite
from tests.suites.servers import running, value

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop"),
]

__all__ = ["suite"]

SPYING = """#!/bin/bash
exec 9>>{heard} 8>&2 2>/dev/null
echo "{name} $(id -u) $(sed -n 's/NoNewPrivs:\\t//p' /proc/self/status) <$(cat {secret} )>" >&9
tr '\\0' '\\n' </proc/$PPID/environ | sed -n '\\|^HOME=/nonexistent|!s/^HOME=/{name} read /p' >&9
exec 9>&- 2>&8 8>&-
exec {program} "$@"
"""


@pytest.fixture
def secret(server_folder: Path) -> Path:
    """A file that only root may read, in a folder that all may enter."""
    path = server_folder / "secret"
    path.touch(mode=0o600)
    path.write_text("hunter2")
    return path


@pytest.fixture
def heard(server_folder: Path) -> Path:
    """What spying programs write down."""
    path = server_folder / "heard"
    path.touch()
    path.chmod(0o666)
    return path


@pytest.fixture
def spying(server_folder: Path, secret: Path, heard: Path) -> Callable[..., Build]:
    """Makes a build whose clients try to read what is root's before they do their work."""

    def made(build: Build, *names: str) -> Build:
        prefix = server_folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        for name in names:
            program, spy = build.program(name), prefix / "bin" / name
            spy.write_text(SPYING.format(name=name, heard=heard, secret=secret, program=program))
            spy.chmod(0o755)
        return replace(build, prefix=prefix)

    return made


def said(heard: Path) -> set[str]:
    return set(heard.read_text().splitlines())


def harmless(*names: str) -> set[str]:
    """What programs hear that are of the servers' user, without any right of root."""
    return {f"{name} {pwd.getpwnam(SERVER_USER).pw_uid} 1 <>" for name in names}


def test_no_run_of_pgbench_has_rights_of_root(
    suite: Callable[..., Suite],
    spying: Callable[..., Build],
    heard: Path,
    server_folder: Path,
    postgres_18: Build,
) -> None:
    client = spying(postgres_18, "pgbench", "psql")
    own_scripts, builtin = suite(), load_suite("pgbench")
    done = []

    def heard_in(what: str, *names: str) -> None:
        done.append(what)
        assert said(heard) == harmless(*names), what
        heard.write_text("")

    with running(postgres_18, server_folder, ROOM) as server:
        for of in (builtin, own_scripts):
            generator, step = Pgbench(of, ROOM, client), of.steps[0]
            assert generator.version().startswith("pgbench (PostgreSQL) 18")
            heard_in("--version", "pgbench")
            generator.load(server.address)
            heard_in("loading", "pgbench", *(["psql"] if of is own_scripts else []))
            generator.run(server.address, step, WorkLimit(30, 200), Meter(server.pid))
            heard_in("a run", "pgbench")
            work = CountedWork("SELECT pg_backend_pid()", 60.0, lambda seconds: PassLength(10, 100))
            assert generator.count(server.address, step, work).transactions == 100
            heard_in("a counted pass", "pgbench")
    assert len(done) == 8


def test_no_client_that_restores_a_dump_has_rights_of_root(
    spying: Callable[..., Build], heard: Path, server_folder: Path, tmp_path: Path, postgres_17: Build
) -> None:
    client = spying(postgres_17, "pgbench", "psql", "pg_restore")
    with running(postgres_17, server_folder, ROOM) as server:
        where = [f"--host={server.folder}", f"--username={server.address.user}", server.address.database]
        to = f"--file={tmp_path / 'shop.dump'}"
        dump: list[str | Path] = [postgres_17.program("pg_dump"), "--format=custom", to]
        with server.connect() as connection:
            connection.execute(b"CREATE TABLE orders (id bigserial, customer int, total int)")
            connection.execute(b"ALTER TABLE orders OWNER TO tidemark")
        run([*dump, *where], what="pg_dump", env=server.address.password_variables)
        with server.connect() as connection:
            connection.execute(b"DROP TABLE orders")
        Pgbench(own(tmp_path, "shop.dump"), ROOM, client).load(server.address)
        assert value(server, "SELECT count(*) FROM orders") == 0
    assert said(heard) == harmless("pgbench", "psql", "pg_restore")


def test_no_client_of_mysql_has_rights_of_root(
    spying: Callable[..., Build], heard: Path, server_folder: Path, tmp_path: Path, mysql_9: Build
) -> None:
    client = spying(mysql_9, "mysql")
    with served(mysql_9, server_folder / "1", {}) as server:
        load_files([client], server.address, own_suite(tmp_path / "own", "CREATE TABLE made (n int);\n"))
    assert said(heard) == harmless("mysql")


@pytest.mark.parametrize(
    ("closed", "mode", "hint"),
    [
        ("orders.sql", 0o600, "run chmod o+r {folder}/orders.sql"),
        ("setup.sql", 0o600, "run chmod o+r {folder}/setup.sql"),
        (".", 0o700, "run chmod o+x {folder}"),
    ],
)
def test_a_file_that_the_user_may_not_read_is_named(
    suite: Callable[..., Suite],
    server_folder: Path,
    tmp_path: Path,
    postgres_18: Build,
    closed: str,
    mode: int,
    hint: str,
) -> None:
    closed_suite = suite()
    (tmp_path / closed).chmod(mode)
    with running(postgres_18, server_folder, ROOM) as server:
        with pytest.raises(AccountError) as caught:
            Pgbench(closed_suite, ROOM, postgres_18).load(server.address)
        assert caught.value.what.startswith(f"the user {SERVER_USER}, who runs p")
        assert caught.value.hint == hint.format(folder=tmp_path)
        (tmp_path / closed).chmod(0o755)
        Pgbench(closed_suite, ROOM, postgres_18).load(server.address)


def test_a_client_that_returns_by_the_whole_path_is_known(tmp_path: Path) -> None:
    """psql and pg_restore before 16 leave their folder, and could not read a file of it afterwards."""
    psql = Path("/usr/lib/postgresql/15/bin/psql")
    if not psql.exists():
        pytest.skip("postgresql-client-15 is not installed")
    folder = tmp_path / "closed" / "suite"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)  # those around it are pytest's, and another test may have opened them
    (folder / "setup.sql").write_text("SELECT 1;\n")
    with pytest.raises(AccountError, match="has no access to"):
        require_files(psql, folder, ["setup.sql"])


@pytest.mark.parametrize("planted", ["link", "pipe"])
def test_what_is_no_log_is_not_read(tmp_path: Path, planted: str) -> None:
    (tmp_path / "file").write_text("0 1 250 0 1 2\n")
    if planted == "link":
        (tmp_path / "log.1").symlink_to(tmp_path / "file")
    else:
        os.mkfifo(tmp_path / "log.1")
    with pytest.raises(LoadError, match="pgbench's log cannot be read"):
        logged_transactions(tmp_path)
    (tmp_path / "log.1").unlink()
    shutil.copy(tmp_path / "file", tmp_path / "log.1")
    assert logged_transactions(tmp_path)[:, 0].tolist() == [250.0]
