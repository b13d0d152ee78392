"""A history behind PgBouncer in transaction mode: every transaction may have another connection."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path

import pytest

import compare as program
from benchmarks.scale.history_server import HistoryServer
from build.home import Home
from history.backups.backup import back_up
from history.changes.detector import judge
from history.errors import HistoryError
from history.open import open_store
from history.spool.opening import open_recorded
from history.store.records import SessionStatus
from tests.history.conftest import rows
from tests.history.handmade import record_steps, run_record, session_start

OLD, NEW = "postgres@17.11", "postgres@18.6"
WRITERS, ROUNDS = 6, 12

pytestmark = pytest.mark.server


@pytest.fixture
def url(server: HistoryServer) -> Iterator[str]:
    """Through a pooler with two connections to the server."""
    with server.pooled() as pooled:
        yield pooled


def test_more_writers_than_connections(url: str, new_home: Callable[[str], Home]) -> None:
    """Each statement often enough for psycopg to prepare it, were it allowed to."""

    def write(number: int) -> None:
        with open_recorded(url, new_home(f"box{number}")) as store:
            session = store.start_session(session_start(f"s{number}", ROUNDS))
            for repetition in range(1, ROUNDS + 1):
                store.record_runs(session, [run_record(repetition=repetition, position=repetition)])
                store.deliver()
            store.finish_session(session, SessionStatus.FINISHED)
            assert not store.problems

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    with open_store(url) as store:
        found = rows(store, "SELECT session_id, count(*) FROM runs GROUP BY 1")
        assert [count for _, count in found] == [ROUNDS] * WRITERS


def test_read_compared_and_copied(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = {"insert": {OLD: [1000.0, 1010.0, 990.0], NEW: [900.0, 909.0, 891.0]}}
    with open_store(url) as store:
        record_steps(store, session_start(), rates)
        assert judge(store.database).series > 0
    assert program.main([OLD, NEW, "--history", url]) == 1
    assert "regression" in capsys.readouterr().out
    back_up(url, tmp_path / "backup.db")
    with open_store(tmp_path / "backup.db") as copy:
        assert len(rows(copy, "SELECT id FROM runs")) == 6


def test_boxes_tell_one_after_the_other(url: str) -> None:
    """The lock of who tells goes with its transaction, and is not left behind on a connection of others."""

    def tell() -> None:
        with open_store(url) as other, other.database.delivery_lock():
            pass

    with open_store(url) as store:
        for _ in range(3):
            with ThreadPoolExecutor(1) as pool:
                with store.database.delivery_lock():
                    later = pool.submit(tell)
                    with pytest.raises(NotYet):
                        later.result(0.3)
                later.result(10)
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        deadline = time.monotonic() + 10  # the server ends a connection after the pooler has
        while rows(store, held) != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_pooler_without_transactions_is_refused(server: HistoryServer) -> None:
    with (
        server.pooled(mode="statement") as url,
        pytest.raises(HistoryError, match=r"allows no transactions(.*\n)*.*pool_mode = transaction"),
    ):
        open_store(url)
