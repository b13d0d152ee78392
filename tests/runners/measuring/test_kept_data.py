"""Loading on real servers: kept copies of loaded data, and what happens when loading fails."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from build.finished_build import Build
from build.home import Home
from runners.cli import main
from suites.data_copies.store import CopyKey, DataCopies
from suites.definition import Suite, load_suite
from suites.engines import engine_of, make_server
from suites.generators.load import LoadError
from suites.generators.queries.conductor import DATA_PROGRAM, QueryConductor
from suites.keys.durability import Durability
from suites.processes import ProcessError
from suites.server import Server
from suites.sizing import Hardware, sizes
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = pytest.mark.server

SUITE = load_suite("tpch")
ROOM = sizes(SUITE, SUITE.profile("smoke"), Hardware(1, 8 * 1024**3))


def made(build: Build, folder: Path, settings: Mapping[str, str] | None = None) -> Server:
    return make_server(build, small(), Durability.RELAXED, folder, settings or {})


@pytest.mark.parametrize("engine", ["postgres_18", "mysql_9", "mariadb_11"])
def test_a_server_begins_with_data_of_another_folder(
    server_folder: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    """The folder that the data come from is gone, as after its session."""
    build: Build = request.getfixturevalue(engine)
    copies = DataCopies(server_folder / "copies")
    key = CopyKey(str(build.version), "x", "smoke", {"build": build.key})
    first, second = made(build, server_folder / "1"), made(build, server_folder / "2")
    try:
        create(first, small())
        first.start()
        session = engine_of(build.version.engine).session(first.address)
        session.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        session.execute("INSERT INTO t VALUES (42)")
        session.close()
        first.keep()
        copies.save(key, first.loaded)
        first.destroy()
        second.create(copies.find(key))
        second.start()
        session = engine_of(build.version.engine).session(second.address)
        assert [tuple(row) for row in session.execute("SELECT a FROM t")] == [("42",)]
        session.execute("INSERT INTO t VALUES (43)")
        session.close()
        second.keep()
    finally:
        first.destroy()
        second.destroy()
    assert copies.find(key) is not None


@pytest.fixture
def keeping(tmp_path: Path) -> Path:
    """The suite with a smoke profile that keeps its data."""
    folder = tmp_path / "tpch"
    shutil.copytree(SUITE.folder, folder)
    toml = folder / "suite.toml"
    toml.write_text(
        toml.read_text().replace("limit_seconds = 10\n", "limit_seconds = 10\nkeeps_copy = true\n")
    )
    return folder


def measure(
    home: Home, suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Run one query of the suite in a session; return what it said."""
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    words = [
        "run",
        "--suite",
        str(suite),
        "--step",
        "q6",
        "--repetitions",
        "1",
        "--keep-disturbed",
        "--no-exact",
        "--alone",
    ]
    code = main([*words, "postgres@18.6"])
    said = capsys.readouterr()
    assert code == 0, said
    return said.out + said.err


