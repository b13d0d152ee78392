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

from history.escaping.markdown import Markdown
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


class ClosedAs(StrEnum):
    """Why an issue was closed."""

    COMPLETED = "completed"
    """It is done: what it reports should be gone."""

    NOT_PLANNED = "not_planned"
    """Nothing is going to be done about it."""

    DUPLICATE = "duplicate"
    """Another issue is about the same."""


@dataclass(frozen=True)
class DesiredIssue:
    """The desired state of an issue."""

    fingerprint: str
    """Identifies what the issue is about, and never changes. It is part of the marker in the issue's body."""

    kind: AlertKind
    title: str
    body: Markdown

    state: IssueState
    closing: str = ""
    """The comment with which it is closed; of an open one, that with which it is opened again."""

    closed_as: ClosedAs = ClosedAs.COMPLETED
    """Why it is to be closed."""

    seen_at: datetime | None = None
    """When the night began that shows it still; None if none since the first does."""

    members: tuple[str, ...] = ()
    """The fingerprints of what it tells together; empty if that is only its own."""

    assignee: str = ""
    """The account to which it is to be assigned; empty for nobody."""

    @property
    def told(self) -> tuple[str, ...]:
        """The fingerprints of what it tells."""
        return self.members or (self.fingerprint,)

    @property
    def digest(self) -> str:
        """The hex SHA-256 of everything that the tracker should have."""
        return _digest(self.title, self.body, self.state, self.closing)


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

    sent_text: tuple[str, str] | None
    """The title and the body that were sent last; None while that is not known."""

    asked_state: IssueState | None
    """The state that the tracker was asked for without having answered that it has it: the request may have
    been carried out all the same. None once it is known what the tracker has."""

    asked_after: int | None
    """The number of the tracker's latest issue when it was asked to open this alert's, which has a higher
    number. None before, and where an older Tidemark asked."""

    repository: str | None
    """The repository of its issue, or the one that was asked to open it. None before, and for issues that an
    older Tidemark opened."""

    resolved_at: datetime | None
    """When a person closed its issue as completed, which is believed until a later night shows it. None while
    that is not so."""

    unmuted_at: datetime | None
    """When what muted it was withdrawn, until its issue says so; else None."""

    attempts: int
    """The number of failed attempts since the last successful one."""

    last_error: str | None
    not_before: datetime | None
    """The earliest time of the next attempt, as requested by the tracker."""

    created_at: datetime
    assigned: str = ""
    """The account to which the tracker was asked to assign its issue, which it may have refused; or empty."""

    @property
    def is_to_assign(self) -> bool:
        """Whether the tracker has not been asked for the assignee of the open issue yet."""
        return self.desired.state is IssueState.OPEN and self.desired.assignee != self.assigned

    @property
    def is_due(self) -> bool:
        """Whether the tracker does not have the desired state."""
        if self.muted or self.summary:
            return False
        if self.asked_state is not None or (self.unmuted_at is not None and self.issue is not None):
            return True
        if self.resolved_at is not None and self.desired.state is IssueState.OPEN:
            return self.is_seen_since(self.resolved_at)
        if self.sent_digest == self.desired.digest:
            return self.is_to_assign
        # An alert that ended before it had an issue needs none.
        return self.issue is not None or self.desired.state is IssueState.OPEN

    def is_seen_since(self, moment: datetime) -> bool:
        """Whether a night that began later still shows it."""
        return self.desired.seen_at is not None and self.desired.seen_at > moment


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def set_desired(connection: Connection, issues: Iterable[DesiredIssue], when: datetime) -> None:
    """Insert or update the desired state of alerts. A muted alert stays muted."""
    for issue in issues:
        row: dict[str, Any] = {
            "kind": issue.kind,
            "title": issue.title,
            "body": issue.body,
            "wanted": issue.state,
            "closing": issue.closing,
            "closed_as": issue.closed_as if issue.state is IssueState.CLOSED else None,
            "seen_at": issue.seen_at and to_text(issue.seen_at),
            "members": " ".join(issue.members) or None,
            "assignee": issue.assignee or None,
            "updated_at": to_text(when),
        }
        query = select(alerts).where(alerts.c.fingerprint == issue.fingerprint)
        before = connection.execute(query).mappings().first()
        if before is not None:
            _change(connection, before["id"], **row, **_sent_by_older_version(before))
        else:
            new = row | {
                "fingerprint": issue.fingerprint,
                "nonce": secrets.token_hex(8),
                "attempts": 0,
                "created_at": to_text(when),
            }
            connection.execute(insert(alerts).values(new))


def _sent_by_older_version(row: RowMapping) -> dict[str, str]:
    """The text that was sent last, if it is the one about to be replaced: older versions did not keep it."""
    known = _digest(row["title"], row["body"], row["wanted"], row["closing"])
    if row["sent_body"] is not None or row["sent_digest"] != known:
        return {}
    return {"sent_title": row["title"], "sent_body": row["body"]}


