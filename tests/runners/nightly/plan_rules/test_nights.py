"""Nights after which the rules of a plan hold: what is said, which issues there are, and whose they are."""

import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from build.engines import ENGINES
from build.home import ROOT, Home
from build.sources.git import mirror
from build.version import Engine
from history.changes.repository import Change
from history.open import open_store
from runners.alerting.trackers import github as github_module
from runners.nightly.plan import load_plan
from runners.nightly.report import report
from runners.nightly.summary import summary
from tests.history.watched import QUIET, Nights, dated, every_change, name_commits, night
from tests.runners.alerting.github import PERSON, REPOSITORY, TOKEN, GitHub, running
from tests.runners.small_plan import small_plan
from tests.suites.golden import require_golden

pytestmark = pytest.mark.deep("months of simulated nights")

GOLDEN = ROOT / "tests/golden/runners"

OWNERS = f"""
[[owners]]
suites = ["write-heavy"]
assignee = "{PERSON}"
mention = ["@org/storage"]
"""


class Team:
    """A service on the history of its nights, with a plan that its people edit."""

    def __init__(self, folder: Path, nights: Nights, github: GitHub) -> None:
        self.folder, self.nights, self.github = folder, nights, github
        self.rules = ""

    def more(self, count: int, factor: float) -> str:
        """So many nights with a report after each; return the summaries."""
        said = []
        for _ in range(count):
            self.nights.more(1, factor)
            said.append(self.report())
        return "\n".join(said)

    def report(self) -> str:
        """Report by the plan as it is now, and return the summary without its heading."""
        file = self.folder / "plan.toml"
        alerts = f'repository = "{REPOSITORY}"'
        file.write_text(f"backups = 0\n{small_plan(['insert'], alerts)}{self.rules}")
        found = report(load_plan(file), Home(self.folder), self.nights.store)
        text = str(summary(None, found, [], night(self.nights.count)))
        return re.sub(r"\A## .*\n+", "", text)

    def mute(self, *conditions: str, days: int) -> None:
        """Mute for so many days from the last night."""
        until = (night(self.nights.count) + timedelta(days=days)).date()
        lines = [*conditions, f"until = {until}", 'reason = "the new allocator costs this"']
        self.rules = "\n".join([*self.rules.partition("[[mutes]]")[:1], "[[mutes]]", *lines, ""])

    @property
    def states(self) -> list[str]:
        return [issue["state"] for issue in self.github.issues.values()]

    @property
    def change(self) -> Change:
        (change,) = every_change(self.nights.store)
        return change


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Any]:
    """The file of a history in which nothing has happened yet, and where its noise goes on."""
    path = tmp_path_factory.mktemp("quiet") / "history.db"
    with dated(path, Nights) as nights:
        nights.more(QUIET)
        noise = nights.random.getstate()
    return path.read_bytes(), noise


@pytest.fixture
def team(
    tmp_path: Path, quiet: tuple[bytes, Any], github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Team]:
    def connect(name: str, url: str | None = None) -> github_module.GitHubTracker:
        return github_module.GitHubTracker(name, TOKEN, github.url, pause_seconds=0)

    monkeypatch.setattr(github_module, "connect", connect)
    path = tmp_path / "history.db"
    path.write_bytes(quiet[0])
    made: list[Nights] = []
    with open_store(path, clock=lambda: night(made[0].count)) as store:
        made.append(Nights(store))
        made[0].count = QUIET
        made[0].random.setstate(quiet[1])
        yield Team(tmp_path, made[0], github)


def test_a_mute_begins_a_change_appears_grows_beyond_it_and_is_new_then(team: Team) -> None:
    team.mute('steps = ["insert"]', "below_percent = 5.3", days=60)
    team.more(5, 0.95)
    require_golden("night-muted.md", team.more(1, 0.95), GOLDEN)
    assert team.states == []
    assert team.change.is_muted
    grown = ""
    for _ in range(8):
        grown = team.more(1, 0.94)
        if "new:" in grown:
            break
    assert "1 new change" in grown
    assert "no longer muted" in grown
    assert "its mute is of less than 5.3 %" in grown
    assert team.states == ["open"]
    # Later nights may show a size below the limit again, of which nobody wants to hear anew.
    assert "muted" not in team.more(6, 0.955)
    assert team.states == ["open"]


