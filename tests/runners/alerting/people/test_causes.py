"""One cause, one issue: a branch, its variants and several boxes share it, and it says which they are."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from history.changes import repository
from history.changes.acknowledgements import acknowledge
from history.changes.detector import judge
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert, ClosedAs, DesiredIssue, IssueState
from history.store.records import ChangeStatus
from history.store.writer import Store
from report.values.change_details import issue_of
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.outbox import desired_issues, update_outbox
from runners.alerting.trackers.github import GitHubTracker
from tests.history.handmade import record_steps, session_start
from tests.history.watched import QUIET, dated, night
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners"

BASE, NEW, MEM, O3 = (f"postgres@{name}" for name in ("17.11", "master", "master#mem", "master#o3"))
ERROR = "not enough arguments to function 'LWLockAcquire'"


def log(box: str, line: int, error: str = ERROR) -> str:
    """The end of a compile's log, which has folders and lines of its own on every box."""
    source = f"/srv/{box}/src/lwlock.c:{line}:9"
    return f"make failed:\ngcc -O2 -c lwlock.c\n{source}: error: {error}\nmake: *** Error 1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


class Desk:
    """Nights of several boxes, of which some versions do not build; and their issues."""

    def __init__(self, store: Store, github: GitHub) -> None:
        self.store, self.github, self.count = store, github, 0

    def night(self, not_built: Mapping[str, str], box: str = "db1", died: str = "") -> None:
        """A night of a branch and two variants."""
        self.count += 1
        versions = [BASE, NEW, MEM, O3]
        start = session_start(f"{box}-{self.count}")
        options = {"versions": versions, "not_built": dict(not_built)}
        start = replace(start, options=options, machine=replace(start.machine, hostname=box, fingerprint=box))
        rates = {
            version: [0.0 if version == died else 1.0] for version in versions if version not in not_built
        }
        record_steps(self.store, start, {"insert": rates})

    def report(self) -> DeliveryResult:
        update_outbox(self.store.database, 0.02)
        tracker = GitHubTracker(REPOSITORY, TOKEN, self.github.url, pause_seconds=0)
        return Delivery(self.store.database, tracker, (), 9).run()

    def alerts(self) -> tuple[Alert, ...]:
        with self.store.database.reading() as connection:
            return alert_outbox.load(connection)

    def open_titles(self) -> list[str]:
        return [issue["title"] for issue in self.github.issues.values() if issue["state"] == "open"]

    def forget_members(self) -> None:
        """As an earlier version left the outbox: an issue for each branch of each box."""
        with self.store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE alerts SET members = NULL")


@pytest.fixture
def desk(store: Store, github: GitHub) -> Desk:
    return Desk(store, github)


# --- builds


def test_one_error_in_a_branch_its_variants_and_two_boxes_is_one_issue(desk: Desk) -> None:
    desk.night({broken: log("db1", 7) for broken in (NEW, MEM, O3)})
    desk.night({broken: log("db2/home", 8) for broken in (NEW, MEM)}, box="db2")
    assert len(desk.report().created) == 1
    (issue,) = desk.github.issues.values()
    assert issue["title"] == "postgres master and 2 more cannot be built"
    assert "These versions could not be built, all for the same reason:" in issue["body"]
    for version, box in ((NEW, "db1"), (MEM, "db1"), (O3, "db1"), (NEW, "db2"), (MEM, "db2")):
        assert f"- `{version}` on {box}\n" in issue["body"]
    assert issue["body"].count("lwlock.c:7:9: error:") == 1
    desk.night({broken: log("db1", 9) for broken in (NEW, MEM, O3)})
    assert desk.report().created == []
    # One box after the other builds it again.
    desk.night({})
    assert (len(desk.report().created), len(desk.open_titles())) == (0, 1)
    assert "on db1" not in issue["body"]
    desk.night({}, box="db2")
    assert len(desk.report().closed) == 1
    assert desk.open_titles() == []
    assert "`postgres@master` was built again on db2." not in issue["body"]
    assert "All of these versions were built again:" in issue["body"]


