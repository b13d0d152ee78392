"""Issues are assigned to accounts; one that a tracker refuses is told from what else it refuses."""

from collections.abc import Iterator

import pytest

from history.store.alert_outbox import IssueState
from runners.alerting.tracker import AssigneesRefusedError, IssueChangedError, IssueEdit
from runners.alerting.trackers.github import GitHubTracker
from tests.runners.alerting.github import PERSON, REPOSITORY, TOKEN, GitHub, running


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


@pytest.fixture
def tracker(github: GitHub) -> GitHubTracker:
    return GitHubTracker(REPOSITORY, TOKEN, github.url, pause_seconds=0)


def test_an_edit_assigns_an_issue_and_takes_it_from_others(tracker: GitHubTracker) -> None:
    issue = tracker.create("insert is 9 % slower", "since Monday", ())
    assert issue.assignees == ()
    assigned = tracker.edit(issue, IssueEdit(assignees=(PERSON,)))
    assert assigned.assignees == (PERSON,)
    assert tracker.edit(assigned, IssueEdit(state=IssueState.CLOSED)).assignees == (PERSON,)
    assert tracker.edit(tracker.read(1), IssueEdit(assignees=())).assignees == ()


def test_an_account_that_cannot_be_assigned_is_told_from_other_refusals(
    tracker: GitHubTracker, github: GitHub
) -> None:
    issue = tracker.create("insert is 9 % slower", "since Monday", ())
    with pytest.raises(AssigneesRefusedError, match="Issue assignees: invalid"):
        tracker.edit(issue, IssueEdit(title="insert is 8 % slower", assignees=("nobody",)))
    assert github.issues[1]["title"] == "insert is 9 % slower"


def test_what_a_person_assigns_meanwhile_is_not_overwritten(tracker: GitHubTracker, github: GitHub) -> None:
    issue = tracker.create("insert is 9 % slower", "since Monday", ())
    github.issues[1]["assignees"] = [{"login": "bob"}]
    with pytest.raises(IssueChangedError):
        tracker.edit(issue, IssueEdit(assignees=(PERSON,)))
