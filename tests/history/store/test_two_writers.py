"""Two writers of one history at the same moment: in either store, one waits for the other."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection, update

from build.lock import LockError
from history.derive import derive
from history.errors import HistoryError
from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox, database, process, writer
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.records import SessionStatus
from history.store.resume import find_interrupted, reopen
from history.store.schema import sessions
from history.store.writer import Store
from tests.history.conftest import Target, rows
from tests.history.handmade import NIGHT, a_build, record_steps, run_record, session_start

WAITS = 0.3
"""Seconds after which a writer that does not wait for another would long be ready."""

BASE = "postgres@17.11"

T = TypeVar("T")


def beside(
    store: Store, target: Target, first: Callable[[Connection], object], then: Callable[[Store], T]
) -> T:
    """What `then` does in another store while a transaction that did `first` has not ended."""

    def act() -> T:
        with open_store(target, clock=lambda: NIGHT) as other:
            return then(other)

    with ThreadPoolExecutor(1) as pool:
        with store.database.writing() as connection:
            first(connection)
            later: Future[T] = pool.submit(act)
            with pytest.raises(NotYet):
                later.result(WAITS)
        return later.result(30)


@pytest.fixture
def dead(store: Store, monkeypatch: pytest.MonkeyPatch) -> int:
    """A session of a process that is gone, with a run."""
    gone = replace(process.this_process(), start_ticks=1)
    with monkeypatch.context() as patched:
        patched.setattr(writer, "this_process", lambda: gone)
        session = store.start_session(session_start("dead"))
    store.record_run(session, run_record(version=BASE))
    return session


def test_a_server_that_still_ends_the_session_of_a_killed_client(
    store: Store, target: Target, dead: int
) -> None:
    """Postgres goes on with what a client sent last, although that client is gone."""

    def end(connection: Connection) -> None:
        values = {"status": SessionStatus.FINISHED, "ended_at": "2026-03-01T02:30:00.000Z"}
        connection.execute(update(sessions).where(sessions.c.id == dead).values(values))
        derive(connection, dead)

    beside(store, target, end, lambda other: other.start_session(session_start("next")))
    assert rows(store, "SELECT uid, status FROM sessions ORDER BY id") == [
        ("dead", "finished"),
        ("next", "running"),
    ]
    assert rows(store, "SELECT session_id FROM nights") == [(dead,)]


def test_one_of_two_goes_on_with_an_interrupted_session(store: Store, target: Target) -> None:
    session = record_steps(store, session_start(), {"insert": {BASE: [1.0]}}, SessionStatus.INTERRUPTED)
    builds, since = (a_build(BASE),), NIGHT - timedelta(hours=1)
    here = process.this_process()

    def first(connection: Connection) -> None:
        found = find_interrupted(connection, session_start(), builds, since)
        assert found is not None
        assert found.id == session
        reopen(connection, session, here)

    def resume(other: Store) -> object:
        return other.resume_session(session_start("b"), builds, since)

    assert beside(store, target, first, resume) is None


def test_an_alert_that_two_want_is_one(store: Store, target: Target) -> None:
    desired = [DesiredIssue("f1", AlertKind.CHANGE, "slower", Markdown(), IssueState.OPEN)]

    def write(other: Store) -> None:
        with other.database.writing() as connection:
            alert_outbox.set_desired(connection, desired, NIGHT)

    beside(store, target, lambda connection: alert_outbox.set_desired(connection, desired, NIGHT), write)
    assert rows(store, "SELECT fingerprint FROM alerts") == [("f1",)]


def test_a_writer_that_waited_long_is_told_of_the_other(
    store: Store, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 100)
    with open_store(target) as other, store.database.writing() as connection:
        connection.execute(update(sessions).values(seed=1))
        with pytest.raises(HistoryError, match="another process holds a lock on the history"):
            other.start_session(session_start("second"))
    assert rows(store, "SELECT uid FROM sessions") == []


def test_hosts_that_share_a_history_tell_of_it_one_after_the_other(
    store: Store, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do two homes on one host that share a SQLite file.

    A tracker may be slow: who waits for another to tell it waits longer than for one who records.
    """
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", round(1000 * WAITS / 3))

    def tell() -> None:
        with open_store(target) as other, other.database.delivery_lock():
            pass

    with ThreadPoolExecutor(1) as pool:
        with suppress(RuntimeError), store.database.delivery_lock():
            later = pool.submit(tell)
            with pytest.raises(NotYet):
                later.result(WAITS)
            record_steps(store, session_start(), {"insert": {BASE: [1.0]}})  # who measures does not wait
            raise RuntimeError("the tracker")
        later.result(30)
    with store.database.delivery_lock():
        pass


def test_the_lock_of_deliveries_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    victim.chmod(0o600)
    (tmp_path / f"history.db{database.DELIVERING}").symlink_to(victim)
    with (
        open_store(tmp_path / "history.db") as store,
        pytest.raises(LockError, match="cannot be opened"),
        store.database.delivery_lock(),
    ):
        pass
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("whole", 0o600)


def test_who_tells_may_lose_the_server_and_ends_as_told(store: Store, target: Target) -> None:
    """Its lock ends with the connection, and nothing else does."""
    with store.database.delivery_lock():
        if store.database.dialect == "postgresql":
            ended = (
                "SELECT pg_terminate_backend(pid) FROM pg_locks"
                " WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()"
            )
            assert rows(store, ended) == [(True,)]
    with open_store(target) as other, other.database.delivery_lock():
        pass