def test_another_error_is_another_issue(desk: Desk) -> None:
    desk.night({NEW: log("db1", 7), O3: log("db1", 7, "unrecognized option '-flto'"), MEM: log("db1", 7)})
    desk.report()
    assert sorted(desk.open_titles()) == [
        "postgres master and 1 more cannot be built",
        "postgres master#o3 cannot be built",
    ]
    desk.night({O3: log("db1", 7, "unrecognized option '-flto'")})
    desk.report()
    assert desk.open_titles() == ["postgres master#o3 cannot be built"]


def test_issues_of_an_earlier_version_become_one(desk: Desk) -> None:
    """It opened one for each branch of each box; the oldest goes on, the others are closed and name it."""
    desk.night({NEW: log("db1", 7)})
    desk.report()
    desk.forget_members()
    desk.night({NEW: log("db1", 7), MEM: log("db1", 9, "another")})
    desk.report()
    desk.forget_members()
    assert len(desk.open_titles()) == 2
    desk.night({NEW: log("db1", 7), MEM: log("db1", 9)})
    assert desk.report().created == []
    assert desk.open_titles() == ["postgres master and 1 more cannot be built"]
    assert desk.github.issues[2]["state_reason"] == "not_planned"
    assert "#1 tells of this, too" in desk.github.issues[2]["body"]
    assert desk.report() == DeliveryResult()
    desk.night({})
    desk.report()
    assert desk.open_titles() == []
    assert [number for number, text in desk.github.comments if "built again" in text] == [1]


def test_what_was_muted_is_muted_until_it_is_built_again(desk: Desk) -> None:
    desk.night({NEW: log("db1", 7)})
    desk.report()
    desk.github.close(1, "not_planned")
    desk.report()
    desk.night({NEW: log("db1", 7), MEM: log("db1", 7)})
    assert desk.report() == DeliveryResult()
    desk.night({})
    desk.report()
    desk.night({NEW: log("db1", 7)})
    assert len(desk.report().created) == 1
    assert len(desk.github.issues) == 2


def test_a_branch_and_its_variant_that_die_alike_share_an_issue(desk: Desk) -> None:
    desk.night({}, died=NEW)
    desk.night({}, box="db2", died=MEM)
    assert len(desk.report().created) == 1
    (issue,) = desk.github.issues.values()
    assert issue["title"] == "postgres master and 1 more fails while it is measured"
    assert "- `postgres@master#mem` on db2" in issue["body"]


# --- changes


class Commits:
    """Nights of a branch at commit n and a variant of it; two boxes and suites when they are asked for."""

    def __init__(self, store: Store) -> None:
        self.store, self.count, self.random = store, 0, random.Random(11)

    def more(
        self, count: int, factor: float = 1.0, *, mem: float | None = None, suite: str = "write-heavy"
    ) -> None:
        """So many nights in which insert runs at `factor` of its speed, and that of the variant at `mem`."""
        for _ in range(count):
            new = f"postgres@git:{self.count:012x}"
            factors = ((new, factor), (f"{new}#mem", factor if mem is None else mem))
            rates = {
                step: {
                    BASE: [1000.0 * self._noise()],
                    **{
                        name: [950.0 * self._noise() * (f if step == "insert" else 1.0)]
                        for name, f in factors
                    },
                }
                for step in ("insert", "delete")
            }
            branches = {new: NEW, f"{new}#mem": MEM}
            start = session_start(f"{suite}-{self.count}", suite=suite)
            options = {"versions": [BASE, *(name for name, _ in factors)], "branches": branches}
            record_steps(self.store, replace(start, options=options), rates)
            self.count += 1

    def judge(self) -> None:
        judge(self.store.database, clock=lambda: night(self.count))

    def desired(self) -> list[DesiredIssue]:
        with self.store.database.reading() as connection:
            return desired_issues(connection, 0.02, alert_outbox.load(connection))

    def told(self) -> list[DesiredIssue]:
        issues = self.desired()
        with self.store.database.writing() as connection:
            alert_outbox.set_desired(connection, issues, night(self.count))
        return issues

    def changes(self) -> dict[str, str]:
        """Fingerprint by branch."""
        with self.store.database.reading() as connection:
            return {change.branch: change.fingerprint for change in repository.load(connection)}

    def _noise(self) -> float:
        return float(self.random.lognormvariate(0.0, 0.007))


