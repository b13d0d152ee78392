"""Boxes that watch each other through a history they share, and a watch whose history is away."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from build.home import Home
from build.progress import Silent
from history.open import open_store
from history.series.task_states import TaskCheck, TaskOutcome, TrackedTask, record_checks
from history.store import alert_outbox
from history.store.alert_outbox import IssueState
from runners.cli import main
from runners.commands import runner
from runners.nightly.heartbeat import MISSED_HOURS, Heart, State, Status, record_failure
from runners.watching import watch_box as watch_module
from runners.watching.box_issues import update_outbox
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.alerting.notices.receivers import webhook

Capture: TypeAlias = pytest.CaptureFixture[str]
Watch: TypeAlias = Callable[[], tuple[int, str]]

NOW = datetime.now(UTC)
LATE = timedelta(hours=MISSED_HOURS + 1)
AWAY = "postgresql://127.0.0.1:1/nowhere"


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub) -> Home:
    """The home of db1, whose last night has just ended."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    home = Home(tmp_path / "home")
    Heart(home.heartbeat, "db1", Silent()).end("1 session")
    return home


def plan(home: Home, history: str = "history.db", routes: str = "") -> Path:
    path = home.path / "plan.toml"
    boxes = "".join(f'[boxes.{name}]\nlabel = "{name}"\n' for name in ("db1", "db2", "db3"))
    path.write_text(
        f'history = "{history}"\n{boxes}[engines.postgres]\nbase = "postgres@17.11"\nreleases = ["18.6"]\n'
        f'[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n[alerts]\nrepository = "{REPOSITORY}"\n'
        f"{routes}"
    )
    return path


