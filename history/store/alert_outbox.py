"""The outbox of alerts: for every alert the desired state of its issue, and what was sent to the tracker.

Delivery compares the two, so that nothing is lost while the tracker is down, and nothing is sent twice.
"""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from history.store.schema import alerts
from history.timestamps import from_text, to_text


class AlertKind(StrEnum):
    """The subject of an alert."""

    CHANGE = "change"
    BUILD = "build"
    """A version that could not be built."""

    CRASH = "crash"
    """A server that crashed, a step that failed repeatedly, or a box whose nights do not end."""

    SUMMARY = "summary"
    """Several alerts in one issue, when a night has too many for an issue each."""


class IssueState(StrEnum):
    """The state of an issue."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True)
class DesiredIssue:
    """The desired state of an issue."""

    fingerprint: str
    """Identifies what the issue is about, and never changes. It is part of the marker in the issue's body."""

    kind: AlertKind
    title: str
    body: str
    """Markdown."""

    state: IssueState
    closing: str = ""
    """The comment with which it is closed."""

    @property
    def digest(self) -> str:
        """The hex SHA-256 of everything that the tracker should have."""
        parts = (self.title, self.body, self.state, self.closing)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Alert:
    """An alert and its delivery so far."""

    id: int
    nonce: str
    """The random part of the marker in its issue, which prevents others from forging the issue."""

    desired: DesiredIssue
    summary: str | None
    """The fingerprint of the summary issue that lists it, when it has no issue of its own."""

    muted: str | None
    """The reason why a person muted it, so that nothing more is sent; None while it is not muted."""

    issue: int | None
    """The number of its issue; None before there is one."""

    issue_state: IssueState | None
    """The issue's state that was sent last; None before there is an issue."""

    sent_digest: str | None
    """The digest of the desired issue that was sent last; None before there is an issue."""

    attempts: int
    """The number of failed attempts since the last successful one."""

    last_error: str | None
    not_before: datetime | None
    """The earliest time of the next attempt, as requested by the tracker."""

    created_at: datetime

    @property
    def is_due(self) -> bool:
        """Whether the tracker does not have the desired state."""
        if self.muted or self.summary or self.sent_digest == self.desired.digest:
            return False
        # An alert that ended before it had an issue needs none.
        return self.issue is not None or self.desired.state is IssueState.OPEN


def set_desired(connection: Connection, issues: Iterable[DesiredIssue], when: datetime) -> None:
    """Insert or update the desired state of alerts. A muted alert stays muted."""
    for issue in issues:
        row = {
            "kind": issue.kind,
            "title": issue.title,
            "body": issue.body,
            "wanted": issue.state,
            "closing": issue.closing,
            "updated_at": to_text(when),
        }
        existing = update(alerts).where(alerts.c.fingerprint == issue.fingerprint).values(row)
        if connection.execute(existing).rowcount == 0:
            new = row | {
                "fingerprint": issue.fingerprint,
                "nonce": secrets.token_hex(8),
                "attempts": 0,
                "created_at": to_text(when),
            }
            connection.execute(insert(alerts).values(new))


def load(connection: Connection) -> tuple[Alert, ...]:
    """Return all alerts, oldest first."""
    rows = connection.execute(select(alerts).order_by(alerts.c.id)).mappings()
    return tuple(map(_alert, rows))


def desired_states(connection: Connection) -> dict[str, IssueState]:
    """Return the desired state of every alert, by fingerprint."""
    return {alert.desired.fingerprint: alert.desired.state for alert in load(connection)}


def mark_sent(connection: Connection, alert: Alert, issue: int) -> None:
    """Record that the tracker has the desired state of an alert, in the issue of this number."""
    _change(
        connection,
        alert.id,
        issue=issue,
        issue_state=alert.desired.state,
        sent_digest=alert.desired.digest,
        attempts=0,
        last_error=None,
        not_before=None,
    )


def mark_failed(connection: Connection, alert: Alert, error: str, not_before: datetime | None) -> None:
    """Record a failed attempt; the alert stays due, but not before `not_before` if that is given."""
    _change(
        connection,
        alert.id,
        attempts=alert.attempts + 1,
        last_error=error,
        not_before=not_before and to_text(not_before),
    )


def mute(connection: Connection, alert: Alert, reason: str) -> None:
    """Mute an alert for good: nothing more of it is sent."""
    _change(connection, alert.id, silenced=reason)


def move_to_summary(connection: Connection, alert: Alert, summary: str) -> None:
    """Move an alert, which then has no issue of its own, to the summary with this fingerprint."""
    _change(connection, alert.id, within=summary)


def _change(connection: Connection, alert_id: int, **values: Any) -> None:
    connection.execute(update(alerts).where(alerts.c.id == alert_id).values(values))


def _alert(row: RowMapping) -> Alert:
    return Alert(
        id=row["id"],
        nonce=row["nonce"],
        desired=DesiredIssue(
            row["fingerprint"],
            AlertKind(row["kind"]),
            row["title"],
            row["body"],
            IssueState(row["wanted"]),
            row["closing"],
        ),
        summary=row["within"],
        muted=row["silenced"],
        issue=row["issue"],
        issue_state=row["issue_state"] and IssueState(row["issue_state"]),
        sent_digest=row["sent_digest"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        not_before=row["not_before"] and from_text(row["not_before"]),
        created_at=from_text(row["created_at"]),
    )
