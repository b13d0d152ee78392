"""The outbox of notices: what was told of every subject, and which routes have still to get it.

Whoever adds or sends notices holds the delivery lock of the history, so that nothing is told twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from history.store.schema import notices
from history.timestamps import from_text, to_text


class NoticeKind(StrEnum):
    """What a notice says of its subject."""

    NEW = "new"
    RETURNED = "returned"
    CONFIRMED = "confirmed"
    FIXED = "fixed"
    TROUBLE = "trouble"
    OVER = "over"
    """A trouble has ended; it goes to the routes of troubles."""

    DIGEST = "digest"
    NIGHT = "night"
    """What a night did, which is told in digests alone."""


@dataclass(frozen=True)
class Notice:
    """Something to tell."""

    subject: str
    kind: NoticeKind
    text: str
    """One line, but for a digest."""

    occasion: str = ""
    """What distinguishes it from another notice of this kind about the same subject."""


@dataclass(frozen=True)
class StoredNotice:
    """A notice of the history."""

    id: int
    notice: Notice
    happened_at: datetime
    waiting: tuple[str, ...]
    """The names of the routes that have still to get it."""


def add(connection: Connection, notice: Notice, routes: Iterable[str], when: datetime) -> None:
    """Add a notice, which waits for these routes."""
    last = select(func.max(notices.c.number)).where(notices.c.subject == notice.subject)
    row = {
        "subject": notice.subject,
        "number": 1 + (connection.execute(last).scalar() or 0),
        "kind": notice.kind,
        "occasion": notice.occasion,
        "text": notice.text,
        "happened_at": to_text(when),
        "waiting": " ".join(routes) or None,
    }
    connection.execute(insert(notices).values(row))


def load(connection: Connection) -> Sequence[StoredNotice]:
    """Return all notices, in the order in which they are sent."""
    return [_stored(row) for row in connection.execute(select(notices).order_by(notices.c.id)).mappings()]


def latest(connection: Connection) -> Mapping[str, Notice]:
    """Return what was told last of every subject."""
    return {stored.notice.subject: stored.notice for stored in load(connection)}


def waiting(connection: Connection) -> Sequence[StoredNotice]:
    """Return the notices that a route has still to get, in the order in which they are sent."""
    query = select(notices).where(notices.c.waiting.is_not(None)).order_by(notices.c.id)
    return [_stored(row) for row in connection.execute(query).mappings()]


def mark_sent(connection: Connection, sent: Iterable[StoredNotice], route: str) -> None:
    """Record that a route has got some notices."""
    for stored in sent:
        query = select(notices.c.waiting).where(notices.c.id == stored.id)
        left = [name for name in (connection.execute(query).scalar() or "").split() if name != route]
        values = {"waiting": " ".join(left) or None}
        connection.execute(update(notices).where(notices.c.id == stored.id).values(values))


def _stored(row: RowMapping) -> StoredNotice:
    notice = Notice(row["subject"], NoticeKind(row["kind"]), row["text"], row["occasion"])
    return StoredNotice(
        row["id"], notice, from_text(row["happened_at"]), tuple((row["waiting"] or "").split())
    )
