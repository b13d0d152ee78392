"""A merge adds what is missing, once; it changes nothing, and refuses contradictions before it writes."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox, bisects
from history.store.records import SessionStatus, StepNoise
from history.store.schema import changes, metrics
from history.transfer.database_source import StoredRows, opened, readable
from history.transfer.merging import Merged, merge
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.row_source import Item, TransferError
from tests.history.generated import STEPS, VERSIONS, Contents, Made, contents, record, two_boxes
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start

few = settings(max_examples=12)

NIGHT_1 = Made(
    1, SessionStatus.FINISHED, ((STEPS[0], VERSIONS[0], (1.0, 2.0)), (STEPS[0], VERSIONS[1], (3.0, 4.0)))
)
NIGHT_2 = replace(NIGHT_1, number=2, dropped=(("insert", "x"), ("insert", "x")), noise=0.5, profiled=True)


def into(target: Path, *sources: Path) -> Merged:
    with open_store(target) as store:
        for path in sources:
            with opened(path) as source:
                merged = merge(store, [source])
    return merged


def added(merged: Merged) -> dict[str, int]:
    return {name: count.added for name, count in merged.counts.items() if count.added}


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.deep("merges and exports whole histories, also when killed")
@few
@given(two_boxes())
def test_merging_again_and_back_changes_nothing(boxes: tuple[list[Made], list[Made]]) -> None:
    with TemporaryDirectory() as name:
        a, b = Path(name) / "a.db", Path(name) / "b.db"
        for path, sessions in zip((a, b), boxes, strict=True):
            record(path, sessions)
        both: Contents = contents(a) | contents(b)
        into(b, a)
        assert contents(b) == both
        again = into(b, a)
        assert not added(again)
        assert contents(b) == both
        into(a, b)
        assert contents(a) == both
        assert not added(into(a, b))
        assert not added(into(b, a))


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_everything_travels(folder: Path) -> None:
    """Each table has rows here, so that none is forgotten by the tests above."""
    record(folder / "a.db", [NIGHT_1, NIGHT_2], change=True)
    execute(folder / "a.db", "INSERT INTO gaps SELECT id, 'postgres@17', 'insert', 'x' FROM sessions LIMIT 1")
    execute(
        folder / "a.db",
        "INSERT INTO confirmations"
        " SELECT max(session_id), series_id, 'new', min(session_id), min(session_id), 'less',"
        " 1.0, 0.9, 0.8, 0.95, 7, 0.999 FROM points GROUP BY series_id LIMIT 1",
    )
    copied = "INSERT INTO counted_profiles SELECT run_id, queries, stacks, stacks FROM profiles LIMIT 1"
    execute(folder / "a.db", copied)
    waits = "INSERT INTO wait_profiles SELECT run_id, frequency, queries, stacks FROM profiles LIMIT 1"
    execute(folder / "a.db", waits)
    kind = "INSERT INTO kinds SELECT run_id, 'payment', metric, value FROM measurements LIMIT 1"
    execute(folder / "a.db", kind)
    execute(folder / "a.db", "INSERT INTO activities SELECT id, 'checkpoint', 1, 2 FROM runs LIMIT 1")
    known = "INSERT INTO acknowledgements SELECT id, found_at, 'acknowledged', 'ann', 'x', NULL FROM changes"
    execute(folder / "a.db", known)
    told = "INSERT INTO notices VALUES (1, 'a', 1, 'trouble', '', 'x', '2026-11-26T10:00:00.000Z', NULL)"
    execute(folder / "a.db", told)
    with open_store(folder / "a.db") as store, store.database.writing() as connection:
        alert = alert_outbox.DesiredIssue(
            "f", alert_outbox.AlertKind.BUILD, "title", Markdown("body"), alert_outbox.IssueState.OPEN
        )
        alert_outbox.set_desired(connection, [alert], NIGHT)
        bisect = bisects.begin(connection, "b1", MACHINE, {}, {}, None, NIGHT)
        bisects.append(connection, bisect, bisects.EventKind.SESSION, {}, NIGHT, "night-1")
    merged = into(folder / "b.db", folder / "a.db")
    assert {name for name, count in merged.counts.items() if not count.added} == {"metrics"}
    assert contents(folder / "b.db") == contents(folder / "a.db")
    with closing(sqlite3.connect(folder / "b.db")) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_ids_are_not_taken_over(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    record(folder / "b.db", [replace(NIGHT_2, rates=((STEPS[1], VERSIONS[2], (9.0,)),))])
    both = contents(folder / "a.db") | contents(folder / "b.db")
    into(folder / "b.db", folder / "a.db")
    assert contents(folder / "b.db") == both


def test_a_session_that_runs_there_is_left_out_and_named(folder: Path) -> None:
    with open_store(folder / "a.db") as store:
        record_steps(store, session_start("over"), {"insert": {VERSIONS[0]: [1.0]}})
        record_steps(store, session_start("under way"), {"insert": {VERSIONS[0]: [1.0]}}, status=None)
    merged = into(folder / "b.db", folder / "a.db")
    assert merged.left_out == ["session under way still runs"]
    assert added(merged)["sessions"] == 1


def test_a_session_that_runs_in_a_file_is_left_out_too(folder: Path) -> None:
    """Tidemark writes no such file; another program might."""
    record(folder / "a.db", [NIGHT_1, NIGHT_2])
    with opened(folder / "a.db") as source:
        write_ndjson(source, folder / "a.ndjson")
    text = (folder / "a.ndjson").read_text()
    first = next(line for line in text.splitlines() if '"uid":"night-1"' in line)
    row = json.loads(first) | {"status": "running", "ended_at": None}
    (folder / "a.ndjson").write_text(text.replace(first, json.dumps(row)))
    with open_store(folder / "b.db") as store:
        merged = merge(store, [NdjsonFile(folder / "a.ndjson")])
    assert merged.left_out == ["session night-1 still runs"]
    assert added(merged)["sessions"] == 1


def test_dropped_rounds_keep_their_order(folder: Path) -> None:
    record(folder / "a.db", [replace(NIGHT_1, dropped=(("insert", "z"), ("delete", "a"), ("insert", "z")))])
    into(folder / "b.db", folder / "a.db")
    with open_store(folder / "b.db") as store:
        assert [row.reason for row in store.dropped(1)] == ["z", "a", "z"]


def test_a_session_that_runs_here_is_left_alone(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    record(folder / "b.db", [NIGHT_1])
    execute(folder / "b.db", "UPDATE sessions SET status = 'running', ended_at = NULL")
    execute(folder / "b.db", "DELETE FROM measurements")
    merged = into(folder / "b.db", folder / "a.db")
    assert merged.left_out == ["session night-1 still runs here"]
    assert not added(merged)


def test_a_copy_made_while_a_session_ran_is_left_as_it_is(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    record(folder / "b.db", [NIGHT_1])
    execute(folder / "b.db", "UPDATE sessions SET status = 'interrupted'")
    merged = into(folder / "b.db", folder / "a.db")
    (said,) = merged.left_out
    assert "is interrupted here, and finished there" in said


@pytest.mark.deep("merges and exports whole histories, also when killed")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE sessions SET started_at = '2030-01-01T00:00:00.000Z'", "sessions night-1 .*: started_at"),
        ("UPDATE machines SET fingerprint = 'cafe'", "sessions night-1 .*: machine is 'f00d', not 'cafe'"),
        ("UPDATE measurements SET value = 7 WHERE metric = 'qps'", "measurements .* qps .*: value"),
        ("UPDATE runs SET status = 'failed', failure = 'x'", "runs night-1 .*: .*status"),
        ("UPDATE samples SET qps = 7", "samples .*: qps"),
        ("UPDATE calibrations SET sd = 7", "calibrations .*: sd"),
        ("UPDATE dropped_rounds SET reason = 'another'", "dropped_rounds .*: reason"),
        ("UPDATE profiles SET stacks = x'00'", "profiles .*: stacks"),
    ],
)
def test_one_name_for_two_things_is_refused_and_nothing_is_written(
    folder: Path, statement: str, said: str
) -> None:
    same = replace(NIGHT_2, number=1)
    record(folder / "a.db", [replace(NIGHT_1, number=0), same])
    record(folder / "b.db", [same])
    execute(folder / "b.db", statement)
    before = contents(folder / "b.db")
    with pytest.raises(TransferError, match=f"^{said}") as refused:
        into(folder / "b.db", folder / "a.db")
    assert "nothing of it was taken" in refused.value.hint
    assert re.fullmatch(rf"{folder / 'a.db'}, row \d+ of {said.split()[0]}, against .*", refused.value.where)
    assert contents(folder / "b.db") == before, "night-0 was written, which is before night-1"


def test_two_sources_that_contradict_are_refused_before_anything_is_written(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    record(folder / "b.db", [NIGHT_1])
    execute(folder / "b.db", "UPDATE sessions SET suite = 'another'")
    with open_store(folder / "c.db") as store:
        with (
            opened(folder / "a.db") as a,
            opened(folder / "b.db") as b,
            pytest.raises(TransferError, match="suite"),
        ):
            merge(store, [a, b])
        assert store.latest_session([]) is None


def test_who_records_while_a_source_is_read_does_not_wait_for_it(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    record(folder / "b.db", [NIGHT_2])
    tonight = replace(NIGHT_1, number=3)

    class Slow(StoredRows):
        def items(self) -> Iterator[Item]:
            for number, item in enumerate(super().items()):
                if number == 20:
                    record(folder / "b.db", [tonight])
                yield item

    with open_store(folder / "b.db") as store, readable(folder / "a.db") as read, read.reading() as rows:
        merge(store, [Slow(rows, "a.db")])
    record(folder / "c.db", [NIGHT_2, tonight])
    assert contents(folder / "b.db") == contents(folder / "a.db") | contents(folder / "c.db")


def test_a_night_that_gained_rounds_is_derived_again(folder: Path) -> None:
    for name in ("a.db", "b.db"):
        record(folder / name, [NIGHT_1])
    for table in ("samples", "measurements", "runs"):
        column = "id" if table == "runs" else "run_id"
        execute(folder / "b.db", f"DELETE FROM {table} WHERE {column} = 4")
    execute(folder / "b.db", "UPDATE points SET value = 9")  # as of fewer rounds
    assert into(folder / "b.db", folder / "a.db").derived == 1
    assert contents(folder / "b.db") == contents(folder / "a.db")
    assert not added(into(folder / "b.db", folder / "a.db"))


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_what_people_said_of_a_change_here_stays(folder: Path) -> None:
    for name, status in (("a.db", "open"), ("b.db", "acknowledged")):
        record(folder / name, [NIGHT_1, NIGHT_2], change=True)
        execute(folder / name, f"UPDATE changes SET status = '{status}'")
    into(folder / "b.db", folder / "a.db")
    with open_store(folder / "b.db") as store, store.database.reading() as connection:
        assert [row.status for row in connection.execute(changes.select())] == ["acknowledged"]


def test_a_calibration_recorded_after_a_copy_is_added(folder: Path) -> None:
    for name in ("a.db", "b.db"):
        record(folder / name, [NIGHT_1])
    with open_store(folder / "a.db") as store:
        store.record_noise(1, [StepNoise("insert", "qps", 0.1, 9.0, 10)])
    assert added(into(folder / "b.db", folder / "a.db")) == {"calibrations": 1}


def test_sessions_without_nights_get_them_here(folder: Path) -> None:
    """As from an export that was made before there were nights."""
    record(folder / "a.db", [NIGHT_1])
    wanted = contents(folder / "a.db")
    with opened(folder / "a.db") as source:
        write_ndjson(source, folder / "whole.ndjson")
    lines = map(json.loads, (folder / "whole.ndjson").read_text(encoding="utf-8").splitlines())
    derived = ("points", "nights", "series", "gaps")
    kept = [line for line in lines if line.get("table") not in derived and "end" not in line]
    kept.append({"end": True, "rows": len(kept) - 1})
    (folder / "older.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")
    for times in (1, 0):
        with open_store(folder / "b.db") as store:
            assert merge(store, [NdjsonFile(folder / "older.ndjson")]).derived == times
    assert contents(folder / "b.db") == wanted


def test_a_metric_that_is_gone_travels_where_it_is_known(folder: Path) -> None:
    for name in ("a.db", "b.db"):
        with open_store(folder / name) as store, store.database.writing() as connection:
            connection.execute(
                metrics.insert().values(
                    name="gone", unit="s", better="lower", description="no longer measured"
                )
            )
    record(folder / "a.db", [NIGHT_1])
    execute(folder / "a.db", "UPDATE measurements SET metric = 'gone' WHERE metric = 'reset_seconds'")
    into(folder / "b.db", folder / "a.db")
    assert any(key[-1] == "gone" for table, key in contents(folder / "b.db") if table == "measurements")
    with pytest.raises(TransferError, match=r"unknown metric: gone \(s\)"):
        into(folder / "c.db", folder / "a.db")
    execute(folder / "b.db", "UPDATE metrics SET unit = 'furlongs' WHERE name = 'gone'")
    with pytest.raises(TransferError, match="unknown unit: gone is in s, and in furlongs here"):
        into(folder / "b.db", folder / "a.db")


@pytest.mark.parametrize("make", ["missing", "text", "newer", "foreign"])
def test_what_is_no_history_is_refused(folder: Path, make: str) -> None:
    path = folder / "a.db"
    if make == "text":
        path.write_text("Dear diary")
    elif make == "foreign":
        execute(path, "CREATE TABLE pictures (id INTEGER)")
    elif make == "newer":
        open_store(path).close()
        execute(path, "INSERT INTO schema_migrations VALUES (999, 'future', '2030-01-01T00:00:00.000Z')")
    said = {
        "missing": "no such history",
        "text": "not a SQLite",
        "newer": "newer Tidemark",
        "foreign": "not Tidemark's",
    }
    with pytest.raises(Exception, match=said[make]):
        into(folder / "b.db", path)
    with open_store(folder / "b.db") as store:
        assert store.latest_session([]) is None


def test_a_damaged_row_of_a_history_is_named(folder: Path) -> None:
    record(folder / "a.db", [NIGHT_1])
    execute(folder / "a.db", "UPDATE sessions SET options = 'not json'")
    with pytest.raises(TransferError, match="sessions: options is 'not json', not a JSON object") as refused:
        into(folder / "b.db", folder / "a.db")
    assert "row 1 of sessions" in refused.value.where
