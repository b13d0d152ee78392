"""The workflows as they are, run in act: real Postgres builds, and a tracker that checks every request."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.real_builds.planted_history import PlantedHistory, git_at
from build.finished_build import Build
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running
from tests.runners.small_plan import LABEL, RELEASE, small_plan
from tests.workflows.acting import Acted, Checkout

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

RUNNERS = ("self-hosted", LABEL)

NIGHT = {"plan": "success", "measure": "success", "report": "success"}
"""The jobs of a night in which all went well and no regression is new."""


UNITS = """#!/bin/sh
# Stands in for systemctl, and sudo before it: the report, with the credential that its unit alone has.
case $* in
"-n /usr/bin/systemctl start tidemark-tune.service") ;;
"-n /usr/bin/systemctl start tidemark-report.service")
    code=0
    CREDENTIALS_DIRECTORY='{credentials}' GITHUB_API_URL='{api}' '{tree}/tidemark' nightly --report || code=$?
    echo "$code" >'{credentials}/code'
    [ "$code" -le 1 ] ;;
"show --property ExecMainStatus --value tidemark-report.service") cat '{credentials}/code' ;;
*) exit 64 ;;
esac
"""


def plan(base: str, followed: str) -> str:
    alerts = f'repository = "{REPOSITORY}"'
    return small_plan(["update-index"], alerts, seconds=0.5, rounds=3, base=base, followed=followed)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


def with_units(checkout: Checkout, github: GitHub) -> Checkout:
    """The checkout on a box whose units report to `github`; the token is nowhere else."""
    credentials = checkout.tree.parent / "credentials"
    credentials.mkdir()
    (credentials / "tidemark-github-token").write_text(TOKEN)
    for name in ("sudo", "systemctl"):
        program = checkout.programs / name
        program.write_text(UNITS.format(credentials=credentials, api=github.url, tree=checkout.tree))
        program.chmod(0o755)
    return checkout


def night(checkout: Checkout) -> Acted:
    acted = checkout.run("schedule", "nightly.yml")
    assert TOKEN not in acted.log
    return acted


def test_a_night_and_another_that_finds_nothing_new(
    home: Home, github: GitHub, tmp_path: Path, postgres_17: Build, postgres_18: Build
) -> None:
    checkout = with_units(Checkout(tmp_path, home, plan("postgres@17.11", RELEASE), RUNNERS), github)
    first = night(checkout)
    assert (first.code, first.jobs) == (0, NIGHT), first.log
    assert "Box here: 1 of 1 version measured." in first.summaries["measure"]
    assert "postgres@18.6 against postgres@17.11" in first.summaries["measure"]
    assert "0 new changes" in first.summaries["report"]
    assert first.outputs["boxes"] == f'[{{"name": "here", "label": "{LABEL}"}}]'
    second = night(checkout)
    assert (second.code, second.jobs) == (0, NIGHT), second.log
    assert "Box here: nothing is new." in second.summaries["measure"]
    assert github.issues == {}


def test_without_a_runner_of_its_label_a_box_is_left_out(home: Home, tmp_path: Path) -> None:
    """act is content with a job that it could not run: the other tests have to look at each."""
    checkout = Checkout(tmp_path, home, plan("postgres@17.11", RELEASE), ())
    acted = night(checkout)
    assert (acted.code, acted.jobs) == (0, {"plan": "success"})


# --- a slow-down, from the night it appears to the night it is gone

BRANCH = "story"


class Story:
    """A branch of the planted history, which nights follow."""

    def __init__(self, history: PlantedHistory, home: Home) -> None:
        self._history, self._home = history, home
        git_at(history.repository, 40, "checkout", "--quiet", "-B", BRANCH, history.culprit)
        git_at(history.repository, 40, "revert", "--no-edit", history.culprit)
        reverted = git_at(history.repository, 40, "rev-parse", "HEAD")
        # The first two are compiled already where the bisect over this history was tested.
        self.commits = {"clean": history.before_culprit, "slow": history.culprit, "reverted": reverted}
        for commit in self.commits.values():
            version = parse_version(f"postgres@git:{commit[:12]}")
            provide(BuildRequest(version, git_source=str(history.repository)), home, Silent())

    def reach(self, state: str) -> None:
        """Move the branch on."""
        git_at(self._history.repository, 41, "checkout", "--quiet", "-B", BRANCH, self.commits[state])


@pytest.mark.alone
def test_a_slow_down_is_told_once_and_closed_when_it_is_gone(
    home: Home, github: GitHub, tmp_path: Path, postgres_18: Build, planted: PlantedHistory
) -> None:
    story = Story(planted, home)
    followed = f'branches = ["{BRANCH}"]\ngit = "{planted.repository}"'
    checkout = with_units(Checkout(tmp_path / "act", home, plan("postgres@18.6", followed), RUNNERS), github)

    story.reach("clean")
    acted = night(checkout)
    assert (acted.code, acted.jobs) == (0, NIGHT), acted.log
    assert github.issues == {}

    story.reach("slow")
    acted = night(checkout)
    # A new regression is exit code 1, so that the night is seen in the list of runs.
    assert (acted.code, acted.jobs) == (1, {**NIGHT, "report": "failure"}), acted.summaries
    (issue,) = github.issues.values()
    assert issue["state"] == "open"
    assert issue["title"].startswith(f"postgres {BRANCH}: update-index ")
    span = (story.commits["clean"], story.commits["slow"])
    assert "...".join(commit[:12] for commit in span) in issue["body"]
    assert github.comments == []
    _bisect(checkout, github, planted, span)

    story.reach("reverted")
    acted = night(checkout)
    assert (acted.code, acted.jobs) == (0, NIGHT), acted.log
    (issue,) = github.issues.values()
    assert issue["state"] == "closed", acted.summaries
    ((number, comment),) = github.comments
    written = [home.history, *home.backups.iterdir(), *home.summaries.iterdir()]
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []
    assert (number, comment.startswith("Closed: ")) == (1, True)


def _bisect(checkout: Checkout, github: GitHub, history: PlantedHistory, span: tuple[str, str]) -> None:
    """The issue's own range leads to the commit, in the summary of the job and in the issue."""
    asked = {
        "engine": "postgres",
        "good": span[0],
        "bad": span[1],
        "suite": "write-heavy",
        "step": "update-index",
        "box": "here",
        "profile": "smoke",
        "metric": "qps",
        "direction": "worse",
    }
    acted = checkout.run("workflow_dispatch", "bisect.yml", inputs=asked)
    assert TOKEN not in acted.log
    assert (acted.code, acted.jobs) == (0, dict.fromkeys(("check", "search", "report"), "success")), acted.log
    assert acted.outputs["label"] == LABEL
    culprit = f"{history.culprit} Weigh a tuple's successor before an update"
    assert culprit in acted.summaries["search"]
    (issue,) = github.issues.values()
    assert "**Bisected**" in issue["body"]
    assert culprit in issue["body"]
