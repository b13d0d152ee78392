"""A home whose nights end in a stand-in tracker, for tests of what reaches it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert
from history.store.writer import Store
from runners.alerting.tracker import Tracker
from runners.alerting.tracker_registry import TRACKERS
from runners.cli import main
from tests.history.handmade import record_steps, session_start
from tests.history.watched import BASE, NEW
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.alerting.others.gitea import Gitea
from tests.runners.alerting.others.gitlab import GitLab
from tests.runners.small_plan import small_plan

STAND_INS: dict[str, type[GitHub]] = {kind.kind: kind for kind in (GitHub, GitLab, Gitea)}

OTHERS = tuple(kind for kind in STAND_INS if kind != "github")

every_tracker = pytest.mark.parametrize("github", STAND_INS, indirect=True)
"""Lets a test meet the stand-in of each tracker."""

other_trackers = pytest.mark.parametrize("github", OTHERS, indirect=True)

TIMEOUT = 1.5
"""Seconds without an answer."""


@dataclass
class Stand:
    """A home with a plan, its history and the tracker it talks to, which may be another than GitHub."""

    folder: Path
    github: GitHub
    plan: Path
    capsys: pytest.CaptureFixture[str]
    nights: int = 0

    def report(self) -> tuple[int, str]:
        """The exit code and the summary of a night's end."""
        code = main(["nightly", "--report", "--plan", str(self.plan)])
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        assert TOKEN not in said.out + said.err
        return code, said.out

    def failures(self) -> dict[str, str]:
        """What a delivery could not send, with the errors as they are stored."""
        self.report()
        with self.store() as store, store.database.reading() as connection:
            alerts = alert_outbox.load(connection)
        return {alert.desired.fingerprint: alert.last_error for alert in alerts if alert.last_error}

    def store(self) -> Store:
        return open_store(self.folder / "home/history.db")

    def alert(self) -> Alert:
        with self.store() as store, store.database.reading() as connection:
            (alert,) = alert_outbox.load(connection)
        return alert

    def execute(self, statement: str) -> None:
        with self.store() as store, store.database.writing() as connection:
            connection.exec_driver_sql(statement)

    def pause_is_over(self) -> None:
        self.execute("UPDATE alerts SET not_before = NULL")

    def change(self, text: str) -> None:
        """Let there be something to send: what was sent last differs."""
        self.execute(f"UPDATE alerts SET sent_digest = '{text}'")
        for issue in (*self.github.issues.values(), *self.github.elsewhere.values()):
            issue["title"] = text

    def fail(self) -> None:
        """Record a night in which a version could not be built."""
        self._night({"versions": [BASE, NEW], "not_built": {NEW: "make failed"}}, [BASE])

    def end(self) -> None:
        """Record a night in which it could be."""
        self._night({"versions": [BASE, NEW]}, [BASE, NEW])

    def _night(self, options: dict[str, Any], measured: list[str]) -> None:
        self.nights += 1
        start = replace(session_start(f"night-{self.nights}"), options=options)
        with self.store() as store:
            record_steps(store, start, {"insert": {version: [1.0] for version in measured}})

    def open_issues(self) -> list[int]:
        return [number for number, issue in self.github.issues.items() if issue["state"] == "open"]


def plan_text(github: GitHub) -> str:
    """The text of a plan whose alerts go to a stand-in."""
    alerts = f'tracker = "{github.kind}"\nrepository = "{REPOSITORY}"'
    return small_plan(["insert"], alerts + ("" if github.kind == "github" else f'\nurl = "{github.url}"'))


@pytest.fixture
def github(request: pytest.FixtureRequest) -> Iterator[GitHub]:
    """The stand-in of GitHub, or of the tracker that is the parameter."""
    with running(STAND_INS[getattr(request, "param", "github")]) as github:
        yield github
        assert github.violations == []
        assert github.edited_elsewhere == []


@pytest.fixture
def stand(
    tmp_path: Path,
    github: GitHub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Stand:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv(f"{github.kind.upper()}_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def connect(name: str, url: str | None = None) -> Tracker:
        return github.tracker(TIMEOUT, name=name)

    monkeypatch.setattr(import_module(TRACKERS[github.kind]), "connect", connect)
    plan = tmp_path / "plan.toml"
    plan.write_text(f"backups = 0\n{plan_text(github)}")
    stand = Stand(tmp_path, github, plan, capsys)
    stand.fail()
    return stand
