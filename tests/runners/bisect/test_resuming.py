"""A bisect that is interrupted goes on and measures nothing twice; it stays out of nights."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from build.finished_build import Build
from build.version import Version
from history.store import bisects
from history.store.bisects import EventKind
from history.store.schema import nights, runs, sessions
from runners.bisect.report.replay import replay
from runners.bisect.report.state import BisectState
from runners.bisect.run.bisect import OtherMachineError
from runners.bisect.run.event_log import Log, Round, read_log, search_after
from tests.runners.bisect.conftest import SLOWER, Line, asked, verdict_of
from tests.runners.bisect.stand import Fuse, KilledError, Stand, total_rounds

Made = Callable[..., Stand]

# --- going on


@pytest.mark.deep("searches that are simulated many times")
def test_killed_at_any_point_it_goes_on_and_measures_nothing_twice(
    stand: Made, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse()
    append = bisects.append

    def appended(*words: Any, **more: Any) -> None:
        fuse.pass_()
        append(*words, **more)

    monkeypatch.setattr(bisects, "append", appended)
    machine = stand((11, SLOWER), fuse=fuse)
    whole = machine.bisect(asked(line, seconds=2.0))
    last = fuse.passed
    assert last > 30
    for number in range(0, last, 5):
        question = asked(line, seconds=3.0 + number)
        fuse.left = number
        with pytest.raises(KilledError):
            machine.bisect(question)
        fuse.left = None
        before = total_rounds(machine.store)
        kept = sum(1 for _ in latest(machine).all_rounds()) if bisected(machine) else 0
        log = machine.bisect(question)
        assert verdict_of(log).kind == "culprit", number
        assert verdict_of(log).high == verdict_of(whole).high
        added = total_rounds(machine.store) - before
        assert BisectState(log).rounds == kept + added, "every round counts once"


def latest(machine: Stand) -> Log:
    with machine.store.database.reading() as connection:
        found = next(bisects.load_all(connection))
    return read_log(machine.store, found)


def bisected(machine: Stand) -> bool:
    """Whether the latest bisect has no verdict yet, and so is the one that was killed."""
    with machine.store.database.reading() as connection:
        return next(bisects.load_all(connection)).verdict is None


@pytest.mark.deep("searches that are simulated many times")
def test_killed_again_and_again(stand: Made, line: Line) -> None:
    machine, question = stand((11, SLOWER)), asked(line)
    for left in range(1, 60):
        machine.fuse = Fuse(left=left)
        with contextlib.suppress(KilledError):
            machine.bisect(question)
            break
    log = latest(machine)
    assert verdict_of(log).high == 11
    assert len(log.bisect.sessions) > 3
    assert BisectState(log).rounds == total_rounds(machine.store)


def test_the_state_is_a_function_of_log_and_runs(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), uncompilable={line.version(8): "error"})
    log = machine.bisect(asked(line))
    before = 0
    for entry in log.entries():
        if isinstance(entry, Round):
            before = entry.number
        elif entry.kind in (EventKind.EXCLUDED, EventKind.BUILT):
            assert entry.detail["after_round"] == before, "each event stands where it happened"
    assert before > 3
    again = search_after(log)
    found = again.next()
    assert found == verdict_of(log)
    runs_alone = replace(log.bisect, events=log.bisect.events[:-1])
    without = read_log(machine.store, runs_alone)
    assert list(without.all_rounds()) == list(log.all_rounds()), "the verdict holds what the runs say"
    assert search_after(without).next() == found


@pytest.mark.deep("searches that are simulated many times")
def test_the_same_again_measures_nothing(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    first = machine.bisect(asked(line))
    rounds = total_rounds(machine.store)
    assert machine.bisect(asked(line)).bisect.uid == first.bisect.uid
    assert total_rounds(machine.store) == rounds
    assert machine.bisect(asked(line), again=True).bisect.uid != first.bisect.uid
    assert total_rounds(machine.store) > rounds


@pytest.mark.deep("searches that are simulated many times")
def test_another_question_is_another_bisect(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    uids = {
        machine.bisect(asked(line, **change)).bisect.uid
        for change in ({}, {"direction": "either"}, {"metric": "server_cpu_us_per_op"}, {"seconds": 2.0})
    }
    assert len(uids) == 4


def test_the_budget_ends_a_call_and_the_next_goes_on(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    log = machine.bisect(asked(line), budget_seconds=5 * 60.0)
    assert log.bisect.verdict is None
    assert 5 <= total_rounds(machine.store) <= 7
    for _ in range(40):
        before = total_rounds(machine.store)
        log = machine.bisect(asked(line), budget_seconds=5 * 60.0)
        if log.bisect.verdict is not None:
            break
        assert total_rounds(machine.store) > before
    assert verdict_of(log).high == 11


def test_another_machine_is_refused(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    machine.bisect(asked(line), budget_seconds=3 * 60.0)
    machine.machine = replace(machine.machine, fingerprint="beef", kernel="6.9")
    with pytest.raises(OtherMachineError, match="began on another machine: db1") as caught:
        machine.bisect(asked(line))
    assert "kernel: 6.8.0-55 -> 6.9" in caught.value.where
    assert "--again" in caught.value.hint
    assert verdict_of(machine.bisect(asked(line), again=True)).high == 11


def test_what_is_likely_is_compiled_ahead(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), uncompilable={line.version(8): "error"})
    machine.fuse = Fuse(left=5)
    with pytest.raises(KilledError):
        machine.bisect(asked(line), build_ahead=3)
    assert len(machine.built) == 4
    events = latest(machine).bisect.events
    assert [event.kind for event in events] == [EventKind.EXCLUDED, EventKind.BUILT, EventKind.BUILT]


# --- beside nights and comparisons


def test_its_sessions_are_no_nights_and_no_latest_session(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    log = machine.bisect(asked(line))
    with machine.store.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(nights)).scalar_one() == 0
        assert connection.execute(select(func.count()).select_from(sessions)).scalar_one() == 1
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() > 10
    # Where nothing else holds both versions, it serves.
    pair = [point.parsed for point in (log.span.points[0], log.span.points[-1])]
    found = machine.store.latest_session(pair)
    assert found is not None
    assert found.uid == log.bisect.sessions[0]


def test_the_reasoning_can_be_read_again(stand: Made, line: Line) -> None:
    broken = {line.version(place): "error: x" for place in range(6, 10)}
    log = stand((11, SLOWER), uncompilable=broken).bisect(asked(line))
    told = "\n".join(replay(log))
    assert "excluded: " in told
    assert "verdict: culprit, 10 to 11" in told
    assert told.count("round ") >= BisectState(log).rounds


def test_a_build_is_what_the_question_says(stand: Made, line: Line) -> None:
    """Builds come from the address as it was given, and the history has it without a password."""
    machine = stand((11, SLOWER))
    asked_for: list[str | None] = []
    provide = machine.provide

    def noted(version: Version, git: str | None) -> Build:
        asked_for.append(git)
        return provide(version, git)

    machine.provide = noted  # type: ignore[method-assign]
    machine.bisect(asked(line))
    assert set(asked_for) == {str(line.repository.path)}