def load(connection: Connection) -> tuple[Alert, ...]:
    """Return all alerts, oldest first."""
    rows = connection.execute(select(alerts).order_by(alerts.c.id)).mappings()
    return tuple(map(_alert, rows))


def load_one(connection: Connection, alert_id: int) -> Alert:
    """Return the alert with this id."""
    return _alert(connection.execute(select(alerts).where(alerts.c.id == alert_id)).mappings().one())


def telling(connection: Connection, change: str) -> Alert | None:
    """Return the alert that tells a change, by its fingerprint, rather an open one; None without any."""
    found = [alert for alert in load(connection) if change in alert.desired.told]
    open_ones = [alert for alert in found if alert.desired.state is IssueState.OPEN]
    return next(iter([*open_ones, *found]), None)


def mark_asked(
    connection: Connection, alert: Alert, state: IssueState, present: IssueState | None = None
) -> None:
    """Record that the tracker is about to be asked for this state; the alert stays due until it has answered.

    `present` is the state that its issue has as Tidemark left it; None when it has no issue.
    """
    _change(connection, alert.id, asked_state=state, issue_state=present if alert.issue is not None else None)


def mark_opening(connection: Connection, alert: Alert, after: int, repository: str) -> None:
    """Record that the tracker is about to be asked to open the alert's issue, with a number above `after`."""
    _change(
        connection,
        alert.id,
        asked_state=alert.desired.state,
        asked_after=after,
        repository=repository,
        issue_state=None,
        issue=None,
    )


def mark_opened(connection: Connection, alert: Alert, issue: int, repository: str) -> None:
    """Record that this open issue is the alert's; it stays due, because more may have to be done."""
    _change(
        connection,
        alert.id,
        issue=issue,
        repository=repository,
        issue_state=IssueState.OPEN,
        asked_state=alert.asked_state or IssueState.OPEN,
    )


def mark_never_opened(connection: Connection, alert: Alert) -> None:
    """Record that an issue that was asked for was not opened, and is not needed any more."""
    _change(connection, alert.id, asked_state=None, attempts=0, last_error=None, not_before=None)


def mark_sent(connection: Connection, alert: Alert, issue: int, repository: str | None = None) -> None:
    """Record that the tracker has the desired state of an alert, in this issue of this repository."""
    _change(
        connection,
        alert.id,
        issue=issue,
        repository=repository or alert.repository,
        asked_state=None,
        issue_state=alert.desired.state,
        sent_digest=alert.desired.digest,
        sent_title=alert.desired.title,
        sent_body=alert.desired.body,
        assigned=(alert.desired.assignee if alert.is_to_assign else alert.assigned) or None,
        resolved_at=None,
        unmuted_at=None,
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


def mark_resolved(connection: Connection, alert: Alert, when: datetime | None) -> None:
    """Record when a person closed an alert's issue as completed; None when a person opened it again."""
    _change(connection, alert.id, resolved_at=when and to_text(when))


def mute(connection: Connection, alert: Alert, reason: str) -> None:
    """Mute an alert: nothing more of it is sent until that is withdrawn."""
    _change(connection, alert.id, silenced=reason, resolved_at=None, unmuted_at=None)


def unmute(connection: Connection, alert: Alert, when: datetime) -> None:
    """Withdraw what muted an alert, which its issue is to say."""
    _change(connection, alert.id, silenced=None, unmuted_at=to_text(when))


def mark_deleted(connection: Connection, alert: Alert) -> None:
    """Record that an alert has no issue any more."""
    gone = dict.fromkeys(("issue", "issue_state", "sent_digest", "asked_state", "assigned"))
    _change(connection, alert.id, **gone)


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
            Markdown(row["body"]),
            IssueState(row["wanted"]),
            row["closing"],
            ClosedAs(row["closed_as"] or ClosedAs.COMPLETED),
            row["seen_at"] and from_text(row["seen_at"]),
            tuple((row["members"] or "").split()),
            row["assignee"] or "",
        ),
        summary=row["within"],
        muted=row["silenced"],
        issue=row["issue"],
        issue_state=row["issue_state"] and IssueState(row["issue_state"]),
        sent_digest=row["sent_digest"],
        sent_text=None if row["sent_body"] is None else (row["sent_title"], row["sent_body"]),
        asked_state=row["asked_state"] and IssueState(row["asked_state"]),
        asked_after=row["asked_after"],
        repository=row["repository"],
        resolved_at=row["resolved_at"] and from_text(row["resolved_at"]),
        unmuted_at=row["unmuted_at"] and from_text(row["unmuted_at"]),
        attempts=row["attempts"],
        last_error=row["last_error"],
        not_before=row["not_before"] and from_text(row["not_before"]),
        created_at=from_text(row["created_at"]),
        assigned=row["assigned"] or "",
    )