@pytest.fixture
def commits(tmp_path: Path) -> Iterator[Commits]:
    with dated(tmp_path / "commits.db", Commits) as commits:
        commits.more(QUIET)
        yield commits


def test_a_commit_that_changes_a_branch_and_its_variant_is_one_issue(commits: Commits) -> None:
    commits.more(8, 0.93)
    commits.judge()
    plain, variant = (commits.changes()[name] for name in (NEW, MEM))
    (issue,) = commits.told()
    assert set(issue.told) == {plain, variant}
    assert issue.title.endswith("(write-heavy), also #mem")
    require_golden("issue-variants.md", f"# {issue.title}\n\n{issue.body}", GOLDEN)
    with commits.store.database.reading() as connection:
        (alert,) = alert_outbox.load(connection)
    with commits.store.database.writing() as connection:
        alert_outbox.mark_sent(connection, alert, 7, REPOSITORY)
        assert issue_of(connection, plain) == issue_of(connection, variant) == (REPOSITORY, 7, "open")
    # One of them is known: the other is still told.
    with commits.store.database.writing() as connection:
        acknowledge(connection, variant, "wanted there", night(commits.count), who="ann")
    (issue,) = commits.told()
    assert (issue.state, set(issue.told)) == (IssueState.OPEN, {plain, variant})
    assert "| acknowledged |" in issue.body
    assert "Acknowledged by ann" in issue.body
    with commits.store.database.writing() as connection:
        acknowledge(connection, plain, "wanted here", night(commits.count), who="bob")
    (issue,) = commits.told()
    assert (issue.state, issue.closed_as) == (IssueState.CLOSED, ClosedAs.NOT_PLANNED)


def test_a_variant_that_changes_at_another_commit_has_an_issue_of_its_own(commits: Commits) -> None:
    commits.more(15, 0.93, mem=1.0)
    commits.more(12, 0.93, mem=0.9)
    commits.judge()
    issues = commits.told()
    assert [len(issue.told) for issue in issues] == [1, 1]
    assert issues[1].title.startswith("postgres master#mem: insert")


def test_issues_about_the_same_commit_become_one(commits: Commits, github: GitHub) -> None:
    """Of an earlier version, which opened one for the branch and one for its variant."""
    commits.more(8, 0.93)
    commits.judge()
    (issue,) = commits.desired()
    changes = commits.changes()
    desk = Desk(commits.store, github)
    with commits.store.database.writing() as connection:
        for name in (MEM, NEW):
            old = replace(issue, fingerprint=changes[name], members=(), title=name)
            alert_outbox.set_desired(connection, [old], night(commits.count))
    tracker = GitHubTracker(REPOSITORY, TOKEN, github.url, pause_seconds=0)
    Delivery(commits.store.database, tracker, (), 9).run()
    assert len(desk.open_titles()) == 2
    assert desk.report().created == []
    assert desk.open_titles() == [issue.title]
    assert "#1 tells of this, too" in github.issues[2]["body"]
    assert desk.report() == DeliveryResult()
    # What a person decides in the one that is left holds for both.
    github.close(1, "not_planned")
    desk.report()
    with commits.store.database.reading() as connection:
        assert {change.status for change in repository.load(connection)} == {ChangeStatus.ACKNOWLEDGED}
