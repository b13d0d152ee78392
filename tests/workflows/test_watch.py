"""The watch as it is, run in act: a hosted runner without box and history, and GitHub's runs and jobs."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.home import Home
from runners.watching.jobs import PARTS
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.small_plan import small_plan
from tests.workflows.acting import Checkout


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


def a_run(number: int, hours_ago: float, conclusion: str | None) -> dict[str, object]:
    began = datetime.now(UTC) - timedelta(hours=hours_ago)
    ended = began.isoformat() if conclusion else None
    jobs = [{"name": f"here / {part}", "conclusion": conclusion, "completed_at": ended} for part in PARTS]
    return {"id": number, "created_at": began.isoformat(), "html_url": "https://x.example/1", "jobs": jobs}


def test_a_hosted_runner_tells_of_a_box_that_is_off(github: GitHub, tmp_path: Path) -> None:
    plan = small_plan(["insert"], f'repository = "{REPOSITORY}"')
    checkout = Checkout(tmp_path, Home(tmp_path / "home"), plan, ())
    around = {"GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": REPOSITORY}
    github.workflow_runs = [a_run(2, 30, None), a_run(1, 54, "success")]
    acted = checkout.run("schedule", "watch.yml", environment=around, token=TOKEN)
    assert (acted.code, acted.jobs) == (1, {"report": "failure"}), acted.log
    (issue,) = github.issues.values()
    assert issue["title"].startswith("box here: it is silent since ")
    assert "box here: it is silent" in acted.summaries["report"]
    assert TOKEN not in acted.log
    assert not (tmp_path / "home").exists(), "neither a home nor a history is needed"
    github.workflow_runs.insert(0, a_run(3, 1, "success"))
    acted = checkout.run("schedule", "watch.yml", environment=around, token=TOKEN)
    assert (acted.code, acted.jobs) == (0, {"report": "success"}), acted.log
    assert issue["state"] == "closed"
