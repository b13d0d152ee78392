"""Bisects in the history: a question, the commits between good and bad, and a log of events.

Question, span and details are defined by runners.bisect; here they are opaque JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from history.errors import HistoryError, stored_object
from history.store.records import Machine
from history.store.schema import bisect_events, bisects, machines
from history.store.session_reads import machine_of
from history.store.session_writes import intern, json_text, machine_row
from history.timestamps import from_text, to_text

GOES_ON = "goes_on"
"""The key in the detail of a verdict after which the search goes on with the rest of the range."""


class EventKind(StrEnum):
    """The kind of an event in the log of a bisect."""

    SESSION = "session"
    """A session began, whose finished rounds are observations."""

    BUILT = "built"
    """Positions were compiled and are in the build cache."""

    EXCLUDED = "excluded"
    """A position does not compile or start."""

    VERDICT = "verdict"
    PROFILED = "profiled"
    """A session began that records CPU profiles of the culprit and of its predecessor."""


@dataclass(frozen=True)
class BisectEvent:
    """One entry of a bisect's log."""

    number: int
    """The position in the log, from 1."""

    kind: EventKind
    session: str | None
    """The uid of the session that it belongs to, if any."""

    detail: Mapping[str, Any]
    happened_at: datetime


@dataclass(frozen=True)
class Bisect:
    """A bisect with its log so far."""

    id: int
    uid: str
    machine: Machine
    question: Mapping[str, Any]
    span: Mapping[str, Any]
    change: str | None
    """The fingerprint of the change that it looks for; None when it was started without one."""

    began_at: datetime
    events: tuple[BisectEvent, ...]

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The detail of the last verdict; None while there is none."""
        verdicts = [event.detail for event in self.events if event.kind is EventKind.VERDICT]
        return verdicts[-1] if verdicts else None

    @property
    def is_open(self) -> bool:
        """Whether there is no verdict yet, or the search goes on after the last one."""
        return self.verdict is None or bool(self.verdict.get(GOES_ON))

    @property
    def sessions(self) -> tuple[str, ...]:
        """The uids of the sessions with its observations, in order."""
        return tuple(
            event.session for event in self.events if event.kind is EventKind.SESSION and event.session
        )


def begin(
    connection: Connection,
    uid: str,
    machine: Machine,
    question: Mapping[str, Any],
    span: Mapping[str, Any],
    change: str | None,
    when: datetime,
) -> Bisect:
    """Insert a bisect without events, and return it."""
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


def replace_span(connection: Connection, bisect: Bisect, span: Mapping[str, Any]) -> None:
    """Store the range of a bisect anew, such as without what nobody reads any more."""
    changed = update(bisects).where(bisects.c.id == bisect.id)
    connection.execute(changed.values(span=json_text(span)))


def append(
    connection: Connection,
    bisect: Bisect,
    kind: EventKind,
    detail: Mapping[str, Any],
    when: datetime,
    session: str | None = None,
) -> None:
    """Append an event to the log."""
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
    """Return the bisect with this uid. Raises HistoryError when there is none."""
    row = connection.execute(select(bisects).where(bisects.c.uid == uid)).mappings().first()
    if row is None:
        raise HistoryError(f"there is no bisect {uid}", hint="./tidemark bisect status lists them")
    return _bisect(connection, row)


def load_all(connection: Connection) -> Iterator[Bisect]:
    """Iterate over all bisects, latest first."""
    query = select(bisects).order_by(bisects.c.began_at.desc(), bisects.c.id.desc())
    for row in connection.execute(query).mappings().all():
        yield _bisect(connection, row)


def of_change(connection: Connection, fingerprint: str) -> Sequence[Bisect]:
    """Return the bisects that looked for a change and have a verdict, latest first."""
    query = select(bisects).where(bisects.c.change_fingerprint == fingerprint)
    rows = connection.execute(query.order_by(bisects.c.began_at.desc(), bisects.c.id.desc())).mappings()
    candidates = [_bisect(connection, row) for row in rows.all()]
    return [bisect for bisect in candidates if bisect.verdict is not None]


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
