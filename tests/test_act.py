"""The workflows as they are, run in act: real Postgres builds, and a tracker that checks every request."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.build import Build
from build.home import Home
from tests.acting import Acted, Checkout
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

LABEL = "tidemark-here"

PLAN = f"""
[boxes.here]
label = "{LABEL}"
hostname = "*"
[engines.postgres]
base = "postgres@17.11"
releases = ["18.6"]
[[tasks]]
suite = "write-heavy"
profile = "smoke"
steps = ["update-index"]
seconds = 1.0
rounds = 3
perf = false
[alerts]
repository = "{REPOSITORY}"
"""

NIGHT = {"plan": "success", "measure": "success", "report": "success"}
"""The jobs of a night in which all went well and no regression is new."""


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


def night(checkout: Checkout, github: GitHub) -> Acted:
    acted = checkout.run("schedule", "nightly.yml", environment={"GITHUB_API_URL": github.url}, token=TOKEN)
    assert TOKEN not in acted.log
    return acted


def test_a_night_and_another_that_finds_nothing_new(
    home: Home, github: GitHub, tmp_path: Path, postgres_17: Build, postgres_18: Build
) -> None:
    checkout = Checkout(tmp_path, home, PLAN, ("self-hosted", LABEL))
    first = night(checkout, github)
    assert (first.code, first.jobs) == (0, NIGHT), first.log
    assert "Box here: 1 session." in first.summaries["measure"]
    assert "postgres@18.6 against postgres@17.11" in first.summaries["measure"]
    assert "0 new changes" in first.summaries["report"]
    assert first.outputs["boxes"] == f'[{{"name": "here", "label": "{LABEL}"}}]'
    second = night(checkout, github)
    assert (second.code, second.jobs) == (0, NIGHT), second.log
    assert "Box here: nothing is new." in second.summaries["measure"]
    assert github.issues == {}


def test_without_a_runner_of_its_label_a_box_is_left_out(home: Home, github: GitHub, tmp_path: Path) -> None:
    """act is content with a job that it could not run: the other tests have to look at each."""
    checkout = Checkout(tmp_path, home, PLAN, ())
    acted = night(checkout, github)
    assert (acted.code, acted.jobs) == (0, {"plan": "success"})
