"""Queries in several sessions without a server: who runs what, and the end at a limit or an error."""

import time
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from suites.engine import Rows
from suites.generators.queries.client import QueryFailure, execute, run_streams
from suites.generators.queries.conductor import load_of


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


def sessions(limit: float = 5) -> list[RecordingSession]:
    made = [RecordingSession(), RecordingSession()]
    for session in made:
        session.limit = limit
    return made


def query(text: str) -> Mapping[str, Any]:
    return {"name": text, "statements": [text]}


def test_every_session_carries_all_queries_out_in_their_order() -> None:
    both = sessions()
    done = run_streams(both, [query("a"), query("b")], 5, 0)
    assert [session.sent for session in both] == [["a", "b"], ["a", "b"]]
    assert [name for name, _ in done.runs] == ["a", "b", "a", "b"]
    assert done.over is None
    assert done.seconds >= max(seconds for _, seconds in done.runs)


def test_a_query_over_its_limit_ends_all_streams() -> None:
    both = sessions(0.05)
    done = run_streams(both, [query("slow"), query("a")], 0.05, 0)
    assert done.over == "slow"
    assert done.runs == []
    assert [session.sent for session in both] == [["slow"], ["slow"]]


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
    both = sessions()
    done = run_streams(both, [query("a"), query("b")], 5, seconds=0.05)
    assert 0.05 <= done.seconds < 4
    for session in both:
        assert session.sent == ["a", "b"] * (len(session.sent) // 2)
        assert len(session.sent) > 5


def test_an_error_ends_all_streams() -> None:
    both = sessions()
    with pytest.raises(QueryFailure, match=r"^syntax error$") as caught:
        run_streams(both, [query("wrong"), query("a")], 5, 0)
    assert caught.value.name == "wrong"
    assert "a" not in both[0].sent + both[1].sent


def test_queries_are_kinds() -> None:
    load = load_of([("q1", 10.0), ("q2", 0.001), ("q1", 10.0)], 25.0, executions=3)
    assert (load.transactions, load.seconds) == (3, 25.0)
    assert {name: kind.transactions for name, kind in load.kinds.items()} == {"q1": 2, "q2": 1}
    assert load.latency_ms == pytest.approx({"mean": 20_001 / 3, "p50": 10_000, "max": 10_000})
    assert load.kinds["q2"].latency_ms["mean"] == pytest.approx(1)
