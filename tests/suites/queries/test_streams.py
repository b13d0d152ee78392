"""Streams of queries without a server: who runs what, the end at a limit or an error, and the figures."""

import time
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from suites.engine import Rows
from suites.generators.load import LoadError
from suites.generators.queries.client import QueryFailure, execute, load_of_streams, run_streams


class RecordingSession:
    """Notes its statements; `slow` is ended at the limit, `late` is not, `wrong` fails."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.limit = 0.0
        self.is_closed = False

    def execute(self, text: str) -> Rows:
        self.sent.append(text)
        time.sleep(0.001)  # other threads run, as while one waits for a server
        if text == "slow":
            time.sleep(self.limit)
            raise psycopg.errors.QueryCanceled("canceling statement")
        if text == "late":
            time.sleep(1.1 * self.limit)
        if text == "wrong":
            raise psycopg.errors.SyntaxError("syntax error")
        return ()

    def discard(self, text: str) -> None:
        self.execute(text)

    def set_limit(self, seconds: float) -> None:
        self.limit = seconds
        self.sent.append(f"limit {seconds:g}")

    def fill(self, table: str, rows: object) -> None:
        raise NotImplementedError

    def prepare_load(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.is_closed = True


class Sessions:
    """Makes sessions, and keeps them."""

    def __init__(self) -> None:
        self.made: list[RecordingSession] = []

    def __call__(self) -> RecordingSession:
        self.made.append(RecordingSession())
        return self.made[-1]


def query(text: str) -> Mapping[str, Any]:
    return {"name": text, "statements": [text]}


def test_every_stream_has_a_session_and_its_own_order() -> None:
    sessions = Sessions()
    done = run_streams(sessions, [[query("a"), query("b")], [query("b"), query("c")]], 5, 0)
    assert [session.sent for session in sessions.made] == [["limit 5", "a", "b"], ["limit 5", "b", "c"]]
    assert [name for name, _ in done.runs] == ["a", "b", "b", "c"]
    assert done.over is None
    assert done.seconds >= max(seconds for _, seconds in done.runs)
    assert all(session.is_closed for session in sessions.made)


def test_a_query_over_its_limit_ends_all_streams() -> None:
    sessions = Sessions()
    done = run_streams(sessions, [[query("slow"), query("a")], [query("slow"), query("b")]], 0.05, 0)
    assert done.over == "slow"
    assert done.runs == []
    assert [session.sent[1:] for session in sessions.made] == [["slow"], ["slow"]]


@pytest.mark.parametrize("statement", ["slow", "late"])
def test_nothing_is_begun_beyond_the_limit(statement: str) -> None:
    """MySQL ends no statement that writes."""
    session = RecordingSession()
    session.set_limit(0.05)
    done = execute(session, [statement, "a"], 0.05)
    assert done.is_over
    assert done.seconds >= 0.05
    assert session.sent[1:] == [statement]


def test_streams_begin_again_until_their_time_is_over() -> None:
    sessions = Sessions()
    done = run_streams(sessions, [[query("a"), query("b")]] * 2, 5, seconds=0.05)
    assert 0.05 <= done.seconds < 4
    for session in sessions.made:
        assert session.sent[1:] == ["a", "b"] * (len(session.sent) // 2)
        assert len(session.sent) > 5


def test_an_error_ends_all_streams_and_closes_their_sessions() -> None:
    sessions = Sessions()
    with pytest.raises(QueryFailure, match=r"^syntax error$") as caught:
        run_streams(sessions, [[query("wrong"), query("a")]], 5, 0)
    assert caught.value.name == "wrong"
    assert [session.sent[1:] for session in sessions.made] == [["wrong"]]
    assert all(session.is_closed for session in sessions.made)


def test_queries_are_kinds() -> None:
    load = load_of_streams([("q1", 10.0), ("q2", 0.001), ("q1", 10.0)], 25.0, executions=3)
    assert (load.transactions, load.seconds) == (3, 25.0)
    assert {name: kind.transactions for name, kind in load.kinds.items()} == {"q1": 2, "q2": 1}
    assert load.latency_ms == pytest.approx({"mean": 20_001 / 3, "p50": 10_000, "max": 10_000})
    assert load.kinds["q2"].latency_ms["mean"] == pytest.approx(1)


def test_without_a_query_there_is_no_figure() -> None:
    with pytest.raises(LoadError, match="no query was finished"):
        load_of_streams([], 1.0, executions=0)
