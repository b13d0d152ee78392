"""What the demo says at its end, with sessions that only pretend."""

import argparse
from pathlib import Path

import pytest

from build.home import Home
from history.store.writer import Store
from runners.commands import demo
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from suites.processes import ProcessError
from tests.history.handmade import record_steps, session_start


def test_the_last_line_names_the_page_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def session(request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        rounds = {str(version): [1000.0, 1001.0, 999.0] for version in request.versions}
        record_steps(store, session_start("f00d"), {"insert": rounds})
        return SessionOutcome(uid="f00d")

    def absent() -> None:
        raise ProcessError("valgrind is not installed")

    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "run_session", session)
    monkeypatch.setattr(demo, "find_callgrind", absent)
    assert demo.main(argparse.Namespace()) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    named = Path(last.removeprefix("The session as pages with charts: "))
    assert named == tmp_path / "site/sessions/f00d.html"
    assert "postgres@18.6 against postgres@17.11" in named.read_text(encoding="utf-8")
