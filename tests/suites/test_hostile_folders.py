"""What a server's user leaves in its folder: pipes, links and depth hold up nobody and reach nothing else."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from build.finished_build import Build
from build.home import Home
from build.version import parse_version
from runners.measuring.cleanup import sweep
from suites.data_copies.store import CopyKey, DataCopies
from suites.engines import make_server
from suites.innodb.server import require_own_data
from suites.keys.durability import Durability
from suites.processes import as_server_user, own
from suites.server import ServerError
from tests.manifests import a_manifest
from tests.suites.servers import small

T = TypeVar("T")

SECONDS = 30.0
"""Far more than any of this takes; a pipe is waited for without end."""

DEPTH = 3000


def in_time(call: Callable[[], T]) -> T:
    """The result of a call, which a pipe may keep waiting for ever."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert results, "it waits, or it failed"
    return results[0]


def pipe(path: Path) -> None:
    os.mkfifo(path)
    own(path)


def left_behind(home: Home) -> Path:
    """The data directory of a session that was killed; its folder belongs to the server's user."""
    server = home.data / "s0123abcd" / "0"
    (server / "data").mkdir(parents=True)
    own(server)
    own(server / "data")
    return server / "data"


def test_a_pipe_in_place_of_the_pid_file_does_not_hold_up_the_next_session(server_folder: Path) -> None:
    home = Home(server_folder)
    data = left_behind(home)
    pipe(data / "postmaster.pid")
    assert in_time(lambda: sweep(home)) == ["s0123abcd"]
    assert not list(home.data.iterdir())


def test_folders_of_any_depth_are_removed(server_folder: Path) -> None:
    home = Home(server_folder)
    data = left_behind(home)
    nest = f"import os\nfor _ in range({DEPTH}):\n    os.mkdir('d')\n    os.chdir('d')"
    subprocess.run(as_server_user(["/usr/bin/python3", "-c", nest]), cwd=data, check=True)
    assert in_time(lambda: sweep(home)) == ["s0123abcd"]
    assert not list(home.data.iterdir())


def test_a_server_that_puts_a_pipe_in_place_of_its_pid_file_has_not_started(server_folder: Path) -> None:
    program = server_folder / "build" / "bin" / "postgres"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nmkfifo "$2/postmaster.pid"\nexec sleep 1\n')
    program.chmod(0o755)
    build = Build(parse_version("postgres@18.6"), "18.6", "key", server_folder / "build", a_manifest())
    server = make_server(build, small(), Durability.RELAXED, server_folder / "pg", {})
    (server_folder / "pg" / "data").mkdir(parents=True)
    for folder in (server_folder / "pg", server_folder / "pg" / "data"):
        own(folder)

    def started() -> str:
        with pytest.raises(ServerError) as refused:
            server.start()
        server.destroy()
        return str(refused.value)

    assert "did not start: exit status 0" in in_time(started)
    assert not (server_folder / "pg").exists()


@pytest.mark.parametrize("name", ["PG_VERSION", "mysql_upgrade_history", "mariadb_upgrade_info"])
def test_a_pipe_among_the_marks_of_engines_is_none(server_folder: Path, name: str) -> None:
    pipe(server_folder / name)
    build = Build(parse_version("mysql@9.7.2"), "9.7.2", "key", server_folder, a_manifest())

    def looked() -> bool:
        require_own_data(server_folder, build)
        return True

    assert in_time(looked)


def test_a_kept_copy_with_a_pipe_for_its_manifest_is_damaged(server_folder: Path) -> None:
    copies = DataCopies(server_folder / "copies")
    key = CopyKey("postgres@18.6", "tpch", "short", {"build": "ab12"})
    folder = copies.folder / key.name
    folder.mkdir(parents=True)
    pipe(folder / "manifest.json")
    (copy,) = in_time(copies.all)
    assert copy.damage is not None
    assert "it is no regular file" in copy.damage
    assert in_time(lambda: [copies.find(key)]) == [None]


@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")
def test_what_is_deleted_of_kept_data_is_not_deleted_elsewhere(server_folder: Path, mysql_9: Build) -> None:
    victim = server_folder / "victim" / "#ib_redo7_tmp"
    victim.parent.mkdir()
    victim.write_text("of another server")
    server = make_server(mysql_9, small(), Durability.RELAXED, server_folder / "my", {})
    data = server_folder / "my" / "data"
    data.mkdir(parents=True)
    for folder in (data.parent, data):
        own(folder)
    (data / "#innodb_redo").symlink_to(victim.parent)
    server.keep()
    assert victim.exists()
