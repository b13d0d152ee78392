"""What a box notices of GitHub: schedules that are or will be switched off, a runner without jobs."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pytest

from history.store.process import this_process
from runners.cli import main
from runners.fitness import agent_release
from runners.installing import record
from runners.installing.record import Record
from runners.monitoring import facts
from runners.nightly.heartbeat import Beat
from runners.watching import watch_box
from runners.watching.watch_github import QUIET_DAYS, UPDATED_DAYS, WARNED_DAYS
from tests.runners.alerting.github import REPOSITORY, TOKEN, running
from tests.runners.fitness.fake_kernel import FakeKernel
from tests.runners.watching.scheduled import REFUSED, Scheduled

Capture: TypeAlias = pytest.CaptureFixture[str]
Watch: TypeAlias = Callable[[], tuple[int, str]]

ON = {"nightly.yml": "active", "watch.yml": "active"}
OFF = {"nightly.yml": "disabled_inactivity", "watch.yml": "disabled_inactivity"}
FOLDER = "/srv/actions-runner"


@pytest.fixture
def github() -> Iterator[Scheduled]:
    with running(Scheduled) as github:
        github.workflow_states = dict(ON)
        yield github
        assert github.violations == []


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """The files of a machine on which one runner is installed, 2.331.0 of 40 days ago."""
    kernel = FakeKernel(tmp_path / "root")
    unit = "/etc/systemd/system/actions.runner.example-alerts.db1.service"
    kernel.put(unit, f"[Service]\nWorkingDirectory={FOLDER}\n")
    kernel.put(f"{FOLDER}/{agent_release.LISTENER}", "")
    kernel.put(f"{FOLDER}/_diag/Runner_20261001-000000-utc.log", "[x INFO] Version: 2.331.0\n")
    built = time.time() - 40.5 * 86_400
    os.utime(kernel.path(f"{FOLDER}/{agent_release.LISTENER}"), (built, built))
    for module in (watch_box, facts):
        monkeypatch.setattr(module, "Kernel", lambda: kernel)
    return kernel


@pytest.fixture
def watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: Scheduled, kernel: FakeKernel, capsys: Capture
) -> Watch:
    """The watch of a box that is measuring."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setattr(record, "load", lambda machine: Record())
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[boxes.db1]\nlabel = "x"\nhostname = "*"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        f'[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n[alerts]\nrepository = "{REPOSITORY}"\n'
    )
    now = datetime.now(UTC).isoformat()
    beat = Beat("db1", "insert", now, now, now, 1.0, 2.0, **asdict(this_process()))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/heartbeat.json").write_text(json.dumps(asdict(beat)))

    def watch() -> tuple[int, str]:
        code = main(["runner", "watch", "--plan", str(plan)])
        return code, capsys.readouterr().out

    return watch


def titles(github: Scheduled) -> list[tuple[str, str]]:
    return [(issue["title"], issue["state"]) for issue in github.issues.values()]


def test_schedules_that_github_switched_off_are_told_until_they_run(watch: Watch, github: Scheduled) -> None:
    assert watch()[0] == 0
    github.workflow_states, github.quiet_days = dict(OFF), QUIET_DAYS + 1
    code, said = watch()
    title = "GitHub has switched off the schedule of nightly.yml and watch.yml"
    assert (code, title in said, titles(github)) == (1, True, [(title, "open")])
    assert f"/{REPOSITORY}/actions" in github.issues[1]["body"]
    writes = [request for request in github.requests if not request.startswith("GET")]
    assert watch()[0] == 1
    assert [request for request in github.requests if not request.startswith("GET")] == writes
    github.workflow_states, github.quiet_days = dict(ON), 0
    assert watch()[0] == 0
    assert titles(github) == [(title, "closed")]
    github.requests.clear()
    assert watch()[0] == 0
    assert not [request for request in github.requests if "/issues" in request], "nothing is left to close"


@pytest.mark.parametrize("private", [False, True])
def test_a_quiet_public_repository_is_told_before(private: bool, watch: Watch, github: Scheduled) -> None:
    github.quiet_days, github.is_private = WARNED_DAYS + 0.5, private
    code, said = watch()
    assert code == (0 if private else 1)
    assert ("GitHub will switch off schedules 60 days after the last push" in said) is not private


def test_a_repository_of_issues_alone_has_no_schedules(watch: Watch, github: Scheduled) -> None:
    github.workflow_states, github.quiet_days = {}, 400
    assert watch()[0] == 0


def test_a_token_for_issues_alone_is_enough(watch: Watch, github: Scheduled) -> None:
    """GitHub refuses it the workflows: that is said, and is no trouble."""
    github.workflow_states = {"nightly.yml": REFUSED}
    code, said = watch()
    assert code == 0
    assert "whether GitHub runs the schedules is not known: the tracker answered 403" in said


def test_a_runner_that_missed_a_release_is_told_until_it_is_updated(
    watch: Watch, github: Scheduled, kernel: FakeKernel
) -> None:
    github.releases = {"v2.333.0": 3, "v2.332.0": UPDATED_DAYS - 1, "v2.331.0": 39, "v2.330.0": 80}
    assert watch()[0] == 0, "it has some days left to update itself"
    github.releases = {"v2.333.0": 3, "v2.332.0": UPDATED_DAYS + 1, "v2.331.0": 39}
    code, said = watch()
    assert code == 1
    assert f"GitHub's runner 2.331.0 in {FOLDER} gets no more jobs from 2" in said
    assert said.rstrip().splitlines()[-2].endswith(": it lacks v2.332.0")
    ((title, state),) = titles(github)
    assert (title.startswith("box db1: GitHub's runner gets no more jobs from 2"), state) == (True, "open")
    github.releases = {"v2.333.0": 3, "v2.332.0": 31}
    assert "gets no jobs since" in watch()[1]
    kernel.put(f"{FOLDER}/_diag/Runner_20261120-000000-utc.log", "[x INFO] Version: 2.333.0\n")
    assert watch()[0] == 0
    assert [state for _, state in titles(github)] == ["closed"]


def test_a_runner_without_a_log_is_judged_by_its_age(
    watch: Watch, github: Scheduled, kernel: FakeKernel
) -> None:
    (log,) = kernel.names(f"{FOLDER}/_diag/*.log")
    kernel.path(log).unlink()
    github.releases = {"v2.331.0": 39}
    assert watch()[0] == 0
    github.releases = {"v2.332.0": 20, "v2.331.0": 39}
    code, said = watch()
    assert (code, f"GitHub's runner in {FOLDER} gets no more jobs from" in said) == (1, True)


def test_status_says_that_a_runner_is_old(watch: Watch, capsys: Capture) -> None:
    watch()
    assert main(["status"]) == 0
    (line,) = [text for text in capsys.readouterr().out.splitlines() if "GitHub's runner" in text]
    assert line.startswith(
        f"GitHub's runner 2.331.0 in {FOLDER} was built 40 days ago: GitHub sends it no jobs"
    )
    assert main(["status", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runners"] == [line]
