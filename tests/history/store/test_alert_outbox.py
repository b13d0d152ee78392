"""The outbox: what is due, what was sent, what failed, what is muted."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from tests.history.conftest import Target
from tests.history.handmade import NIGHT

DESIRED = DesiredIssue("f1", AlertKind.CHANGE, "insert is slower", Markdown("by 9 %"), IssueState.OPEN)


@pytest.fixture
def store(target: Target) -> Iterator[Store]:
    with open_store(target) as store:
        yield store


def set_desired(store: Store, *desired: DesiredIssue) -> tuple[Alert, ...]:
    with store.database.writing() as connection:
        alert_outbox.set_desired(connection, desired, NIGHT)
        return alert_outbox.load(connection)


def now(store: Store) -> Alert:
    with store.database.reading() as connection:
        (alert,) = alert_outbox.load(connection)
    return alert


def send(store: Store, alert: Alert, issue: int = 7) -> None:
    with store.database.writing() as connection:
        alert_outbox.mark_sent(connection, alert, issue)


def test_a_new_alert_is_due_until_it_is_sent(store: Store) -> None:
    (alert,) = set_desired(store, DESIRED)
    assert alert.desired == DESIRED
    assert (alert.is_due, alert.issue, alert.attempts, alert.created_at) == (True, None, 0, NIGHT)
    send(store, alert)
    assert (now(store).is_due, now(store).issue, now(store).issue_state) == (False, 7, IssueState.OPEN)
    set_desired(store, DESIRED)
    assert not now(store).is_due


@pytest.mark.parametrize(
    "change",
    [{"title": "it is worse"}, {"body": "by 12 %"}, {"state": IssueState.CLOSED}, {"closing": "gone"}],
)
def test_whatever_changes_makes_it_due_again(store: Store, change: dict[str, Any]) -> None:
    (alert,) = set_desired(store, DESIRED)
    send(store, alert)
    set_desired(store, replace(DESIRED, **change))
    assert now(store).is_due
    send(store, now(store))
    assert not now(store).is_due
    assert now(store).issue_state is replace(DESIRED, **change).state


def test_what_ended_before_an_issue_was_opened_needs_none(store: Store) -> None:
    set_desired(store, DESIRED)
    set_desired(store, replace(DESIRED, state=IssueState.CLOSED))
    assert not now(store).is_due


def test_a_failure_is_kept_and_it_stays_due(store: Store) -> None:
    (alert,) = set_desired(store, DESIRED)
    until = NIGHT + timedelta(minutes=5)
    for why in ("502", "429"):
        with store.database.writing() as connection:
            alert_outbox.mark_failed(connection, now(store) if why == "429" else alert, why, until)
    found = now(store)
    assert (found.is_due, found.attempts, found.last_error, found.not_before) == (True, 2, "429", until)
    send(store, found)
    assert (now(store).attempts, now(store).last_error, now(store).not_before) == (0, None, None)


def test_a_muted_alert_and_one_in_a_summary_are_never_due(store: Store) -> None:
    first, second = set_desired(store, DESIRED, replace(DESIRED, fingerprint="f2"))
    with store.database.writing() as connection:
        alert_outbox.mute(connection, first, "label acknowledged")
        alert_outbox.move_to_summary(connection, second, "s1")
    new = replace(DESIRED, body=Markdown("new"))
    for alert in set_desired(store, new, replace(new, fingerprint="f2")):
        assert not alert.is_due
