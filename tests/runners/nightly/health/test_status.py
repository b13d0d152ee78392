"""`status` of a box whose nights end and bring nothing: it does not call that healthy."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from history.open import open_store
from history.series.task_states import TrackedTask
from runners.cli import main
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.heartbeat import read
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.fitness.fake_kernel import Usage

PLACE = TrackedTask("db1", "write-heavy", "smoke relaxed 3s", "postgres@18.6")


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    path = tmp_path / "plan.toml"
    path.write_text(
        '[boxes.db1]\nlabel = "x"\nhostname = "*"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        'releases = ["18.6"]\n[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n'
        f'[alerts]\nrepository = "{REPOSITORY}"\n'
    )
    return path


def a_night(monkeypatch: pytest.MonkeyPatch, plan: Path, why: OSError | None) -> int:
    """Carry out a night in which a session ends with an error, or brings a result."""

    def session(*_: object) -> SessionOutcome:
        if why is not None:
            raise why
        return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    return main(["nightly", "--plan", str(plan), "--measure"])


FULL = OSError(28, "No space left on device")


@pytest.mark.deep("months of simulated nights")
def test_a_night_that_measured_nothing_is_not_healthy(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert a_night(monkeypatch, plan, FULL) == 2
    capsys.readouterr()
    assert main(["status"]) == 1
    state, ended, task, *_ = capsys.readouterr().out.splitlines()
    assert state.startswith("ended: box db1, night of ")
    cut_short = "its measurement was cut short"
    assert ended.endswith(
        f": 0 of 1 version measured; not measured: postgres@18.6, write-heavy smoke: {cut_short}"
    )
    assert task.startswith(f"overdue  postgres@18.6, write-heavy smoke: no result; {cut_short}:")
    assert main(["status", "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["state"], said["healthy"]) == ("ended", False)
    assert [(task["tracked"], task["outcome"], task["overdue"]) for task in said["tasks"]] == [
        ("postgres@18.6", "stopped", True)
    ]
    assert a_night(monkeypatch, plan, None) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "ok       postgres@18.6, write-heavy smoke: " in capsys.readouterr().out


def test_status_knows_the_plan_of_the_last_night_and_takes_another(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_night(monkeypatch, plan, None)
    beat = read(tmp_path / "home/heartbeat.json")
    assert beat is not None
    assert beat.plan == str(plan)
    other = tmp_path / "other.toml"
    other.write_text(plan.read_text().replace("smoke", "short"))
    capsys.readouterr()
    assert main(["status", "--plan", str(other)]) == 0
    assert "write-heavy short: no result; the next night is its first" in capsys.readouterr().out
    assert main(["status", "--plan", str(other), "--box", "db9"]) == 2


def test_where_nothing_ever_ran_status_is_not_healthy(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--plan", str(plan)]):
        assert main(["status", *words]) == 1
        assert "never ran: no night has started" in capsys.readouterr().out


def test_a_history_that_cannot_be_read_is_not_healthy(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_night(monkeypatch, plan, None)
    for path in (tmp_path / "home").glob("history.db*"):
        path.unlink()
    assert main(["status"]) == 1
    assert "whether results arrive is unknown: there is no history yet" in capsys.readouterr().out


def test_a_history_that_was_lost_is_not_healthy(
    plan: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither is an empty one in its place, as whatever records next makes it."""
    history = tmp_path / "home/history.db"
    a_night(monkeypatch, plan, None)
    for path in history.parent.glob("history.db*"):
        path.unlink()
    open_store(history).close()
    capsys.readouterr()
    assert main(["status"]) == 1
    said = capsys.readouterr().out
    assert f"a night of db1 has ended, and the history has nothing of it: {history}" in said
    assert "./tidemark history restore FILE" in said


def test_a_disk_on_which_nothing_can_be_measured_is_not_healthy(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_night(monkeypatch, plan, None)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**7))
    assert main(["status"]) == 1
    assert "the disk is full: less than 500 MB are free in " in capsys.readouterr().out
