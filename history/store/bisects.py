"""Bisects as the history keeps them: a question, the points between good and bad, and a log of events.

What is in question, span and details is the business of who searches (runners.bisect); here they are JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select

from history.errors import HistoryError, stored_object
from history.store.records import Machine
from history.store.schema import bisect_events, bisects, machines
from history.store.session_reads import machine_of
from history.store.session_writes import intern, json_text, machine_row
from history.timestamps import from_text, to_text


class EventKind(StrEnum):
    """What happened."""

    SESSION = "session"
    """A session began; its finished rounds are observations."""

    BUILT = "built"
    """Positions are in the build cache."""

    EXCLUDED = "excluded"
    """A position does not compile or start."""

    VERDICT = "verdict"
    PROFILED = "profiled"
    """A session with CPU profiles of the culprit and of what comes before it began."""


@dataclass(frozen=True)
class BisectEvent:
    """One line of a bisect's log."""

    number: int
    """From 1."""

    kind: EventKind
    session: str | None
    """The uid of the session that it belongs to."""

    detail: Mapping[str, Any]
    happened_at: datetime


@dataclass(frozen=True)
class Bisect:
    """A bisect with its log as it is now."""

    id: int
    uid: str
    machine: Machine
    question: Mapping[str, Any]
    span: Mapping[str, Any]
    change: str | None
    """The fingerprint of the change that it looks for."""

    began_at: datetime
    events: tuple[BisectEvent, ...]

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The detail of its last verdict; None while there is none."""
        found = [each.detail for each in self.events if each.kind is EventKind.VERDICT]
        return found[-1] if found else None

    @property
    def sessions(self) -> tuple[str, ...]:
        """The uids of the sessions that hold its observations, in order."""
        return tuple(each.session for each in self.events if each.kind is EventKind.SESSION and each.session)


def begin(
    connection: Connection,
    uid: str,
    machine: Machine,
    question: Mapping[str, Any],
    span: Mapping[str, Any],
    change: str | None,
    when: datetime,
) -> Bisect:
    """Write a new bisect, without events."""
    row = {
        "uid": uid,
        "machine_id": intern(connection, machines, "fingerprint", machine_row(machine)),
        "question": json_text(question),
        "span": json_text(span),
        "change_fingerprint": change,
        "began_at": to_text(when),
    }
    connection.execute(insert(bisects).values(row))
    return load(connection, uid)


def append(
    connection: Connection,
    bisect: Bisect,
    kind: EventKind,
    detail: Mapping[str, Any],
    when: datetime,
    session: str | None = None,
) -> None:
    """Add an event to the end of the log."""
    last = select(func.max(bisect_events.c.number)).where(bisect_events.c.bisect_id == bisect.id)
    row = {
        "bisect_id": bisect.id,
        "number": (connection.execute(last).scalar() or 0) + 1,
        "kind": kind,
        "session_uid": session,
        "detail": json_text(detail),
        "happened_at": to_text(when),
    }
    connection.execute(insert(bisect_events).values(row))


def load(connection: Connection, uid: str) -> Bisect:
    """One bisect. Raises HistoryError when there is none of this uid."""
    row = connection.execute(select(bisects).where(bisects.c.uid == uid)).mappings().first()
    if row is None:
        raise HistoryError(f"there is no bisect {uid}", hint="./tidemark bisect status lists them")
    return _bisect(connection, row)


def load_all(connection: Connection) -> Iterator[Bisect]:
    """All bisects, the latest first."""
    query = select(bisects).order_by(bisects.c.began_at.desc(), bisects.c.id.desc())
    for row in connection.execute(query).mappings().all():
        yield _bisect(connection, row)


def of_change(connection: Connection, fingerprint: str) -> Sequence[Bisect]:
    """The bisects that look for a change and have a verdict, the latest first."""
    query = select(bisects).where(bisects.c.change_fingerprint == fingerprint)
    rows = connection.execute(query.order_by(bisects.c.began_at.desc(), bisects.c.id.desc())).mappings()
    found = [_bisect(connection, row) for row in rows.all()]
    return [each for each in found if each.verdict is not None]


def _bisect(connection: Connection, row: RowMapping) -> Bisect:
    query = select(bisect_events).where(bisect_events.c.bisect_id == row["id"])
    events = connection.execute(query.order_by(bisect_events.c.number)).mappings()
    return Bisect(
        id=row["id"],
        uid=row["uid"],
        machine=machine_of(connection, row["machine_id"]),
        question=stored_object(row["question"]),
        span=stored_object(row["span"]),
        change=row["change_fingerprint"],
        began_at=from_text(row["began_at"]),
        events=tuple(map(_event, events)),
    )


def _event(row: RowMapping) -> BisectEvent:
    return BisectEvent(
        row["number"],
        EventKind(row["kind"]),
        row["session_uid"],
        stored_object(row["detail"]),
        from_text(row["happened_at"]),
    )