def test_a_second_session_begins_with_the_kept_data_unless_they_were_cut_off(
    home: Home,
    keeping: Path,
    postgres_18: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "kept copy" not in measure(home, keeping, monkeypatch, capsys)
    assert "from the kept copy" in measure(home, keeping, monkeypatch, capsys)
    (copy,) = DataCopies(home.copies).all()
    largest = max(
        (path for path in copy.data.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    os.truncate(largest, largest.stat().st_size // 2)
    said = measure(home, keeping, monkeypatch, capsys)
    assert "is not used, and removed: 1 files are missing or of another size" in said
    (again,) = DataCopies(home.copies).all()
    assert again.damage is None
    assert again.bytes == copy.bytes


def test_kept_data_are_loaded_anew_for_other_data_alone(
    home: Home,
    keeping: Path,
    postgres_18: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A session records what it does: another text of a query is another step on the same data."""
    measure(home, keeping, monkeypatch, capsys)
    toml, query = keeping / "suite.toml", keeping / "q6.sql"
    toml.write_text(toml.read_text().replace('title = "', 'title = "Once more: '))
    query.write_text(query.read_text() + "-- as before\n")
    assert "from the kept copy" in measure(home, keeping, monkeypatch, capsys)
    toml.write_text(re.sub(r"(?m)^seed = \d+$", "seed = 7", toml.read_text()))
    assert "kept copy" not in measure(home, keeping, monkeypatch, capsys)
    with sqlite3.connect(home.history) as connection:
        recorded = connection.execute("SELECT suite_digest FROM sessions ORDER BY id").fetchall()
    first, second, third = (json.loads(text) for (text,) in recorded)
    assert first["data"] == second["data"] != third["data"]
    assert first["steps"].keys() == {"q6"}
    assert first["steps"]["q6"] != second["steps"]["q6"]


def test_without_tpchgen_nothing_is_started(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    real = shutil.which

    def which(name: str, path: str | None = None) -> str | None:
        return None if name == DATA_PROGRAM else real(name, path=path)

    monkeypatch.setattr(shutil, "which", which)
    assert main(["run", "--suite", "tpch", "postgres@17.11", "postgres@18.6"]) == 2
    said = capsys.readouterr().err
    assert "tpchgen-cli is not installed" in said
    assert "./tidemark setup" in said
    with pytest.raises(ProcessError):
        QueryConductor(SUITE, ROOM).version()


# --- loading fails


@contextlib.contextmanager
def running(build: Build, folder: Path, suite: Suite = SUITE) -> Iterator[Server]:
    server = make_server(build, ROOM, Durability.RELAXED, folder / "1", suite.server[build.version.engine])
    try:
        create(server, ROOM)
        server.start()
        yield server
    finally:
        server.destroy()


DISK_IS_FULL = (
    "^loading data failed: (tpchgen-cli|python) failed with exit status 1: "
    "(No space left on device|could not extend file .*: No space left on device)"
)


@pytest.mark.parametrize("left", [6, 40], ids=["for the rows", "for the tables"])
def test_a_disk_that_fills_up_while_data_are_loaded(
    server_folder: Path, postgres_18: Build, left: int
) -> None:
    """`left` are the megabytes that are free when loading begins."""
    disk = server_folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300M,mode=755", "tmpfs", str(disk)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting needs root")
    try:
        with running(postgres_18, disk) as server:
            space = os.statvfs(disk)
            filler = space.f_bavail * space.f_frsize - left * 1024**2
            (disk / "filler").write_bytes(bytes(filler))
            with pytest.raises(LoadError, match=DISK_IS_FULL):
                QueryConductor(SUITE, ROOM).load(server.address)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


CONNECTION_IS_LOST = (
    "^loading data failed: python failed with exit status 1: .*"
    "(server closed the connection|connection is bad|Lost connection|Can't connect|gone away)"
)


@pytest.mark.parametrize("engine", ["postgres_18", "mysql_9"])
def test_a_server_that_is_killed_while_data_are_loaded(
    server_folder: Path, request: pytest.FixtureRequest, engine: str
) -> None:
    with running(request.getfixturevalue(engine), server_folder) as server:

        def kill_while_loading() -> None:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not loading():
                time.sleep(0.02)
            psutil.Process(server.pid).kill()

        def loading() -> bool:
            """Whether the client has begun, which is after the rows were made."""
            for child in psutil.Process().children():
                # A child may end between being listed and being looked at.
                with contextlib.suppress(psutil.Error):
                    if "suites.generators.queries.client" in child.cmdline():
                        return True
            return False

        killer = threading.Thread(target=kill_while_loading)
        killer.start()
        with pytest.raises(LoadError, match=CONNECTION_IS_LOST):
            QueryConductor(SUITE, ROOM).load(server.address)
        killer.join()
        assert server.death() is not None
