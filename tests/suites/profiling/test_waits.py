"""Samples of what clients wait for: which of them count, and what ends sampling."""

import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.innodb.server import states_of
from suites.profiling.profiler import WaitObserver
from suites.server import ClientStates, ServerError

LOCK = "waiting;LWLock:WALInsert"


class Clock:
    """A server's clients, all of which wait for a lock, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.fails = 0.0, False
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def read(self) -> Mapping[str, int]:
        if self.fails:
            raise ServerError("it does not answer")
        return {LOCK: 3}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_samples_outside_of_the_windows_do_not_count(clock: Clock) -> None:
    observer = WaitObserver(ClientStates(clock.read))
    observer.question.take()
    for clock.now in range(1, 13):
        if clock.now in (2, 8):
            observer.begin(1)
        observer.question.take()
        if clock.now in (4, 5, 10):
            observer.end(1)  # that of 5 counts, as it comes later
    taken = observer.profile(1000)
    assert taken is not None
    assert taken.stacks == {LOCK: 3 * (3 + 2)}, "at 2, 3 and 4, and at 8 and 9"
    assert taken.microseconds_per_sample == 100, "10 samples a second of 1,000 queries"


def test_without_queries_or_samples_there_is_nothing(clock: Clock) -> None:
    observer = WaitObserver(ClientStates(clock.read))
    observer.begin(1)
    assert observer.profile(1000) is None
    observer.question.take()
    clock.now = 1.0
    observer.end(1)
    assert observer.profile(0) is None


def test_a_server_that_does_not_answer_loses_its_samples_and_no_more(clock: Clock) -> None:
    observer = WaitObserver(ClientStates(clock.read))
    observer.begin(1)
    observer.question.take()
    clock.fails, clock.now = True, 1.0
    observer.question.take()
    observer.end(1)
    assert observer.profile(1000) is None


# --- the states of InnoDB's threads


def test_stages_that_wait_are_told_from_those_that_work() -> None:
    names = ["waiting for handler commit", "updating", "System lock", "updating", "no state"]
    assert states_of(names, 0) == {
        "waiting;waiting for handler commit": 1,
        "working;updating": 2,
        "waiting;System lock": 1,
        "working;no state": 1,
    }


def test_a_client_that_waits_for_a_row_is_in_no_other_state() -> None:
    names = ["updating"] * 5 + ["statistics"] * 2 + ["waiting for handler commit"] * 9
    assert states_of(names, 6) == {
        "working;statistics": 1,
        "waiting;waiting for handler commit": 9,
        "waiting;row lock": 6,
    }
    assert states_of(["updating"], 2) == {"waiting;row lock": 1}, "one has ended meanwhile"


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(0, 500))
def test_every_client_has_one_state(names: list[str], locked: int) -> None:
    states = states_of(names, locked)
    assert sum(states.values()) == len(names)
    assert all(states.values())
