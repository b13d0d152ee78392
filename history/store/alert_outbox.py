"""The outbox of alerts: what people are to be told, and what the issue tracker has of it.

An alert says how its issue should be. Delivering compares that with what was sent last, so that nothing is
lost while the tracker is away, and nothing is sent twice.
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
    """What an alert is about."""

    CHANGE = "change"
    BUILD = "build"
    """A version that could not be built."""

    CRASH = "crash"
    """A server that died, a step that failed again and again, or a box whose nights do not end."""

    SUMMARY = "summary"
    """Several, when a night has more than people want issues of."""


class IssueState(StrEnum):
    """Of an issue."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True)
class WantedIssue:
    """How an issue should be."""

    fingerprint: str
    """Names what it is about, for good: it stands in the issue's body, where it is found again."""

    kind: AlertKind
    title: str
    body: str
    """Markdown."""

    state: IssueState
    closing: str = ""
    """The note with which it is closed."""

    @property
    def digest(self) -> str:
        """Of everything that the tracker is to have."""
        parts = (self.title, self.body, self.state, self.closing)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Alert:
    """An alert with what became of it."""

    id: int
    nonce: str
    """Random: with the fingerprint it names the alert in its issue, where nobody could have guessed it."""

    wanted: WantedIssue
    within: str | None
    """The fingerprint of the summary that tells it, when it has no issue of its own."""

    silenced: str | None
    """Why nothing more is said of it: what a person decided."""

    issue: int | None
    """Number of its issue."""

    issue_state: IssueState | None
    """As it was sent last."""

    sent_digest: str | None
    attempts: int
    """That failed since the last one that did not."""

    last_error: str | None
    not_before: datetime | None
    """The tracker asked to be left alone until then."""

    created_at: datetime

    @property
    def is_due(self) -> bool:
        """Whether the tracker does not have what it should."""
        if self.silenced or self.within or self.sent_digest == self.wanted.digest:
            return False
        # What went away before anybody was told needs no issue.
        return self.issue is not None or self.wanted.state is IssueState.OPEN


def want(connection: Connection, wanted: Iterable[WantedIssue], when: datetime) -> None:
    """Say how issues should be, of new alerts and known ones. Silenced alerts keep what they have."""
    for each in wanted:
        row = {
            "kind": each.kind,
            "title": each.title,
            "body": each.body,
            "wanted": each.state,
            "closing": each.closing,
            "updated_at": to_text(when),
        }
        known = update(alerts).where(alerts.c.fingerprint == each.fingerprint).values(row)
        if connection.execute(known).rowcount == 0:
            new = row | {
                "fingerprint": each.fingerprint,
                "nonce": secrets.token_hex(8),
                "attempts": 0,
                "created_at": to_text(when),
            }
            connection.execute(insert(alerts).values(new))


def load(connection: Connection) -> tuple[Alert, ...]:
    """All alerts, the oldest first."""
    rows = connection.execute(select(alerts).order_by(alerts.c.id)).mappings()
    return tuple(map(_alert, rows))


def sent(connection: Connection, alert: Alert, issue: int) -> None:
    """The tracker has an alert as it was wanted, as this issue."""
    _change(
        connection,
        alert.id,
        issue=issue,
        issue_state=alert.wanted.state,
        sent_digest=alert.wanted.digest,
        attempts=0,
        last_error=None,
        not_before=None,
    )


def failed(connection: Connection, alert: Alert, why: str, not_before: datetime | None) -> None:
    """The tracker did not take an alert; it stays due."""
    _change(
        connection,
        alert.id,
        attempts=alert.attempts + 1,
        last_error=why,
        not_before=not_before and to_text(not_before),
    )


def silence(connection: Connection, alert: Alert, why: str) -> None:
    """Say nothing more of an alert, for good."""
    _change(connection, alert.id, silenced=why)


def tell_within(connection: Connection, alert: Alert, summary: str) -> None:
    """An alert has no issue of its own: a summary tells it."""
    _change(connection, alert.id, within=summary)


def _change(connection: Connection, alert_id: int, **values: Any) -> None:
    connection.execute(update(alerts).where(alerts.c.id == alert_id).values(values))


def _alert(row: RowMapping) -> Alert:
    return Alert(
        id=row["id"],
        nonce=row["nonce"],
        wanted=WantedIssue(
            row["fingerprint"],
            AlertKind(row["kind"]),
            row["title"],
            row["body"],
            IssueState(row["wanted"]),
            row["closing"],
        ),
        within=row["within"],
        silenced=row["silenced"],
        issue=row["issue"],
        issue_state=row["issue_state"] and IssueState(row["issue_state"]),
        sent_digest=row["sent_digest"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        not_before=row["not_before"] and from_text(row["not_before"]),
        created_at=from_text(row["created_at"]),
    )
