"""What the demo says at its end, with sessions that only pretend."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from history.store.records import SessionStatus
from history.store.writer import Store
from runners.commands import demo
from runners.measuring.request import Exact, Request
from runners.measuring.session import SessionOutcome
from suites.metrics import INSTRUCTIONS
from suites.processes import ProcessError
from tests.history.handmade import record_steps, run_record, session_start

COUNTS = {"postgres@17.11": 1000.0, "postgres@18.6": 1050.0, "postgres@18.6#planted": 1100.0}


def pretend(request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
    """Record three rounds of queries, or two passes of instructions."""
    del home, progress
    if request.exact is not Exact.ONLY:
        rounds = {str(version): [1000.0, 1001.0, 999.0] for version in request.versions}
        record_steps(store, session_start("f00d"), {"insert": rounds})
        return SessionOutcome(uid="f00d")
    options = {"exact": {"tool": "valgrind", "passes": 2, "when": "only"}}
    session = store.start_session(replace(session_start("c0de", 2), options=options))
    for version in map(str, request.versions):
        for number in range(1, 5):
            run = run_record(
                {INSTRUCTIONS: COUNTS[version] + number / 10},
                version=version,
                step="insert",
                repetition=number,
            )
            store.record_run(session, run)
    store.finish_session(session, SessionStatus.FINISHED)
    return SessionOutcome(uid="c0de")


@pytest.fixture(autouse=True)
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "run_session", pretend)
    monkeypatch.setattr(demo, "find_callgrind", lambda: None)


@pytest.mark.deep("a whole command in a process of its own")
def test_the_answer_and_the_page_that_has_it_stand_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the last lines of a terminal, and not far below the first one of a file."""
    assert demo.main(argparse.Namespace()) == 0
    lines = capsys.readouterr().out.splitlines()
    answer = lines.index("In short:")
    assert answer < 30
    assert len(lines) - answer < 14
    assert (
        "- Planted slow-down: postgres@18.6#planted executes more than postgres@18.6 in 1 of 1 steps: "
        "insert +4.8 %." in lines
    )
    named = Path(lines[-1].removeprefix("The session as pages with charts: "))
    assert named == tmp_path / "site/sessions/c0de.html", "not the one in which nothing is decided"
    assert "postgres@18.6#planted" in named.read_text(encoding="utf-8")


def test_without_counts_the_page_is_that_of_the_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> None:
        raise ProcessError("valgrind is not installed")

    monkeypatch.setattr(demo, "find_callgrind", absent)
    assert demo.main(argparse.Namespace()) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    named = Path(last.removeprefix("The session as pages with charts: "))
    assert named == tmp_path / "site/sessions/f00d.html"
    assert "postgres@18.6 against postgres@17.11" in named.read_text(encoding="utf-8")
