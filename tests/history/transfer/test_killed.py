"""A merge that is killed, or meets others or a full disk: all of it or nothing, and the next completes it."""

import signal
import sqlite3
import subprocess
import sys
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
from tests.history.generated import contents, record
from tests.history.store.test_durability import start_writer
from tests.history.transfer.test_merging import NIGHT_2, added, into

pytestmark = pytest.mark.deep("merges and exports whole histories, also when killed")

SESSIONS = 8
KILLS = 12

TONIGHT = replace(NIGHT_2, number=99, box="cafe")

Child = subprocess.Popen[str]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    session = replace(NIGHT_2, box="beef", note="x" * 2000)
    record(folder / "a.db", [replace(session, number=number) for number in range(SESSIONS)], change=True)
    with opened(folder / "a.db") as rows:
        write_ndjson(rows, folder / "a.ndjson")
    return folder


def start_receiver(path: Path, source: Path, dies_at: str = "") -> Child:
    command = [sys.executable, "-m", "tests.history.transfer.receiver", str(path), str(source), dies_at]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        return found == [("ok",)] and not connection.execute("PRAGMA foreign_key_check").fetchall()


def test_a_killed_merge_leaves_the_history_as_it_was_and_the_next_completes_it(
    source: Path, tmp_path: Path
) -> None:
    """The child dies at one of its statements, from the first table that is staged to the last insert."""
    whole, path = contents(source / "a.db"), tmp_path / "h.db"
    for name in ("h.db", "counted.db"):
        record(tmp_path / name, [TONIGHT])
    before = contents(path)
    child = start_receiver(tmp_path / "counted.db", source / "a.db", "0")
    statements = int(child.communicate(timeout=60)[0].split()[-1])
    assert statements > KILLS
    for number in range(KILLS):
        at = 1 + number * (statements - 1) // (KILLS - 1)
        child = start_receiver(path, source / "a.db", str(at))
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
        assert sound(path)
        assert contents(path) == before, at
    into(path, source / "a.db")
    assert contents(path) == before | whole


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
        rows += int(said.split()[0])
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


def test_a_full_disk_in_the_middle_leaves_the_history_as_it_was(source: Path, tmp_path: Path) -> None:
    path, whole = tmp_path / "h.db", contents(source / "a.db")
    open_store(path).close()
    before = contents(path)
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
    assert contents(path) == before
    assert added(into(path, source / "a.db"))
    assert contents(path) == whole
