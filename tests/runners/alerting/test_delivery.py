"""Every alert reaches the tracker once, whatever goes wrong on the way; and what people decide comes back."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.tracker import MUTING_LABELS
from runners.alerting.trackers.github import GitHubTracker
from tests.runners.alerting.github import REPOSITORY, TOKEN, Fault, GitHub, running

TIMEOUT = 1

DESIRED = DesiredIssue(
    "f1", AlertKind.CHANGE, "insert is 9 % slower", Markdown("since Monday"), IssueState.OPEN
)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github
        assert github.violations == []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def set_desired(store: Store, *desired: DesiredIssue) -> None:
    with store.database.writing() as connection:
        alert_outbox.set_desired(connection, desired, datetime.now(UTC))


def known(store: Store) -> tuple[Alert, ...]:
    with store.database.reading() as connection:
        return alert_outbox.load(connection)


def deliver(
    store: Store, github: GitHub, most_new: int = 3, token: str = TOKEN, later: timedelta = timedelta(0)
) -> DeliveryResult:
    tracker = GitHubTracker(REPOSITORY, token, github.url, pause_seconds=0, timeout_seconds=TIMEOUT)
    clock = lambda: datetime.now(UTC) + later  # noqa: E731
    return Delivery(store.database, tracker, ("performance",), most_new, clock).run()


@pytest.mark.slow("the life of an issue")
def test_an_issue_is_opened_once_updated_closed_and_opened_again(store: Store, github: GitHub) -> None:
    set_desired(store, DESIRED)
    assert deliver(store, github).created == ["f1"]
    (issue,) = github.issues.values()
    assert issue["title"] == DESIRED.title
    assert re.fullmatch(
        r"<!-- tidemark f1 (\w+) begin \w+ \w+: [^\n]+ -->\nsince Monday\n\n<!-- tidemark f1 \1 -->\n",
        issue["body"],
    )
    assert [label["name"] for label in issue["labels"]] == ["performance"]
    before = len(github.requests)
    assert deliver(store, github) == DeliveryResult()
    assert github.requests[before:] == [f"GET /repos/{REPOSITORY}/issues/1"]
    set_desired(store, replace(DESIRED, body=Markdown("since Sunday")))
    assert deliver(store, github).updated == ["f1"]
    assert github.issues[1]["body"].partition("\n")[2].startswith("since Sunday")
    set_desired(store, replace(DESIRED, state=IssueState.CLOSED, closing="gone since Friday"))
    assert deliver(store, github).closed == ["f1"]
    assert github.issues[1]["state"] == "closed"
    set_desired(store, DESIRED)
    assert deliver(store, github).updated == ["f1"]
    assert github.issues[1]["state"] == "open"
    assert github.comments == [(1, "Closed: gone since Friday"), (1, "It is back.")]
    assert len(github.issues) == 1


FAULTS = {
    "no answer": Fault(),
    "timeout": Fault(500, wait=1.5 * TIMEOUT),
    "timeout after success": Fault(500, wait=1.5 * TIMEOUT, after=True),
    "401": Fault(401),
    "403": Fault(403),
    "404": Fault(404),
    "410": Fault(410),
    "422": Fault(422),
    "429": Fault(429, {"Retry-After": "30"}),
    "403 that is a limit": Fault(403, {"Retry-After": "30"}),
    "500": Fault(500),
    "502 after success": Fault(502, after=True),
    "503 after success": Fault(503, after=True),
    "reset in the answer": Fault(cut=True),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whatever_fails_when_an_issue_is_opened_it_is_opened_once(
    store: Store, github: GitHub, name: str, method: str
) -> None:
    github.faults = [replace(FAULTS[name], method=method)]
    set_desired(store, DESIRED)
    assert list(deliver(store, github).failed) == ["f1"]
    (alert,) = known(store)
    assert alert.attempts == 1
    assert alert.last_error
    assert TOKEN not in alert.last_error
    deliver(store, github, later=timedelta(minutes=5))
    assert [issue["title"] for issue in github.issues.values()] == [DESIRED.title]
    (alert,) = known(store)
    assert (alert.issue, alert.is_due, alert.attempts) == (1, False, 0)


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "410"])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_whatever_fails_when_it_is_updated_it_is_updated_later(
    store: Store, github: GitHub, name: str, method: str
) -> None:
    set_desired(store, DESIRED)
    deliver(store, github)
    set_desired(store, replace(DESIRED, body=Markdown("since Sunday")))
    github.faults = [replace(FAULTS[name], method=method)] * 2
    failed = deliver(store, github).failed
    assert set(failed) == {"f1"}
    github.faults = []
    deliver(store, github, later=timedelta(minutes=5))
    assert github.issues[1]["body"].partition("\n")[2].startswith("since Sunday")
    assert len(github.issues) == 1
    assert not known(store)[0].is_due


def test_a_tracker_that_asks_to_wait_is_left_alone(store: Store, github: GitHub) -> None:
    github.faults = [Fault(429, {"Retry-After": "120"})]
    set_desired(store, DESIRED)
    deliver(store, github)
    before = len(github.requests)
    deliver(store, github, later=timedelta(seconds=100))
    assert len(github.requests) == before
    assert deliver(store, github, later=timedelta(seconds=130)).created == ["f1"]


def test_a_tracker_that_is_away_is_not_asked_for_every_alert(store: Store, github: GitHub) -> None:
    set_desired(store, *(replace(DESIRED, fingerprint=f"f{number}") for number in range(10)))
    github.faults = [Fault(503)] * 100
    outcome = deliver(store, github, most_new=10)
    assert len(outcome.failed) == len(github.requests) == 3
    github.faults = []
    assert len(deliver(store, github, most_new=10).created) == 10


def test_no_more_new_issues_than_people_want(store: Store, github: GitHub) -> None:
    set_desired(
        store, *(replace(DESIRED, fingerprint=f"f{number}", title=f"{number}") for number in range(5))
    )
    deliver(store, github, most_new=2)
    assert [issue["title"] for issue in github.issues.values()] == [
        "0",
        "1",
        "Several changes of performance in one night",
    ]
    for number in (2, 3, 4):
        assert f"- [ ] {number}" in github.issues[3]["body"]
    assert deliver(store, github, most_new=2) == DeliveryResult()
    gone = [
        replace(DESIRED, fingerprint=f"f{number}", title=f"{number}", state=IssueState.CLOSED)
        for number in (2, 3, 4)
    ]
    set_desired(store, gone[0])
    deliver(store, github, most_new=2)
    assert "- [x] 2" in github.issues[3]["body"]
    assert github.issues[3]["state"] == "open"
    set_desired(store, *gone)
    deliver(store, github, most_new=2)
    assert github.issues[3]["state"] == "closed"
    assert len(github.issues) == 3


def test_texts_of_others_do_nothing_in_an_issue(store: Store, github: GitHub) -> None:
    title = "box a\nb\u202e fails, see owner/repo#7 " + "x" * 300
    closing = "@torvalds fixed owner/repo#7\x1b[0m"
    set_desired(store, replace(DESIRED, title=title, body=Markdown(f"log \x1b[31m\n\n    {'y' * 70_000}")))
    deliver(store, github)
    assert github.issues[1]["title"].startswith("box a b\ufffd fails")
    assert "\x1b" not in github.issues[1]["body"]
    set_desired(store, replace(DESIRED, state=IssueState.CLOSED, closing=closing))
    deliver(store, github)
    assert github.comments == [(1, "Closed: @\u200ctorvalds fixed owner/repo#\u200c7\ufffd\\[0m")]
    set_desired(store, *(replace(DESIRED, fingerprint=name, title=closing) for name in ("f2", "f3")))
    deliver(store, github, most_new=1)
    assert "- [ ] @\u200ctorvalds fixed owner/repo#\u200c7" in github.issues[3]["body"]


@pytest.mark.parametrize("label", [*MUTING_LABELS, "Not-A-Regression"])
def test_a_label_mutes_for_good(store: Store, github: GitHub, label: str) -> None:
    set_desired(store, DESIRED)
    deliver(store, github)
    github.label(1, label)
    assert deliver(store, github).muted == ["f1"]
    for desired in (
        replace(DESIRED, body=Markdown("worse")),
        replace(DESIRED, state=IssueState.CLOSED),
        DESIRED,
    ):
        set_desired(store, desired)
        assert deliver(store, github) == DeliveryResult()
    assert github.issues[1]["body"].partition("\n")[2].startswith("since Monday")
    assert known(store)[0].muted == f"label {label} of #1"


def test_an_issue_that_a_person_closed_or_deleted_is_left_alone(store: Store, github: GitHub) -> None:
    set_desired(store, DESIRED, replace(DESIRED, fingerprint="f2"))
    deliver(store, github)
    github.close(1, reason="not_planned")
    assert deliver(store, github).muted == ["f1"]
    github.deleted.add(2)
    assert deliver(store, github).muted == ["f2"]
    assert [alert.muted for alert in known(store)] == [
        "#1 was closed as not planned by a person",
        "#2 was deleted",
    ]


def test_what_ended_before_an_issue_was_opened_opens_none(store: Store, github: GitHub) -> None:
    set_desired(store, replace(DESIRED, state=IssueState.CLOSED))
    assert deliver(store, github) == DeliveryResult()
    assert github.requests == []


def test_somebody_elses_issue_is_not_taken_for_ours(store: Store, github: GitHub) -> None:
    set_desired(store, DESIRED)
    github.create({"title": "mine", "body": "<!-- tidemark f1 0000000000000000 -->"})
    assert deliver(store, github).created == ["f1"]
    assert github.issues[1]["title"] == "mine"


def test_a_wrong_token_is_told_and_shown_nowhere(store: Store, github: GitHub) -> None:
    set_desired(store, DESIRED)
    (why,) = deliver(store, github, token="ghs_wrong").failed.values()
    assert "401" in why
    assert "set GITHUB_TOKEN anew" in why
    assert "ghs_wrong" not in why
