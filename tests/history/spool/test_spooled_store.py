"""A box records first in its journal: whatever becomes of the history, it gets each round, and once.

The history is a file here, which stands for a server; tests/history/spool/test_faults.py has real ones.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from build.home import Home
from history.errors import HistoryError
from history.open import derive_ended, open_store
from history.spool.journal import Journal, open_journal_store, waiting_in
from history.spool.spooled_store import SpooledStore
from history.store import process, writer
from history.store.database import connect
from history.store.records import DroppedRound, FailureCause, SessionStatus, StepNoise, VersionFailure
from history.store.writer import Store
from suites.turns.warmth import Warmth
from tests.history.conftest import rows
from tests.history.handmade import NIGHT, a_build, run_record, session_start

URL = "postgresql+psycopg://ci:secret@db/history"
BASE, NEW = "postgres@17.11", "postgres@18.6"


class Box:
    """A box with a journal, and a history that can be away."""

    def __init__(self, folder: Path, name: str = "box") -> None:
        self.home = Home(folder / name)
        self.path = folder / "history.db"
        self.said: list[str] = []
        self.store = self.open()

    def open(self) -> SpooledStore:
        journal = open_journal_store(self.home.spool / "j.db", URL, lambda: NIGHT)
        database = connect(self.path)
        return SpooledStore(database, Journal(journal), lambda: NIGHT, derive_ended, None, self.said.append)

    def lose_history(self) -> None:
        """What the box has open is another file from now on, and nothing is there."""
        self.path.rename(self.path.with_name("away.db"))
        self.path.mkdir()
        self.store.database.close()

    def find_history(self) -> None:
        self.path.rmdir()
        self.path.with_name("away.db").rename(self.path)

    def again(self) -> SpooledStore:
        """The next command of the box."""
        self.store.close()
        self.store = self.open()
        self.store.deliver()
        return self.store


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    made.store.deliver()
    yield made
    made.store.close()


def record(store: Store, session: int, *rounds: int) -> None:
    for number in rounds:
        store.record_runs(
            session,
            [
                run_record({"qps": 1000.0 + number}, version=version, repetition=number, position=2 * number)
                for version in (BASE, NEW)
            ],
        )


def whole(path: Path) -> list[tuple[object, ...]]:
    with open_store(path) as store:
        return rows(
            store,
            "SELECT uid, sessions.status, version, repetition, value FROM runs"
            " JOIN sessions ON sessions.id = session_id JOIN measurements ON run_id = runs.id"
            " ORDER BY 1, 3, 4",
        )


def rounds_of(uid: str, status: str, *numbers: int) -> list[tuple[object, ...]]:
    return [(uid, status, version, number, 1000.0 + number) for version in (BASE, NEW) for number in numbers]


def test_a_history_that_is_there_has_all_of_a_session_when_it_ends(box: Box) -> None:
    session = box.store.start_session(session_start("a"))
    record(box.store, session, 1, 2)
    box.store.record_dropped(session, DroppedRound("insert", 3, "noise", {BASE: 1.5}))
    box.store.record_plans(session, BASE, {"insert": "a plan"})
    record(box.store, session, 3)
    box.store.record_noise(session, [StepNoise("insert", "qps", 0.01, 9.0, 10)])
    box.store.finish_session(session, SessionStatus.FINISHED)
    assert not box.store.away
    assert whole(box.path) == rounds_of("a", "finished", 1, 2, 3)
    with open_store(box.path) as there:
        assert [row for (row,) in rows(there, "SELECT count(*) FROM nights")] == [2]
        assert there.dropped(1) == (DroppedRound("insert", 3, "noise", {BASE: 1.5}),)
        assert "a plan" in rows(there, "SELECT options FROM sessions")[0][0]
        assert rows(there, "SELECT step, sd FROM calibrations") == [("insert", 0.01)]
    assert waiting_in(box.home.spool) == []


RECORDED: dict[str, tuple[Any, ...]] = {
    "record_run": (run_record({"qps": 1.0}, version=BASE, repetition=8, position=8),),
    "record_runs": ([run_record({"qps": 1.0}, version=BASE, repetition=9, position=9)],),
    "record_dropped": (DroppedRound("insert", 3, "noise", {BASE: 1.5}),),
    "record_plans": (BASE, {"insert": "a plan"}),
    "record_data": (BASE, {"bytes": 1}),
    "record_warmth": ("insert", Warmth(3.0, True)),
    "record_failed": ({NEW: VersionFailure(FailureCause.VERSION, "it crashed")},),
    "record_out_of_time": (),
    "record_executed": ("insert", {"heap_insert"}),
    "record_noise": ([StepNoise("insert", "qps", 0.01, 9.0, 10)],),
}
"""What each method that records is called with, besides the session."""


def test_every_method_that_records_is_called() -> None:
    assert set(RECORDED) == {name for name in dir(Store) if name.startswith("record_")}


def held(store: Store, uid: str) -> list[list[tuple[object, ...]]]:
    """All that was recorded of a session."""
    of = f"FROM sessions JOIN {{}} ON session_id = sessions.id WHERE uid = '{uid}'"
    return [
        rows(store, f"SELECT options, status FROM sessions WHERE uid = '{uid}'"),
        rows(store, f"SELECT version, step, repetition {of.format('runs')}"),
        rows(store, f"SELECT step, reason {of.format('dropped_rounds')}"),
        rows(store, f"SELECT step, sd {of.format('calibrations')}"),
    ]


@pytest.mark.deep("a whole command on a whole history")
@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded_is_of_the_session_of_this_box(tmp_path: Path, name: str) -> None:
    """The history is as a file into which the session was recorded directly, and another box has its own."""
    first, second = Box(tmp_path, "first"), Box(tmp_path, "second")
    first.store.start_session(
        session_start("a")
    )  # has the same id in the history as the other in its journal
    before = held(first.store, "a")
    with open_store(tmp_path / "alone.db") as alone:
        for store in (alone, second.store):
            session = store.start_session(session_start("b"))
            getattr(store, name)(session, *RECORDED[name])
            store.finish_session(session, SessionStatus.FINISHED)
        wanted = held(alone, "b")
    with open_store(tmp_path / "history.db") as there:
        assert held(there, "a") == before
        assert held(there, "b") == wanted
    for box in (first, second):
        box.store.close()


@pytest.mark.deep("a whole command on a whole history")
def test_a_session_goes_on_while_the_history_is_away_and_is_delivered_once(box: Box) -> None:
    session = box.store.start_session(session_start("a"))
    record(box.store, session, 1)
    box.store.deliver()
    box.lose_history()
    record(box.store, session, 2)
    box.store.deliver()
    assert "cannot be opened" in box.store.away
    record(box.store, session, 3)
    box.store.finish_session(session, SessionStatus.FINISHED)
    (waiting,) = waiting_in(box.home.spool)
    assert (waiting.sessions, waiting.rounds, waiting.since) == (1, 2, NIGHT)
    assert "secret" not in str(waiting)
    box.find_history()
    for _ in range(2):
        box.again()
        assert whole(box.path) == rounds_of("a", "finished", 1, 2, 3)
    assert waiting_in(box.home.spool) == []
    with open_store(box.path) as there:
        assert rows(there, "SELECT count(*) FROM points")[0][0] == 2


def test_a_session_that_began_without_the_history_is_read_on_the_box_until_it_is_delivered(box: Box) -> None:
    box.lose_history()
    store = box.again()
    session = store.start_session(session_start("a"))
    record(store, session, 1)
    store.finish_session(session, SessionStatus.FINISHED)
    held = store.holder("a")
    assert held is not store
    assert held.latest_session((), uid="a") is not None
    with store.standing_in() as (connection,):
        assert connection.exec_driver_sql("SELECT count(*) FROM nights").scalar() == 2
    box.find_history()
    store = box.again()
    assert store.holder("a") is store


def test_an_interrupted_session_is_resumed_without_the_history(box: Box) -> None:
    session = box.store.start_session(session_start("a"))
    record(box.store, session, 1)
    box.store.finish_session(session, SessionStatus.INTERRUPTED)
    with open_store(box.path) as there:
        assert rows(there, "SELECT count(*) FROM nights")[0][0] == 2
    box.lose_history()
    store = box.again()
    builds = (a_build(BASE), a_build(NEW))
    resumed = store.resume_session(session_start("b"), builds, NIGHT - timedelta(hours=1))
    assert resumed is not None
    assert (resumed.uid, len(resumed.recorded)) == ("a", 1)
    record(store, resumed.id, 2)
    box.find_history()
    store.deliver()
    with open_store(box.path) as there:
        assert rows(there, "SELECT status FROM sessions") == [("running",)]
        assert rows(there, "SELECT count(*) FROM nights")[0][0] == 0
    store.finish_session(resumed.id, SessionStatus.FINISHED)
    assert whole(box.path) == rounds_of("a", "finished", 1, 2)


def test_a_killed_process_leaves_its_rounds_to_the_next_command(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = replace(process.this_process(), start_ticks=1)
    with monkeypatch.context() as patched:
        patched.setattr(writer, "this_process", lambda: gone)
        session = box.store.start_session(session_start("a"))
    box.lose_history()
    record(box.store, session, 1)
    box.find_history()
    box.again()
    assert whole(box.path) == rounds_of("a", "interrupted", 1)


def test_what_a_promoted_replica_lacks_is_sent_again(box: Box, tmp_path: Path) -> None:
    session = box.store.start_session(session_start("a"))
    record(box.store, session, 1)
    box.store.close()
    lagging = box.path.read_bytes()
    box.store = box.open()
    box.store.deliver()
    session = box.store.start_session(session_start("b"))
    record(box.store, session, 1, 2)
    box.store.finish_session(session, SessionStatus.FINISHED)
    box.store.close()
    for path in tmp_path.glob("history.db*"):
        path.unlink()
    box.path.write_bytes(lagging)
    box.again()
    assert [row for row in whole(box.path) if row[0] == "b"] == rounds_of("b", "finished", 1, 2)


def test_a_session_that_the_history_refuses_holds_up_no_other(box: Box) -> None:
    with open_store(box.path, clock=lambda: NIGHT) as there:
        there.start_session(session_start("a", suite="another"))
    for uid in "ab":
        session = box.store.start_session(session_start(uid))
        record(box.store, session, 1)
        box.store.finish_session(session, SessionStatus.FINISHED)
    assert "another session under the name a: suite" in box.store.problems[0]
    assert whole(box.path) == rounds_of("b", "finished", 1)
    (waiting,) = waiting_in(box.home.spool)
    assert (waiting.sessions, waiting.rounds) == (1, 1)


def test_a_box_with_an_older_program_keeps_its_rounds_until_it_is_updated(box: Box) -> None:
    session = box.store.start_session(session_start("a"))
    with box.store.database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO schema_migrations VALUES (999, 'future', 'now')")
    record(box.store, session, 1)
    box.store.finish_session(session, SessionStatus.FINISHED)
    assert "schema 999 by now" in box.store.away
    assert "newer Tidemark" in box.again().away
    with pytest.raises(HistoryError, match="newer Tidemark"):
        open_store(box.path)
    (waiting,) = waiting_in(box.home.spool)
    assert waiting.rounds == 1


def test_what_was_delivered_long_ago_is_forgotten(box: Box) -> None:
    session = box.store.start_session(session_start("a"))
    record(box.store, session, 1)
    box.store.finish_session(session, SessionStatus.FINISHED)
    journal = Journal(open_journal_store(box.home.spool / "j.db", URL))
    journal.forget(NIGHT)
    assert journal.kept() == ["a"]
    journal.forget(NIGHT + timedelta(days=1))
    assert (journal.kept(), journal.pending()) == ([], {})
    journal.store.close()
    box.again()
    assert whole(box.path) == rounds_of("a", "finished", 1)
