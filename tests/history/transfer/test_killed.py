"""A merge that is killed, or meets others or a full disk: whole sessions stay, and the next completes it."""

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from build.home import ROOT
from history.errors import HistoryError
from history.open import open_store
from history.transfer.database_source import opened
from history.transfer.merging import merge
from history.transfer.ndjson import write_ndjson
from tests.history.generated import Contents, contents, record
from tests.history.store.test_durability import start_writer
from tests.history.transfer.test_merging import NIGHT_2, added, into

pytestmark = pytest.mark.deep("merges and exports whole histories, also when killed")

SESSIONS = 8
KILLS = 10

Child = subprocess.Popen[str]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    session = replace(NIGHT_2, box="beef", note="x" * 2000)
    record(folder / "a.db", [replace(session, number=number) for number in range(SESSIONS)], change=True)
    with opened(folder / "a.db") as rows:
        write_ndjson(rows, folder / "a.ndjson")
    return folder


def start_receiver(path: Path, *sources: Path) -> Child:
    command = [sys.executable, "-m", "tests.history.transfer.receiver", str(path), *map(str, sources)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def sessions_of(found: Contents) -> dict[Any, Contents]:
    """What is there of each session."""
    by_session: dict[Any, Contents] = {}
    for (table, key), row in found.items():
        uid = row["uid"] if table == "sessions" else row.get("session")
        if uid is not None:
            by_session.setdefault(uid, {})[table, key] = row
    return by_session


def assert_whole_sessions(path: Path, whole: Contents) -> int:
    """Every session that is there is there with all its rows; returns how many are."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    wanted, found = sessions_of(whole), sessions_of(contents(path))
    for uid, rows in found.items():
        assert rows == wanted[uid]
    return len(found)


def wait_for_sessions(path: Path, count: int) -> None:
    """Until at least so many sessions can be read."""
    deadline = time.monotonic() + 30
    with closing(sqlite3.connect(path)) as connection:
        while connection.execute("SELECT count(*) FROM sessions").fetchone()[0] < count:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_a_killed_merge_leaves_whole_sessions_and_is_completed_by_the_next(
    source: Path, tmp_path: Path
) -> None:
    """The child dies when it has written so many sessions, or a moment later."""
    whole = contents(source / "a.db")
    moments, counts = random.Random(7), []
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        child = start_receiver(path, source / ("a.db" if number % 2 else "a.ndjson"))
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        wait_for_sessions(path, number % SESSIONS)
        time.sleep(moments.uniform(0.0, 0.02))
        child.kill()
        child.communicate()
        counts.append(assert_whole_sessions(path, whole))
        into(path, source / "a.db")
        assert contents(path) == whole
    assert len({count for count in counts if 0 < count < SESSIONS}) > 2, counts


def test_merges_at_once_and_a_night_that_runs_meanwhile(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    writer = start_writer(path, "tonight", 60)
    receivers = [start_receiver(path, source / name) for name in ("a.db", "a.ndjson", "a.db")]
    acknowledged = {int(line) for line in writer.communicate(timeout=120)[0].split()}
    assert writer.returncode == 0
    assert len(acknowledged) == 60
    rows = 0
    for child in receivers:
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 0
        rows += int(said.split()[1])
    whole = contents(source / "a.db")
    there = contents(path)
    assert whole.items() <= there.items()
    expected = sum(table != "metrics" for table, _ in whole)
    assert rows in range(expected - 2, expected + 1), (
        "once each; a build and its configuration may be tonight's"
    )
    assert len([key for table, key in there if table == "runs" and key[0] == "tonight"]) == 60
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_full_disk_in_the_middle_keeps_what_was_whole(source: Path, tmp_path: Path) -> None:
    path, whole = tmp_path / "h.db", contents(source / "a.db")
    open_store(path).close()
    pages = path.stat().st_size // 4096

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + 8}")

    event.listen(Engine, "connect", limit)  # of the source too, which is not written to
    try:
        store, source_rows = open_store(path), opened(source / "a.db")
        with store, source_rows as rows, pytest.raises(HistoryError, match="no space left") as refused:
            merge(store, [rows])
    finally:
        event.remove(Engine, "connect", limit)
    assert "earlier records are intact" in refused.value.hint
    assert 0 < assert_whole_sessions(path, whole) < SESSIONS
    assert added(into(path, source / "a.db"))
    assert contents(path) == whole
