"""Rounds of old sessions go; what was derived stays, is derived no second time, and is said to be all."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import compare as program
from history.backups.backup import back_up
from history.derive import derive_missing
from history.open import open_store
from history.store.records import SessionStatus
from history.transfer.database_source import Selection, opened
from history.transfer.merging import merge
from history.transfer.pruning import prune, room, vacuum
from tests.history.generated import VERSIONS, contents, record
from tests.history.handmade import NIGHT, record_steps, session_start
from tests.history.transfer.test_foreign import take_in
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, added, execute, into

ROUNDS = {"runs", "measurements", "samples", "profiles"}
BETWEEN = NIGHT + timedelta(days=2)
"""Before the second night, after the first."""


@pytest.fixture
def history(tmp_path: Path) -> Path:
    first = replace(NIGHT_1, profiled=True, dropped=(("insert", "x"),), noise=0.5)
    record(tmp_path / "a.db", [first, NIGHT_2], change=True)
    return tmp_path / "a.db"


def test_only_rounds_of_old_sessions_go(history: Path) -> None:
    before = contents(history)
    with open_store(history) as store:
        assert prune(store, BETWEEN) == 1
    after = contents(history)
    gone = {(table, key[0]) for table, key in before.keys() - after.keys()}
    assert gone == {(table, "night-1") for table in ROUNDS}
    assert all(before[row_key] == row for row_key, row in after.items())
    with closing(sqlite3.connect(history)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_pruned_session_is_not_derived_again(history: Path) -> None:
    with open_store(history) as store:
        prune(store, BETWEEN)
        before = contents(history)
        with store.database.writing() as connection:
            assert derive_missing(connection) == 0
        assert prune(store, BETWEEN) == 0
    assert contents(history) == before


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_nights_are_derived_before_rounds_go(history: Path) -> None:
    wanted = {content for content in contents(history) if content[0] not in ROUNDS}
    for table in ("change_series", "changes", "points", "nights", "series"):
        execute(history, f"DELETE FROM {table}")
    with open_store(history) as store:
        prune(store, NIGHT + timedelta(days=9))
    assert set(contents(history)) == {key for key in wanted if key[0] not in ("changes", "change_series")}


def test_what_runs_is_left_alone(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.db", clock=lambda: NIGHT) as store:
        record_steps(store, session_start("under way"), {"insert": {VERSIONS[0]: [1.0]}}, status=None)
        assert room(store, BETWEEN).sessions == 0
        assert prune(store, BETWEEN) == 0
        assert len(store.runs(1)) == 1
        assert "a session runs" in vacuum(store.database)


def test_what_would_be_freed_is_said_before(history: Path) -> None:
    with open_store(history) as store:
        found = room(store, BETWEEN)
        assert (found.sessions, found.rows) == (
            1,
            {
                "runs": 4,
                "measurements": 8,
                "kinds": 0,
                "samples": 8,
                "activities": 0,
                "profiles": 4,
                "counted_profiles": 0,
                "wait_profiles": 0,
            },
        )
        assert found.bytes > 0
        prune(store, BETWEEN)
        assert room(store, BETWEEN).rows == dict.fromkeys(found.rows, 0)


def test_the_file_becomes_smaller(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    record(path, [NIGHT_1])
    execute(
        path,
        "WITH RECURSIVE n(n) AS (VALUES (10) UNION ALL SELECT n + 1 FROM n WHERE n < 50000)"
        " INSERT INTO samples SELECT 1, n, n * 1.1 FROM n",
    )
    before = path.stat().st_size
    with open_store(path) as store:
        estimated = room(store, BETWEEN).bytes
        prune(store, BETWEEN)
        assert vacuum(store.database) == ""
    freed = before - path.stat().st_size
    assert freed == pytest.approx(estimated, rel=0.3)


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_the_rounds_of_a_backup_come_back_and_nothing_is_doubled(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    before = contents(history)
    with open_store(history) as store:
        prune(store, BETWEEN)
    merged = into(history, tmp_path / "b.db")
    assert added(merged).keys() == ROUNDS
    assert merged.derived == 0
    assert contents(history) == before
    into(tmp_path / "c.db", history)
    assert contents(tmp_path / "c.db") == before


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_a_pruned_session_travels_with_the_builds_of_its_night(history: Path, tmp_path: Path) -> None:
    with open_store(history) as store:
        prune(store, NIGHT + timedelta(days=9))
    whole = contents(history)
    with opened(history, Selection(suite="write-heavy")) as source, open_store(tmp_path / "b.db") as store:
        merge(store, [source])
    unused = {key for key in whole if key[0] == "configurations"}
    assert contents(tmp_path / "b.db") == {key: row for key, row in whole.items() if key not in unused}


def test_points_of_rounds_that_did_not_come_back_stay(tmp_path: Path) -> None:
    head = "machine,suite,step,version,metric,value,when\n"
    row = "box,sysbench,{},postgres@17.7,qps,1000,2025-11\n"
    path = tmp_path / "h.db"
    for step in ("insert", "delete"):
        (tmp_path / step).write_text(head + row.format(step))
        take_in(path, tmp_path / step)
    with open_store(path) as store:
        prune(store, NIGHT)
    (tmp_path / "scan").write_text(head + row.format("scan"))
    for step in ("insert", "scan"):
        take_in(path, tmp_path / step)
    found = contents(path)
    assert {row["step"] for (table, _), row in found.items() if table == "runs"} == {"insert", "scan"}
    assert {row["step"] for (table, _), row in found.items() if table == "points"} == {
        "insert",
        "scan",
        "delete",
    }


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_a_pruned_history_takes_nothing_from_others(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    before = contents(tmp_path / "b.db")
    with open_store(history) as store:
        prune(store, NIGHT + timedelta(days=9))
    assert not added(into(tmp_path / "b.db", history))
    assert contents(tmp_path / "b.db") == before


def test_compare_says_that_rounds_were_pruned(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(history) as store:
        prune(store, NIGHT + timedelta(days=9))
    assert program.main([VERSIONS[0], VERSIONS[1], "--history", str(history)]) == 2
    said = capsys.readouterr().err
    assert f"session night-2, which had {VERSIONS[0]} and {VERSIONS[1]}, were pruned" in said
    assert "./tidemark history merge" in said
    program.main([VERSIONS[0], VERSIONS[1], "--history", str(history), "--session", "night-1"])
    assert "the rounds of session night-1" in capsys.readouterr().err
    program.main([VERSIONS[0], VERSIONS[1], "--history", str(history), "--suite", "another"])
    assert "no session holds both" in capsys.readouterr().err
    program.main([VERSIONS[0], VERSIONS[2], "--history", str(history)])
    assert "no session holds both" in capsys.readouterr().err


def test_sessions_that_are_not_old_are_compared_as_before(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(history) as store:
        prune(store, BETWEEN)
    program.main([VERSIONS[0], VERSIONS[1], "--history", str(history)])
    assert "Session night-2" in capsys.readouterr().out


def test_sessions_of_every_end_go(tmp_path: Path) -> None:
    ended = [SessionStatus.FINISHED, SessionStatus.FAILED, SessionStatus.INTERRUPTED]
    record(tmp_path / "a.db", [replace(NIGHT_1, number=n, status=status) for n, status in enumerate(ended)])
    with open_store(tmp_path / "a.db") as store:
        assert prune(store, NIGHT + timedelta(days=9)) == 3
