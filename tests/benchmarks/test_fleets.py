"""The stand of `bench fleet`: a few random faults, after which a round that is missing would be seen."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.fleets import stand
from benchmarks.fleets.faults import fault_figures
from benchmarks.fleets.sessions import STEPS, RecordedRound, differences, round_of, session_start
from build.build import Build
from build.home import Home
from history.open import open_store
from history.store.records import SessionStatus


@pytest.mark.server
def test_a_few_faults(home: Home, postgres_18: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    monkeypatch.setattr(stand, "provide", lambda *_: postgres_18)
    figures = list(fault_figures(4, seed=3))
    assert all(figure.met for figure in figures), figures


def test_what_is_missing_or_there_twice_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start("box", "a", 3))
        for number in (1, 2):
            store.record_runs(session, round_of(0, number, 1000.0 + number, 2 * number))
        store.finish_session(session, SessionStatus.FINISHED)
    first, second, third = (RecordedRound("a", STEPS[0], number, 1000.0 + number) for number in (1, 2, 3))
    assert differences(str(path), Counter([first, second])) == []
    assert differences(str(path), Counter([first, second, third])) == [f"lost: {third}"]
    assert differences(str(path), Counter([first])) == [f"too often: {second}"]
    assert differences(str(path), Counter([first]), Counter([first, second, third])) == []
