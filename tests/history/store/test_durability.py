"""What is recorded stays: writers that are killed, writers at once, transactions that fail."""

import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from build.home import ROOT
from history.errors import RecordError
from history.open import open_store
from history.store.records import SessionStatus
from history.store.writer import Store
from tests.history.handmade import run_record, session_start
from tests.history.writer import METRICS_EACH, SAMPLES_EACH

Child = subprocess.Popen[str]


def start_writer(path: Path, uid: str, count: int) -> Child:
    command = [sys.executable, "-m", "tests.history.writer", str(path), uid, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def counts(path: Path, table: str) -> Counter[int]:
    """Rows per run id."""
    with closing(sqlite3.connect(path)) as connection:
        return Counter(run for (run,) in connection.execute(f"SELECT run_id FROM {table}"))


def run_ids(path: Path) -> set[int]:
    with closing(sqlite3.connect(path)) as connection:
        return {run for (run,) in connection.execute("SELECT id FROM runs")}


def assert_whole(path: Path, at_least: set[int]) -> None:
    """Every acknowledged run is there, and every run that is there is there with all its rows."""
    present = run_ids(path)
    assert at_least <= present
    assert counts(path, "measurements") == Counter(dict.fromkeys(present, len(METRICS_EACH)))
    assert counts(path, "samples") == Counter(dict.fromkeys(present, SAMPLES_EACH))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.deep("processes that are killed while they write")
@pytest.mark.parametrize("seed", range(5))
def test_a_killed_writer_loses_nothing_it_has_acknowledged(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "history.db"
    child = start_writer(path, "killed", 1_000_000)
    assert child.stdout is not None
    acknowledged = {int(child.stdout.readline())}
    time.sleep(random.Random(seed).uniform(0.0, 0.4))
    child.kill()
    rest, _ = child.communicate()
    acknowledged |= {int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")}
    with open_store(path) as store:
        session = store.latest_session([])
        assert session is not None
        assert session.status is SessionStatus.RUNNING
        store.start_session(session_start("next"))
        interrupted = store.latest_session([], uid="killed")
        assert interrupted is not None
        assert interrupted.status is SessionStatus.INTERRUPTED
    assert_whole(path, acknowledged)


@pytest.mark.deep("processes that are killed while they write")
def test_two_writers_at_once_create_and_fill_one_history(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    children = [start_writer(path, uid, 100) for uid in ("one", "two", "three")]
    acknowledged: list[int] = []
    for child in children:
        output, _ = child.communicate(timeout=120)
        assert child.returncode == 0
        acknowledged += map(int, output.split())
    assert len(set(acknowledged)) == 300
    assert_whole(path, set(acknowledged))
    with open_store(path) as store:
        statuses = [store.latest_session([], uid=uid) for uid in ("one", "two", "three")]
        assert {status.status for status in statuses if status} == {SessionStatus.FINISHED}


def test_a_reader_neither_waits_for_a_writer_nor_sees_half_a_record(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store, open_store(path) as reader:
        session = store.start_session(session_start())
        with store.database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM sessions")
            assert reader.latest_session([]) is not None
            connection.rollback()
        assert store.runs(session) == ()


def test_a_record_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start())
        store.record_run(session, run_record())
        twice = run_record(key="another build", version="postgres@18.6")
        with pytest.raises(RecordError, match="UNIQUE"):
            store.record_run(session, twice)
        with pytest.raises(RecordError, match="FOREIGN KEY"):
            store.record_run(session + 1, run_record(key="another build", repetition=2))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM builds").fetchone() == (1,)


def test_pragmas_of_every_connection(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db") as store, store.database.reading() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


def test_a_live_process_keeps_its_session(tmp_path: Path) -> None:
    def status(store: Store, uid: str) -> SessionStatus | None:
        session = store.latest_session([], uid=uid)
        return None if session is None else session.status

    with open_store(tmp_path / "history.db") as store:
        store.start_session(session_start("mine"))
        store.start_session(session_start("also mine"))
        assert status(store, "mine") is SessionStatus.RUNNING
