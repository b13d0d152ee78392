"""Clocks of tracker and box that differ by days: an issue is found by its marker alone, and opened once."""

from datetime import UTC, datetime, timedelta

import pytest

from runners.alerting.trackers.github import PAGE, GitHubTracker
from tests.runners.alerting.conftest import Stand
from tests.runners.alerting.github import REPOSITORY, TOKEN, Fault, GitHub


def somebodys(github: GitHub, count: int) -> None:
    for _ in range(count):
        github.create({"title": "somebody's", "body": "text"})


@pytest.mark.parametrize("days", [-400, -3, 3, 400])
def test_whatever_the_clocks_say_a_lost_answer_opens_no_second_issue(stand: Stand, days: int) -> None:
    somebodys(stand.github, 3)
    stand.github.ahead = timedelta(days=days)
    stand.github.faults = [Fault(502, method="POST", after=True)]
    assert stand.report()[0] == 2
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.alert().issue) == (4, 4)


@pytest.mark.parametrize("days", [-3, 3])
def test_a_request_that_was_carried_out_twice_leaves_one_open(stand: Stand, days: int) -> None:
    stand.github.ahead = timedelta(days=days)
    stand.github.faults = [Fault(method="POST", twice=True)]
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]


def test_an_issue_that_the_outbox_has_forgotten_is_found(stand: Stand) -> None:
    """The history was restored from a copy that was made before."""
    stand.github.ahead = timedelta(days=-3)
    stand.report()
    somebodys(stand.github, PAGE + 1)
    stand.execute(
        "UPDATE alerts SET issue = NULL, issue_state = NULL, sent_digest = NULL, asked_after = NULL,"
        " repository = NULL, sent_title = NULL, sent_body = NULL"
    )
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.alert().issue) == (PAGE + 2, 1)


def test_a_lost_answer_costs_one_page_however_many_issues_there_are(stand: Stand) -> None:
    somebodys(stand.github, 2 * PAGE)
    stand.github.faults = [Fault(502, method="POST", after=True)]
    stand.report()
    before = len(stand.github.requests)
    assert stand.report()[0] == 0
    listings = [request for request in stand.github.requests[before:] if "/issues?" in request]
    assert len(listings) == 2  # to find it, and to find others of the same alert
    assert stand.alert().issue == 2 * PAGE + 1


def test_an_old_issue_with_a_high_number_does_not_hide_ours(github: GitHub) -> None:
    """A transferred issue keeps its date; and ours is of the same second as others."""
    somebodys(github, 2)
    github.issues[2]["created_at"] = "2019-01-01T00:00:00Z"
    github.create({"title": "ours", "body": "marker"})
    github.create({"title": "later", "body": "text"})
    for number in (1, 3, 4):
        github.issues[number]["created_at"] = github.issues[1]["created_at"]
    tracker = GitHubTracker(REPOSITORY, TOKEN, github.url)
    assert [issue.number for issue in tracker.newest(2)] == [4, 3]
    assert [issue.number for issue in tracker.newest(0)] == [4, 3, 1, 2]


def test_when_an_issue_was_closed_is_told_by_the_clock_of_the_box(github: GitHub) -> None:
    github.ahead = timedelta(days=5)
    github.create({"title": "ours", "body": "marker"})
    github.close(1)
    closed_at = GitHubTracker(REPOSITORY, TOKEN, github.url).read(1).closed_at
    assert closed_at is not None
    assert abs(closed_at - datetime.now(UTC)) < timedelta(minutes=1)
