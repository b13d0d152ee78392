"""A night with sessions that only pretend: order, budget, what fails, and what the morning brings."""

import json
import platform
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from history.backups.backup import back_up
from history.changes.boxes.notes import NoiseChange
from history.open import open_store
from history.rendering.changes import box_note_lines
from history.series.series import Night
from history.store import alert_outbox
from history.store.records import Environment
from history.store.writer import Store
from runners.cli import main
from runners.commands import nightly as nightly_command
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.night import measure
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan
from runners.nightly.report import NightReport, report
from runners.nightly.summary import summary
from tests.history.handmade import record_steps, session_start
from tests.history.watched import LAST_NIGHT, night, record_regression
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running

BASE = "postgres@17.11"
PLAN: dict[str, Any] = {
    "boxes": {"db1": {"label": "tidemark-db1", "budget_minutes": 60.0}},
    "engines": {"postgres": {"base": BASE, "releases": ["18.6"]}},
    "tasks": [
        {"suite": "write-heavy", "profile": "short", "priority": 2},
        {"suite": "pgbench", "profile": "smoke", "priority": 1},
    ],
}


class Sessions:
    """Stands in for run_session: records what it is asked, takes its time, and may fail."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.minutes = 0.0
        self.now = 0.0
        self.fails: set[str] = set()

    def __call__(self, request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        self.asked.append(request)
        self.now += self.minutes * 60
        if request.suite.name in self.fails:
            raise TidemarkError("the disk is full")
        start = replace(
            session_start(f"s{len(self.asked)}"),
            suite=request.suite.name,
            profile=request.profile_name,
            options={
                "mode": "rounds",
                "seconds": request.profile.seconds,
                "settings": {},
                "versions": [str(version) for version in request.versions],
            },
        )
        record_steps(store, start, {"insert": {str(version): [1.0] for version in request.versions}})
        return SessionOutcome(uid=start.uid)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    sessions = Sessions()
    monkeypatch.setattr(night_module, "run_session", sessions)
    return sessions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "home/history.db") as store:
        yield store


def carry_out(store: Store, sessions: Sessions, tmp_path: Path, **changes: Any) -> NightResult:
    plan = Plan.model_validate(PLAN | changes)
    home = Home(tmp_path / "home")
    return measure(plan, "db1", "db1", home, store, Silent(), clock=lambda: sessions.now)


def test_by_priority_once(store: Store, sessions: Sessions, tmp_path: Path) -> None:
    night = carry_out(store, sessions, tmp_path)
    assert [request.suite.name for request in sessions.asked] == ["pgbench", "write-heavy"]
    assert [str(version) for version in sessions.asked[0].versions] == [BASE, "postgres@18.6"]
    assert night.outcome == "2 of 2 versions measured"
    assert carry_out(store, sessions, tmp_path).outcome == "nothing is new"
    assert len(sessions.asked) == 2


def test_what_does_not_fit_is_first_in_the_next_night(
    store: Store, sessions: Sessions, tmp_path: Path
) -> None:
    sessions.minutes = 61
    night = carry_out(store, sessions, tmp_path)
    assert night.outcome == (
        "1 of 2 versions measured;"
        " left for the next night: postgres@18.6, write-heavy short: time budget exhausted"
    )
    assert not night.has_failed
    carry_out(store, sessions, tmp_path)
    assert [request.suite.name for request in sessions.asked] == ["pgbench", "write-heavy"]


def test_rounds_until_decided_end_with_the_budget(store: Store, sessions: Sessions, tmp_path: Path) -> None:
    sessions.minutes = 45
    tasks = [task | {"until_decided": True} for task in PLAN["tasks"]]
    carry_out(store, sessions, tmp_path, tasks=tasks)
    assert [request.budget_seconds for request in sessions.asked] == [30 * 60, 15 * 60]


def test_a_session_that_fails_does_not_stop_the_others(
    store: Store, sessions: Sessions, tmp_path: Path
) -> None:
    sessions.fails = {"pgbench"}
    night = carry_out(store, sessions, tmp_path)
    assert night.outcome == (
        "1 of 2 versions measured; not measured: postgres@18.6, pgbench smoke: its measurement was cut short"
    )
    assert [target.reason for target in night.missing] == ["the disk is full"]
    assert night.has_failed


# --- the morning


@pytest.fixture
def regressed(tmp_path: Path) -> Iterator[Store]:
    path = tmp_path / "home/history.db"
    record_regression(path)
    with open_store(path, clock=lambda: LAST_NIGHT) as store:
        yield store


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github


@pytest.mark.deep("months of simulated nights")
def test_a_regression_is_an_issue_once(
    regressed: Store, github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = datetime.now(UTC)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    plan = Plan.model_validate(PLAN | {"alerts": {"repository": REPOSITORY}, "backups": 2})
    home = Home(tmp_path / "home")
    home.backups.mkdir()
    for day in range(3):
        back_up(home.history, home.backups / f"history-2020-01-0{day}.db")
    morning = report(plan, home, regressed)
    assert morning.problems == []
    assert morning.delivered is not None
    assert len(morning.delivered.created) == 1
    assert [issue["title"] for issue in github.issues.values()] == [
        "postgres REL_18_STABLE: insert 6.7 % slower (write-heavy)"
    ]
    again = report(plan, home, regressed)
    assert again.delivered is not None
    assert (again.delivered.created, again.delivered.updated, len(github.issues)) == ([], [], 1)
    old, new = sorted(path.name for path in home.backups.iterdir())
    assert old == "history-2020-01-02.db"
    assert new in {f"history-{when:%Y-%m-%d}.db" for when in (began, datetime.now(UTC))}
    with open_store(home.backups / new) as copy, copy.database.reading() as connection:
        assert len(alert_outbox.load(connection)) == 1
    told = summary(None, morning, [], night(0))
    assert "4 series: 1 new change, 0 back, 0 gone, 1 open." in told
    assert (
        "- new: change for the worse, postgres@REL_18_STABLE against postgres@17: insert 6.7 % slower" in told
    )


@pytest.mark.deep("months of simulated nights")
def test_the_site_is_renewed_and_the_issue_links_to_its_page(
    regressed: Store, github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    published = "https://perf.example.org/t"
    site = {"write": True, "folder": str(tmp_path / "pages"), "address": published}
    changes = {"alerts": {"repository": REPOSITORY}, "backups": 0, "site": site}
    plan, home = Plan.model_validate(PLAN | changes), Home(tmp_path / "home")
    assert report(plan, home, regressed).problems == []
    (issue,) = github.issues.values()
    (link,) = re.findall(rf"<{published}/(\S+)>", issue["body"])
    page = (tmp_path / "pages" / link).read_text(encoding="utf-8")
    assert "insert 6.7 % slower" in page
    assert f"{REPOSITORY}#{issue['number']}, open" in page


@pytest.mark.deep("months of simulated nights")
def test_without_a_site_in_the_plan_none_is_written(regressed: Store, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    report(Plan.model_validate(PLAN | {"backups": 0}), home, regressed)
    assert not home.site.exists()


def test_a_site_that_cannot_be_renewed_is_a_problem_of_the_night(regressed: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    site = {"write": True, "folder": str(tmp_path / "mine")}
    plan = Plan.model_validate(PLAN | {"backups": 0, "site": site})
    morning = report(plan, Home(tmp_path / "home"), regressed)
    assert len(morning.new) == 1, "what was detected is told all the same"
    (problem,) = morning.problems
    assert problem.startswith("the report site could not be renewed: the folder holds something else")


def test_without_a_token_alerts_wait(
    regressed: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    plan = Plan.model_validate(PLAN | {"alerts": {"repository": REPOSITORY}, "backups": 0})
    morning: NightReport = report(plan, Home(tmp_path / "home"), regressed)
    (problem,) = morning.problems
    assert problem.startswith(
        "alerts wait in the outbox (1): GITHUB_TOKEN is not set, and there is no credential"
    )
    with regressed.database.reading() as connection:
        assert [alert.is_due for alert in alert_outbox.load(connection)] == [True]
    assert not Home(tmp_path / "home").backups.exists()


# --- the command


@pytest.fixture
def plan_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    path = tmp_path / "plan.toml"
    path.write_text(
        '[boxes.db1]\nlabel = "x"\nhostname = "*"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        'releases = ["18.6"]\n[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n'
    )
    return path


def test_the_command_measures_reports_and_says_how_it_is(
    plan_file: Path,
    sessions: Sessions,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    assert main(["status"]) == 1
    assert "no night has started" in capsys.readouterr().out
    assert main(["nightly", "--plan", str(plan_file)]) == 0
    said = capsys.readouterr().out
    assert "Box db1: 1 of 1 version measured." in said
    assert (tmp_path / "step.md").read_text() in said
    assert len(list((tmp_path / "home/summaries").iterdir())) == 1
    assert main(["status", "--format", "json"]) == 0
    beat = json.loads(capsys.readouterr().out)
    assert (beat["state"], beat["outcome"]) == ("ended", "1 of 1 version measured")


def test_status_says_what_the_report_noted_of_this_box(
    plan_file: Path, sessions: Sessions, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    when = Night(7, datetime(2026, 10, 5, tzinfo=UTC), "postgres@18.6", 1)
    notes = tuple(
        NoiseChange(Environment(box, "write-heavy", "smoke"), "postgres@18", when, 1.84, 24)
        for box in (platform.node(), "another")
    )
    said = NightReport(24, (), (), (), 0, notes=notes)
    monkeypatch.setattr(nightly_command, "report", lambda *_: said)
    assert main(["nightly", "--plan", str(plan_file)]) == 0
    assert capsys.readouterr().out.count("- machine: ") == 2
    assert main(["status"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("machine: ")]
    assert line == f"machine: {next(box_note_lines(notes))}"


@pytest.mark.deep("months of simulated nights")
def test_measuring_and_reporting_apart(
    plan_file: Path, sessions: Sessions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nightly", "--plan", str(plan_file), "--measure"]) == 0
    assert not (tmp_path / "home/backups").exists()
    assert main(["nightly", "--plan", str(plan_file), "--report"]) == 0
    assert len(list((tmp_path / "home/backups").iterdir())) == 1
    assert len(sessions.asked) == 1


def test_trouble_is_an_exit_code(plan_file: Path, sessions: Sessions, tmp_path: Path) -> None:
    sessions.fails = {"write-heavy"}
    assert main(["nightly", "--plan", str(plan_file), "--measure"]) == 2
    assert main(["nightly", "--plan", str(plan_file), "--box", "$(touch x)"]) == 2
    assert len(sessions.asked) == 1


@pytest.mark.deep("months of simulated nights")
@pytest.mark.parametrize("fails", ["measuring", "reporting", "opening"])
def test_a_night_that_an_error_ends_is_not_well(
    plan_file: Path,
    sessions: Sessions,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("nobody expected this")

    assert main(["nightly", "--plan", str(plan_file)]) == 0
    with monkeypatch.context() as patched:
        name = {"measuring": "measure", "reporting": "report", "opening": "open_recorded"}[fails]
        patched.setattr(nightly_command, name, fail)
        with pytest.raises(RuntimeError, match="nobody expected this"):
            main(["nightly", "--plan", str(plan_file)])
    capsys.readouterr()
    assert main(["status"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("failed: box db1")
    assert "nobody expected this" in said
    assert main(["nightly", "--plan", str(plan_file)]) == 0
    assert main(["status"]) == 0


@pytest.mark.deep("months of simulated nights")
def test_a_history_that_was_lost_pushes_out_no_copy(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new history where the old one was: its copies are whole, and would replace those of the old one."""
    history, backups = tmp_path / "home/history.db", tmp_path / "home/backups"
    record_regression(history)
    backups.mkdir()
    for day in range(1, 10):
        back_up(history, backups / f"history-2020-01-0{day}.db")
    for path in history.parent.glob("history.db*"):
        path.unlink()
    assert main(["nightly", "--plan", str(plan_file), "--report"]) == 2
    assert "sessions of its copy history-2020-01-09.db" in capsys.readouterr().out
    assert len(list(backups.glob("history-2020-*"))) == 9
    for path in backups.glob("history-2020-*"):
        path.unlink()
    assert main(["nightly", "--plan", str(plan_file), "--report"]) == 0


def test_a_night_asks_for_the_lock_for_all_its_sessions(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session(request: Request, home: Home, history: Store, progress: object) -> SessionOutcome:
        with measuring_alone(home):
            return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    assert carry_out(store, Sessions(), tmp_path).outcome == "2 of 2 versions measured"


def test_the_boxes_of_a_plan_as_a_matrix(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--box", ""], ["--box", "db1"]):
        assert main(["nightly", "--boxes", "--plan", str(plan_file), *words]) == 0
        assert json.loads(capsys.readouterr().out) == [{"name": "db1", "label": "x"}]
    assert main(["nightly", "--boxes", "--plan", str(plan_file), "--box", '"], "x": ["']) == 2
    assert capsys.readouterr().out == ""