@pytest.fixture
def watch(home: Home, capsys: Capture) -> Callable[..., tuple[int, str]]:
    def watch(history: str = "history.db", routes: str = "") -> tuple[int, str]:
        code = main(["runner", "watch", "--box", "db1", "--plan", str(plan(home, history, routes))])
        said = capsys.readouterr()
        return code, said.out + said.err

    return watch


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history is taken for one on a server."""
    monkeypatch.setattr(watch_module, "is_server", lambda history: True)


def days() -> list[str]:
    """Today, and the day on which the tests began: they may go on past midnight."""
    return [f"{moment:%Y-%m-%d}" for moment in (NOW, datetime.now(UTC))]


def night(home: Home, box: str, ago: timedelta) -> None:
    """A night of a box, as the history has it."""
    with open_store(home.history) as store, store.database.writing() as connection:
        task = TrackedTask(box, "write-heavy", "smoke relaxed", "postgres@18.6")
        record_checks(connection, [TaskCheck(task, box, TaskOutcome.CURRENT)], NOW - ago)


@pytest.mark.usefixtures("shared")
def test_a_silent_box_has_an_issue_until_it_has_nights_again(
    home: Home, watch: Watch, github: GitHub
) -> None:
    night(home, "db1", timedelta(0))
    night(home, "db2", LATE)
    code, said = watch()
    assert (code, "box db2: no sign of a night in the history since" in said) == (1, True)
    assert "db3" not in said, "it may not be set up yet"
    since = NOW - LATE
    assert [issue["title"] for issue in github.issues.values()] == [f"box db2: silent since {since:%Y-%m-%d}"]
    writes = [request for request in github.requests if not request.startswith("GET")]
    assert watch()[0] == 1
    assert [request for request in github.requests if not request.startswith("GET")] == writes
    night(home, "db2", timedelta(0))
    assert watch()[0] == 0
    assert [issue["state"] for issue in github.issues.values()] == ["closed"]


def test_in_a_history_of_its_own_a_box_sees_no_others(home: Home, watch: Watch, github: GitHub) -> None:
    """Old sessions of others may be there, from a merge."""
    night(home, "db1", timedelta(0))
    night(home, "db2", LATE)
    assert watch()[0] == 0
    assert github.issues == {}


@pytest.mark.usefixtures("shared")
def test_the_issue_of_a_box_that_the_plan_has_no_more_is_closed(
    home: Home, watch: Watch, github: GitHub
) -> None:
    night(home, "db1", timedelta(0))
    with open_store(home.history) as store:
        for box in ("db3", "db4"):
            update_outbox(store, box, Status(State.MISSED, None), State.MISSED, NOW)
    watch()
    assert [issue["title"] for issue in github.issues.values()] == ["box db3: its night is missing"]


@pytest.mark.usefixtures("shared")
def test_one_cause_has_one_issue_whoever_tells_of_it(home: Home, watch: Watch, github: GitHub) -> None:
    night(home, "db1", timedelta(0))
    night(home, "db2", LATE)
    watch()
    assert [issue["title"][:18] for issue in github.issues.values()] == ["box db2: silent si"]
    with open_store(home.history) as store:
        update_outbox(store, "db2", Status(State.MISSED, None), State.MISSED, NOW)
        with store.database.reading() as connection:
            (alert,) = alert_outbox.load(connection)
    assert alert.desired.title == "box db2: its night is missing"
    watch()
    (issue,) = github.issues.values()
    assert issue["title"] == "box db2: its night is missing"
    with open_store(home.history) as store:
        update_outbox(store, "db2", Status(State.ENDED, None), State.ENDED, NOW)
        with store.database.reading() as connection:
            (alert,) = alert_outbox.load(connection)
    assert alert.desired.state is IssueState.CLOSED


# --- without the history


def test_a_history_that_is_away_for_an_hour_is_said_and_for_a_day_is_told(
    home: Home, watch: Callable[..., tuple[int, str]], github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    night(home, "db1", timedelta(0))
    code, said = watch(AWAY)
    assert (code, "the history is not reached since" in said, github.issues) == (2, True, {})

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> Any:
            return datetime.now(UTC) + LATE

    monkeypatch.setattr(runner, "datetime", Later)
    assert [watch(AWAY)[0], watch(AWAY)[0]] == [1, 1]
    (issue,) = github.issues.values()
    assert issue["title"] in [f"box db1: its history is not reached since {day}" for day in days()]
    monkeypatch.undo()
    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    assert watch()[0] == 0
    assert issue["state"] == "closed"
    assert not (home.path / watch_module.HISTORY_AWAY).exists()


def test_a_history_of_a_newer_tidemark_is_told_at_once(
    home: Home, watch: Callable[..., tuple[int, str]], github: GitHub
) -> None:
    """The night went well, but nobody but a person updates the box."""
    night(home, "db1", timedelta(0))
    with open_store(home.history) as store, store.database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO schema_migrations VALUES (999, 'future', 'now')")
    code, said = watch()
    assert (code, "schema 999 of a newer Tidemark" in said) == (1, True), said
    (issue,) = github.issues.values()
    assert issue["title"].startswith("box db1: its history cannot be read by this version since ")
    assert "Update Tidemark on this box." in issue["body"]
    with open_store(home.path / "older.db"):
        pass
    assert watch("older.db")[0] == 0
    assert issue["state"] == "closed"


def test_routes_are_told_once_of_a_history_that_is_away_and_once_that_it_is_back(
    home: Home, watch: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    record_failure(home.heartbeat, "db1", RuntimeError("out of memory"), NOW)
    with webhook() as hook:
        monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
        team = '[[notify]]\nname = "team"\nkinds = ["trouble"]\n'
        hook.status = 500
        _, said = watch(AWAY, team)
        assert "the message did not arrive" in said
        hook.status = 200
        watch(AWAY, team)
        watch(AWAY, team)
        (line,) = hook.lines
        trouble = tuple(f"Trouble: box db1: its history is not reached since {day}; " for day in days())
        assert line.startswith(trouble)
        with open_store(home.path / "history.db"):
            Heart(home.heartbeat, "db1", Silent()).end("1 session")
        watch(routes=team)
        watch(routes=team)
        assert hook.lines[1:] == ["Over: box db1: its history is reached again"]


def test_a_box_that_needs_somebody_says_so_without_its_history(
    home: Home, watch: Callable[..., tuple[int, str]], github: GitHub
) -> None:
    record_failure(home.heartbeat, "db1", RuntimeError("out of memory"), NOW)
    code, said = watch(AWAY)
    assert (code, "failed: box db1" in said) == (1, True)
    (issue,) = github.issues.values()
    assert "Box **db1**: failed." in issue["body"]
