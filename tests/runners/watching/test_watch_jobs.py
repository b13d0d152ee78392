"""Boxes as GitHub's jobs know them: who is silent, whose jobs fail, and that each has one issue."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from runners.cli import main
from runners.nightly.heartbeat import MISSED_HOURS
from runners.watching import jobs as jobs_module
from runners.watching.silence import NO_RUN_HOURS
from tests.runners.alerting.github import BOT, PERSON, REPOSITORY, TOKEN, Fault, GitHub, running
from tests.runners.alerting.notices.receivers import webhook

Capture: TypeAlias = pytest.CaptureFixture[str]

WELL = ("success", "success")
QUEUED = (None, None)
CANCELLED = ("cancelled", "cancelled")
FAILED = ("failure", "failure")


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "there/is/none"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    path = tmp_path / "plan.toml"
    path.write_text(
        '[boxes.db1]\nlabel = "x"\n[boxes.db2]\nlabel = "y"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        f'[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n[alerts]\nrepository = "{REPOSITORY}"\n'
    )
    return path


@pytest.fixture
def watch(plan: Path, capsys: Capture) -> Callable[[], tuple[int, str]]:
    def watch() -> tuple[int, str]:
        code = main(["runner", "watch", "--jobs", "--plan", str(plan)])
        return code, capsys.readouterr().out

    return watch


def run(github: GitHub, hours_ago: float, **boxes: tuple[str | None, str | None]) -> None:
    """A run so many hours ago, with how the two jobs of each box ended, half an hour later."""
    began, number = datetime.now(UTC) - timedelta(hours=hours_ago), len(github.workflow_runs) + 1
    ended = (began + timedelta(minutes=30)).isoformat()
    jobs: list[dict[str, Any]] = [{"name": "select boxes", "conclusion": "success", "completed_at": ended}]
    for box, conclusions in boxes.items():
        for part, conclusion in zip(jobs_module.PARTS, conclusions, strict=True):
            job = {"name": f"{box} / {part}", "conclusion": conclusion}
            jobs.append(job | {"completed_at": ended if conclusion else None})
    address = f"https://github.example/{REPOSITORY}/actions/runs/{number}"
    new = {"id": number, "created_at": began.isoformat(), "html_url": address, "jobs": jobs}
    github.workflow_runs.append(new)
    github.workflow_runs.sort(key=lambda listed: str(listed["created_at"]), reverse=True)


Watch: TypeAlias = Callable[[], tuple[int, str]]


def db2_falls_silent(github: GitHub, hours_ago: float = 60) -> None:
    run(github, hours_ago + 24, db1=WELL, db2=WELL)
    run(github, hours_ago, db1=WELL, db2=QUEUED)
    run(github, 1, db1=WELL, db2=QUEUED)


def titles(github: GitHub, state: str = "open") -> list[str]:
    return [issue["title"] for issue in github.issues.values() if issue["state"] == state]


def test_boxes_that_are_heard_of_need_nobody(github: GitHub, watch: Watch) -> None:
    assert watch() == (
        0,
        "nightly.yml: it never ran\nbox db1: no success yet, nothing was asked of it\n"
        "box db2: no success yet, nothing was asked of it\n",
    )
    run(github, 30, db1=WELL, db2=WELL)
    run(github, 5, db1=WELL, db2=(None, None))
    code, said = watch()
    assert (code, said.count("last success"), github.issues) == (0, 2, {})


def test_a_silent_box_has_one_issue_until_a_job_of_it_succeeds(github: GitHub, watch: Watch) -> None:
    run(github, 75, db1=WELL, db2=WELL)
    run(github, MISSED_HOURS - 1, db1=WELL, db2=QUEUED)
    assert watch()[0] == 0, "a night may take its time"
    run(github, 2 * MISSED_HOURS, db1=WELL, db2=CANCELLED)
    run(github, 1, db1=WELL, db2=QUEUED)
    code, said = watch()
    assert (code, "#1 was opened" in said) == (1, True)
    (issue,) = github.issues.values()
    since = datetime.now(UTC) - timedelta(hours=74.5)
    assert issue["title"] == f"box db2: it is silent since {since:%Y-%m-%d}"
    assert "Jobs of nightly.yml for box **db2** do not run on it" in issue["body"]
    assert "measure cancelled, report cancelled" in issue["body"]
    assert "measure not ended" in issue["body"]
    writes = [request for request in github.requests if not request.startswith("GET")]
    assert (watch()[0], len(github.issues)) == (1, 1)
    assert [request for request in github.requests if not request.startswith("GET")] == writes
    run(github, 0.5, db1=WELL, db2=("failure", "success"))
    assert watch()[0] == 0
    assert titles(github, "closed") == [issue["title"]]
    assert [text for _, text in github.comments] == ["Closed: a job succeeded"]


def test_a_box_whose_jobs_all_fail_is_told_as_that(github: GitHub, watch: Watch) -> None:
    for night in range(3):
        run(github, 24 * night + 4, db1=("failure", "success"), db2=FAILED)
    code, said = watch()
    assert (code, "box db2: its jobs fail, no success yet" in said) == (1, True)
    assert [title[:23] for title in titles(github)] == ["box db2: its jobs fail "]


def test_a_dropped_schedule_says_nothing_of_a_box_but_one_that_stays_away_does(
    github: GitHub, watch: Watch
) -> None:
    run(github, NO_RUN_HOURS - 1, db1=WELL, db2=WELL)
    assert watch()[0] == 0
    github.workflow_runs.clear()
    run(github, NO_RUN_HOURS + 1, db1=WELL, db2=WELL)
    assert watch()[0] == 1
    assert [title[:30] for title in titles(github)] == ["nightly.yml has not run since "]
    run(github, 0.1, db1=QUEUED, db2=QUEUED)
    assert watch()[0] == 0
    assert titles(github) == []


def test_who_asked_one_box_alone_asked_nothing_of_another(github: GitHub, watch: Watch) -> None:
    run(github, 40, db1=WELL, db2=WELL)
    run(github, 30, db1=WELL)
    assert watch()[0] == 0


def test_a_person_who_says_that_it_is_done_is_believed_for_a_day(github: GitHub, watch: Watch) -> None:
    db2_falls_silent(github)
    watch()
    github.close(1, days=-0.9)
    assert "a person closed #1" in watch()[1]
    github.close(1, days=-1.1)
    code, said = watch()
    assert (code, "#1 was opened again" in said, len(titles(github))) == (1, True, 1)
    assert github.comments == [(1, "It lasts.")]


def test_a_person_who_closes_an_issue_for_good_settles_this_time_but_not_the_next(
    github: GitHub, watch: Watch
) -> None:
    db2_falls_silent(github)
    assert watch()[0] == 1
    github.close(1, "not_planned", days=-9)
    code, said = watch()
    assert (code, "a person closed #1" in said, len(github.issues)) == (1, True, 1)
    db2_falls_silent(github, 30)
    assert watch()[0] == 1
    assert len(github.issues) == 2


def test_what_people_wrote_around_our_block_stays(github: GitHub, watch: Watch) -> None:
    db2_falls_silent(github)
    watch()
    body = github.issues[1]["body"]
    github.issues[1] |= {"title": "The fan is broken", "body": f"Ann looks at it.\n\n{body}"}
    run(github, 30, db1=WELL, db2=QUEUED)
    assert watch()[0] == 1
    (issue,) = github.issues.values()
    assert issue["title"] == "The fan is broken"
    assert issue["body"].startswith("Ann looks at it.\n\n<!-- tidemark ")
    assert issue["body"].count("measure not ended") == 3


@pytest.mark.parametrize("closes", [True, False])
def test_an_issue_that_somebody_forged_changes_nothing(github: GitHub, watch: Watch, closes: bool) -> None:
    """Whoever may open issues in a public repository could compute the marker."""
    db2_falls_silent(github)
    watch()
    forged = github.issues.pop(1)
    github.create({"title": "x", "body": forged["body"]}, PERSON)
    if closes:
        github.close(1)
    assert watch()[0] == 1
    assert [issue["user"]["login"] for issue in github.issues.values()] == [PERSON, BOT]
    assert github.edits == []


def test_what_another_box_tells_of_it_is_not_told_twice(github: GitHub, watch: Watch) -> None:
    db2_falls_silent(github)
    watch()
    told = github.issues.pop(1)["body"].replace("-jobs ", "-silent-0a1b2c3d ")
    github.create({"title": "box db2: silent", "body": told}, BOT)
    code, said = watch()
    assert (code, "#1 tells of it" in said, len(github.issues)) == (1, True, 1)


def test_without_issues_in_the_plan_the_job_fails_all_the_same(
    github: GitHub, watch: Watch, plan: Path
) -> None:
    plan.write_text(plan.read_text().partition("[alerts]")[0])
    run(github, 60, db1=WELL, db2=QUEUED)
    assert watch()[0] == 1
    assert github.issues == {}


def test_a_tracker_that_does_not_answer_is_trouble(github: GitHub, plan: Path, capsys: Capture) -> None:
    words = ["runner", "watch", "--jobs", "--plan", str(plan)]
    run(github, 5, db1=WELL, db2=WELL)
    github.faults = [Fault(502)]
    assert main(words) == 2
    github.faults = [Fault(200, content=b'{"workflow_runs": [{"id": "no"}]}')]
    assert main(words) == 2
    assert "GitHub's answer is not about runs and jobs" in capsys.readouterr().err


def test_routes_are_told_when_the_issue_of_a_box_is_opened_and_closed(
    github: GitHub, plan: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with webhook() as hook:
        monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
        plan.write_text(f'{plan.read_text()}[[notify]]\nname = "team"\nkinds = ["trouble"]\n')
        db2_falls_silent(github)
        assert [watch()[0], watch()[0]] == [1, 1]
        (line,) = hook.lines
        assert line.startswith("Trouble: box db2: it is silent since ")
        assert line.endswith("issue #1 was opened; to do: is the box on, and its runner? docs/hardware.md")
        hook.status = 500
        run(github, 0.6, db1=WELL, db2=WELL)
        assert watch()[0] == 2, "a message that did not arrive is trouble"
        assert len(hook.lines) == 1


def test_all_pages_of_jobs_are_read(github: GitHub, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "PAGE", 2)
    run(github, 60, db1=WELL, db2=WELL)
    code, said = watch()
    assert (code, said.count("last success")) == (1, 2)
