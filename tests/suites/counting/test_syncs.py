"""How often a log is flushed, from lines of strace and on real servers."""

from pathlib import Path

import pytest

from build.finished_build import Build
from suites.checking.queries import connected
from suites.counting import fixed_work as syncs_module
from suites.counting.fixed_work import Done, SyncError, WorkTerms, log_syncs, sync_trace, work
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.metrics import BINLOG_BYTES, LOG_SYNCS, REDO_BYTES, WAL_IMAGES, WAL_RECORDS
from tests.new_servers.data_directories import create
from tests.suites.golden import GOLDEN
from tests.suites.servers import small

SUITE = load_suite("write-heavy")
(UPDATE,) = SUITE.select(("update-index",))
ROOM = small(rows=2000)


def is_wal(path: str) -> bool:
    return "/pg_wal/" in path


def test_flushes_of_the_log_alone_are_counted() -> None:
    lines = (GOLDEN / "strace.txt").read_text().splitlines()
    assert any("fsync(" in line and "postmaster.pid" in line for line in lines)
    assert log_syncs(lines, is_wal) == 4


@pytest.mark.parametrize(
    ("lines", "syncs"),
    [
        (["7 fsync(3</d/pg_wal/1>) = 0"], 1),
        (["7 fdatasync(3</d/pg_wal/1>) = -1 EIO (Input/output error)"], 0),
        (["7 fdatasync(3</d/base/1>) = 0"], 0),
        (["7 fdatasync(3</d/pg_wal/1> <unfinished ...>", "8 fsync(4</d/base/1>) = 0",
          "7 <... fdatasync resumed>) = 0"], 1),
        (["7 fdatasync(3</d/pg_wal/1> <unfinished ...>"], 0),
        # A file that was opened for it is flushed by each write, one that was not by none.
        (['7 openat(AT_FDCWD</d>, "pg_wal/1", O_RDWR|O_DSYNC|O_CLOEXEC) = 3</d/pg_wal/1>']
         + ['8 pwrite64(3</d/pg_wal/1>, ""..., 8192, 0) = 8192'] * 2, 2),
        (['7 openat(AT_FDCWD</d>, "pg_wal/1", O_RDWR|O_CLOEXEC) = 3</d/pg_wal/1>',
          '7 pwrite64(3</d/pg_wal/1>, ""..., 8192, 0) = 8192'], 0),
        (["7 +++ exited with 0 +++", "", "strace: noise"], 0),
    ],
)  # fmt: skip
def test_lines(lines: list[str], syncs: int) -> None:
    assert log_syncs(lines, is_wal) == syncs


@pytest.mark.parametrize(
    ("said", "problem"),
    [("strace -- version 4.26", "too old to count syncs"), ("", "too old to count syncs")],
)
def test_an_old_strace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, problem: str
) -> None:
    program = tmp_path / "strace"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SyncError, match=problem):
        sync_trace(tmp_path, "pg_wal")


def test_a_strace_that_may_not_trace_is_told(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = server_folder / "strace"
    program.write_text("#!/bin/sh\necho 'strace -- version 6.1'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(server_folder), prepend=":")
    monkeypatch.setattr(syncs_module, "PROBE_SECONDS", 0.1)
    with pytest.raises(SyncError, match="strace traces nothing: strace -- version"):
        sync_trace(server_folder, "pg_wal")


def _done(build: Build, folder: Path, durability: Durability, chosen: dict[str, str]) -> Done:
    server = make_server(build, ROOM, durability, folder, chosen)
    try:
        create(server, ROOM)
        server.start()
        generator = Sysbench(SUITE, ROOM)
        generator.load(server.address)
        server.keep()
        done = work(server, generator, UPDATE, WorkTerms(durability, lambda part, _: 60, counts_syncs=True))
        server.abandon()
        return done
    finally:
        server.destroy()


@pytest.mark.server
@pytest.mark.timeout(120)
@pytest.mark.parametrize("durability", list(Durability))
def test_a_commit_of_postgres_flushes_the_wal_once(
    server_folder: Path, postgres_18: Build, durability: Durability
) -> None:
    done = _done(postgres_18, server_folder / "pg", durability, {})
    assert done.notes == ()
    assert done.values[LOG_SYNCS] == pytest.approx(1.0, abs=0.1)
    assert 200 < done.values[WAL_RECORDS] < 800
    assert done.values[WAL_IMAGES] > done.values[WAL_RECORDS]


@pytest.mark.server
@pytest.mark.timeout(120)
def test_commits_that_postgres_need_not_flush_are_not_counted(
    server_folder: Path, postgres_18: Build
) -> None:
    server = make_server(postgres_18, ROOM, Durability.FULL, server_folder / "pg", {})
    try:
        create(server, ROOM)
        server.start()
        with connected(server.address) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE logged (id int)")
            cursor.execute("CREATE UNLOGGED TABLE unlogged (id int)")
            commits = {}
            for statement in (
                "SELECT pg_current_xact_id()",
                "INSERT INTO unlogged VALUES (1)",
                "INSERT INTO logged VALUES (1)",
            ):
                read = server.log_meter()
                for _ in range(50):
                    cursor.execute(statement)
                volume = read()
                assert volume is not None
                commits[statement] = volume.commits
        assert [*commits.values()] == [0, 0, 50]
    finally:
        server.destroy()


@pytest.mark.server
@pytest.mark.timeout(120)
def test_durability_that_a_version_gives_up_is_counted_where_others_have_it(
    server_folder: Path, postgres_18: Build
) -> None:
    done = _done(postgres_18, server_folder / "pg", Durability.RELAXED, {"fsync": "off"})
    assert {*done.values} == {WAL_RECORDS, WAL_IMAGES}
    done = _done(postgres_18, server_folder / "pg2", Durability.FULL, {"fsync": "off"})
    assert done.values[LOG_SYNCS] == 0.0
    assert done.notes == ()


@pytest.mark.server
@pytest.mark.timeout(180)
def test_a_commit_of_mysql_flushes_redo_and_binary_log(server_folder: Path, mysql_9: Build) -> None:
    done = _done(mysql_9, server_folder / "my", Durability.RELAXED, {})
    assert done.values[LOG_SYNCS] == pytest.approx(2.0, abs=0.2)
    assert 300 < done.values[REDO_BYTES] < 1500
    assert 300 < done.values[BINLOG_BYTES] < 1500