def test_the_issue_of_a_change_that_is_muted_is_closed_and_opened_again_when_that_ends(team: Team) -> None:
    assert team.more(4, 0.93).count("1 new change") == 1
    assert team.states == ["open"]
    team.mute('metrics = ["qps", "server_cpu_us_per_op"]', 'branches = ["postgres@REL_*"]', days=3)
    said = team.more(1, 0.93)
    assert "0 new changes, 0 back, 0 gone, 1 open, 1 of them muted" in said
    assert team.states == ["closed"]
    assert team.github.issues[1]["state_reason"] == "not_planned"
    (closed,) = team.github.comments
    assert closed[1].startswith("Closed: muted until 2026-")
    assert closed[1].endswith("the new allocator costs this")
    assert team.report().partition("Issues")[0] == said.partition("Issues")[0]
    team.more(2, 0.93)
    ended = team.more(2, 0.93)
    assert "1 new change" in ended
    assert "was the last day of its mute" in ended
    assert ended.count("take it out of the plan") == 1
    assert team.states == ["open"]
    assert "No longer muted since" in team.github.comments[1][1]
    later = team.more(1, 0.93)
    assert "take it out of the plan" not in later
    assert len(team.github.comments) == 2


def test_a_mute_that_matches_nothing_for_long_is_told_once(team: Team) -> None:
    team.mute('steps = ["delete"]', days=300)
    assert "mute" not in team.more(1, 1.0)
    team.nights.more(89)
    assert "has matched no change for 90 days: take it out of the plan, or correct it" in team.more(1, 1.0)
    assert "mute" not in team.more(1, 1.0)


def test_an_issue_is_assigned_to_its_owner_and_says_by_which_rule(team: Team) -> None:
    team.rules = OWNERS
    said = team.more(4, 0.93)
    assert f"owners: {PERSON} (assignee), org/storage" in said
    issue = team.github.issues[1]
    assert issue["assignees"] == [{"login": PERSON}]
    assert f"Owners: @{PERSON}, @org/storage (by `suites write-heavy`)." in issue["body"]


def test_an_account_that_the_tracker_refuses_is_mentioned_and_told_once(team: Team) -> None:
    team.rules = OWNERS.replace(PERSON, "nobody")
    said = team.more(6, 0.93)
    assert said.count("refuses nobody, who is mentioned instead") == 1
    assert team.github.issues[1]["assignees"] == []
    assert "@nobody" in team.github.issues[1]["body"]


def test_what_people_assign_stays_and_another_owner_replaces_the_first(team: Team) -> None:
    team.rules = OWNERS
    team.more(4, 0.93)
    team.github.assignable.add("bob")
    team.rules = OWNERS.replace(PERSON, "bob")
    team.report()
    assert team.github.issues[1]["assignees"] == [{"login": "bob"}]
    team.github.issues[1]["assignees"] = [{"login": "carol"}]
    team.rules = OWNERS
    team.report()
    assert team.github.issues[1]["assignees"] == [{"login": "carol"}]


def test_a_change_that_is_narrowed_to_one_commit_gets_the_owners_of_its_files(team: Team) -> None:
    team.rules = f'{OWNERS}[[owners]]\npaths = ["src/backend/**"]\nmention = "@org/backend"\n'
    team.more(4, 0.93)
    assert [owner.account for owner in team.change.owners] == [PERSON, "org/storage"]
    commits = _mirror(Home(team.folder), "src/backend/access/heap/heapam.c", "README")
    name_commits(team.nights.store, *commits[:2])
    said = team.report()
    assert [owner.account for owner in team.change.owners] == ["org/backend"]
    assert "@org/backend (by `paths src/backend/**`)" in team.github.issues[1]["body"]
    assert "0 new changes" in said


def _mirror(home: Home, *files: str) -> list[str]:
    """Make the mirror of Postgres with a first commit, and one more for each file; return the commits."""
    folder = mirror(ENGINES[Engine.POSTGRES].upstream.git, Engine.POSTGRES, home).path
    work = folder.with_name("work")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q", work], check=True)
    commits = []
    for name in ("first", *files):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
        subprocess.run([*git, "-C", work, "add", "."], check=True)
        subprocess.run([*git, "-C", work, "commit", "-qm", name], check=True)
        told = subprocess.run([*git, "-C", work, "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE)
        commits.append(told.stdout.decode().strip())
    subprocess.run([*git, "clone", "-q", "--bare", work, folder], check=True)
    return commits
