"""What people decide about a change, in its issue or by command, is believed, told, and can be taken back."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from history.changes.acknowledgements import AcknowledgementKind
from history.store.alert_outbox import IssueState
from history.store.records import ChangeStatus
from tests.history.watched import night
from tests.runners.alerting.conftest import Stand
from tests.runners.alerting.github import PERSON, GitHub
from tests.runners.alerting.people.service import Service, running_service


@pytest.fixture
def service(tmp_path: Path, github: GitHub) -> Iterator[Service]:
    with running_service(tmp_path / "history.db", github) as service:
        assert len(service.report().created) == 1
        yield service


# --- completed


def test_what_was_closed_as_completed_is_opened_again_when_the_next_nights_show_it(service: Service) -> None:
    service.close(1, "completed")
    closed_on = night(service.nights.count) - timedelta(hours=6)
    service.report()
    assert (service.alert.muted, service.alert.is_due) == (None, False)
    service.more(1)
    assert (service.issue()["state"], service.change.status) == ("closed", ChangeStatus.OPEN)
    assert service.more(1).updated == [service.change.fingerprint]
    assert (service.issue()["state"], service.issue()["state_reason"]) == ("open", "reopened")
    (said,) = (text for _, text in service.github.comments)
    first = night(service.nights.count - 2)
    assert said == (
        f"It was closed as completed on {closed_on:%Y-%m-%d}, and the night of {first:%Y-%m-%d} still shows"
        " it."
    )
    assert service.alert.resolved_at is None
    # Again: it is believed once more, and opened once more.
    service.close(1, "completed")
    service.more(1)
    assert service.issue()["state"] == "closed"
    service.more(1)
    assert service.issue()["state"] == "open"


def test_what_was_completed_stays_closed_when_the_next_nights_are_well(service: Service) -> None:
    service.close(1, "completed")
    service.more(14, 1.0)
    assert (service.change.status, service.issue()["state"]) == (ChangeStatus.CLOSED, "closed")
    assert service.github.comments == []
    assert "**It is gone**" in service.issue()["body"]
    assert service.issue()["closed_by"] == {"login": PERSON}
    service.more(14, 0.93)
    assert service.issue()["state"] == "open"
    assert service.github.comments == [(1, "It is back.")]


def test_an_issue_that_a_person_opens_again_is_open(service: Service) -> None:
    service.close(1, "completed")
    service.report()
    assert service.alert.resolved_at is not None
    service.github.reopen(1)
    service.report()
    assert [service.alert.resolved_at] == [None]
    service.more(1)
    assert service.issue()["state"] == "open"
    assert service.github.comments == []


def test_a_build_that_was_completed_is_opened_again_by_the_next_night(stand: Stand) -> None:
    stand.report()
    stand.github.close(1, "completed", days=-1000)
    stand.report()
    assert stand.alert().muted is None
    # Not in the second in which the night saw it: a tracker tells no fractions.
    stand.github.close(1, "completed", days=0.001)
    stand.report()
    assert stand.open_issues() == []
    stand.github.close(1, "completed", days=-1000)
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]
    assert "still shows it" in stand.github.comments[-1][1]


# --- not planned, and back


@pytest.mark.parametrize("how", ["not_planned", "duplicate", "label"])
def test_what_a_person_mutes_is_acknowledged_by_them_and_can_be_withdrawn(
    service: Service, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    if how == "label":
        service.github.label(1, "Acknowledged")
    else:
        service.close(1, how)
    assert service.report().muted == [service.change.fingerprint]
    (event,) = service.change.acknowledgements
    assert (event.kind, event.who) == (AcknowledgementKind.ACKNOWLEDGED, "" if how == "label" else PERSON)
    assert event.reason.startswith("label" if how == "label" else "#1 was closed as")
    before = service.issue()["body"]
    assert service.more(2).muted == []
    assert service.issue()["body"] == before
    assert service.decide("--undo", "--by", "bob", "--reason", "it hurts") == 0
    assert "is open: no longer acknowledged: withdrawn by bob" in capsys.readouterr().out
    assert service.change.status is ChangeStatus.OPEN
    service.report()
    assert service.issue()["state"] == "open"
    assert [label["name"] for label in service.issue()["labels"]] == ["performance"]
    if how != "label":
        assert service.github.comments[-1][1].startswith("No longer acknowledged: withdrawn by bob on")
    assert "No longer acknowledged: withdrawn by bob on" in service.issue()["body"]
    assert "it hurts" in service.issue()["body"]
    assert (service.alert.muted, service.alert.unmuted_at, service.alert.is_due) == (None, None, False)
    service.more(2)
    assert service.issue()["state"] == "open"
    service.close(1, "not_planned")
    assert service.report().muted == [service.change.fingerprint]
    assert [event.kind for event in service.change.acknowledgements] == [
        AcknowledgementKind.ACKNOWLEDGED,
        AcknowledgementKind.WITHDRAWN,
        AcknowledgementKind.ACKNOWLEDGED,
    ]


@pytest.mark.parametrize(("seconds", "state"), [(1, "open"), (10, "closed")])
def test_what_is_withdrawn_in_the_second_of_its_closing_came_after_it(
    service: Service, seconds: int, state: str
) -> None:
    service.close(1, "not_planned")
    service.report()
    assert service.decide("--undo", "--reason", "by mistake") == 0
    withdrawn = service.alert.unmuted_at
    assert withdrawn is not None
    service.issue()["closed_at"] = f"{withdrawn + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
    service.report()
    assert service.issue()["state"] == state


def test_a_deleted_issue_is_opened_anew_when_that_is_withdrawn(service: Service) -> None:
    service.github.deleted.add(1)
    service.report()
    assert (service.alert.issue, service.change.status) == (None, ChangeStatus.ACKNOWLEDGED)
    assert service.decide("--undo", "--reason", "by mistake") == 0
    assert len(service.report().created) == 1
    assert service.issue(2)["state"] == "open"


# --- by command


def test_what_is_acknowledged_by_command_reaches_the_issue(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.github.write(1, body=f"a note\n\n{service.issue()['body']}")
    assert service.decide("--by", "ann", "--reason", "checksums are *wanted*") == 0
    said = capsys.readouterr().out
    assert "is acknowledged: acknowledged by ann on" in said
    assert said.endswith("its issue gets this with the next delivery\n")
    assert service.report().closed == [service.change.fingerprint]
    assert (service.issue()["state"], service.issue()["state_reason"]) == ("closed", "not_planned")
    assert service.issue()["body"].startswith("a note\r\n\r\n<!-- tidemark")
    assert "Acknowledged by ann on" in service.issue()["body"]
    assert "checksums are \\*wanted\\*" in service.issue()["body"]
    ((_, comment),) = service.github.comments
    assert comment.startswith("Closed: acknowledged by ann on")
    service.more(3)
    assert service.issue()["state"] == "closed"
    assert len(service.github.comments) == 1
    assert service.decide("--by", "bob", "--reason", "still wanted") == 0
    service.report()
    assert "by ann" in service.issue()["body"]
    assert "by bob" in service.issue()["body"]


def test_until_a_day_it_is_closed_and_open_again_after_it(service: Service) -> None:
    last = service.now().date() + timedelta(days=4)
    assert service.decide("--by", "ann", "--reason", "the fix comes with 18.7", "--until", str(last)) == 0
    service.report()
    assert service.issue()["state"] == "closed"
    assert f"until {last}" in service.github.comments[0][1]
    service.more(4)
    assert (service.change.status, service.issue()["state"]) == (ChangeStatus.ACKNOWLEDGED, "closed")
    service.more(1)
    assert (service.change.status, service.issue()["state"]) == (ChangeStatus.OPEN, "open")
    said = service.github.comments[-1][1]
    assert said == f"No longer acknowledged: {last} was the last day"
    service.more(1)
    assert service.alert.desired.state is IssueState.OPEN
    assert [event.kind for event in service.change.acknowledgements] == [
        AcknowledgementKind.ACKNOWLEDGED,
        AcknowledgementKind.EXPIRED,
    ]
    assert service.change.acknowledgements[0].until == date.fromisoformat(str(last))


def test_a_labelled_issue_learns_what_is_acknowledged_by_command(service: Service) -> None:
    service.github.label(1, "acknowledged")
    service.report()
    assert service.decide("--by", "ann", "--reason", "wanted") == 0
    service.report()
    assert service.issue()["state"] == "closed"
    assert "Acknowledged by ann" in service.issue()["body"]
    assert [label["name"] for label in service.issue()["labels"]] == ["performance", "acknowledged"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--undo", "--reason", "x"], "is open, and not acknowledged"),
        (["--until", "2020-01-01", "--reason", "x"], "2020-01-01 is over"),
    ],
)
def test_what_cannot_be_decided_is_refused(
    service: Service, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert service.decide(*words) == 2
    assert why in capsys.readouterr().err
    assert service.change.acknowledgements == ()
