"""What people decided about changes: who acknowledged them, why and until when, and who withdrew that."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, func, insert, select, update

from history.errors import HistoryError
from history.store.records import ChangeStatus
from history.store.schema import acknowledgements, change_series, changes
from history.timestamps import from_text, to_text


class AcknowledgementKind(StrEnum):
    """What happened to the acknowledgement of a change."""

    ACKNOWLEDGED = "acknowledged"
    WITHDRAWN = "withdrawn"
    """By a person."""

    EXPIRED = "expired"
    """Its last day was over."""


@dataclass(frozen=True)
class Acknowledgement:
    """One decision about a change, or its end. Earlier ones are kept; the latest counts."""

    kind: AcknowledgementKind
    who: str
    """The person; empty if that is not known."""

    reason: str
    until: date | None
    """The last day, in UTC, for which it holds; None if it has no end."""

    happened_at: datetime

    def __str__(self) -> str:
        """Return such as `acknowledged by ann on 2026-11-25, until 2026-12-31: checksums are wanted`."""
        if self.kind is AcknowledgementKind.EXPIRED:
            return f"no longer acknowledged: {self.until} was the last day"
        is_withdrawn = self.kind is AcknowledgementKind.WITHDRAWN
        what = "no longer acknowledged: withdrawn" if is_withdrawn else "acknowledged"
        who = f" by {self.who}" if self.who else ""
        until = f", until {self.until}" if self.until else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{what}{who} on {self.happened_at:%Y-%m-%d}{until}{why}"

    def holds_at(self, moment: datetime) -> bool:
        """Return whether a change is acknowledged by it."""
        is_over = self.until is not None and moment.date() > self.until
        return self.kind is AcknowledgementKind.ACKNOWLEDGED and not is_over


def load_acknowledgements(
    connection: Connection, change_ids: Collection[int]
) -> Mapping[int, tuple[Acknowledgement, ...]]:
    """Return what was decided about some changes, by id, the latest last."""
    query = select(acknowledgements).where(acknowledgements.c.change_id.in_(change_ids))
    found: defaultdict[int, tuple[Acknowledgement, ...]] = defaultdict(tuple)
    for row in connection.execute(query.order_by(acknowledgements.c.happened_at)).mappings():
        event = Acknowledgement(
            AcknowledgementKind(row["kind"]),
            row["who"],
            row["reason"],
            date.fromisoformat(row["until"]) if row["until"] else None,
            from_text(row["happened_at"]),
        )
        found[row["change_id"]] = (*found[row["change_id"]], event)
    return found


def acknowledge(
    connection: Connection,
    fingerprint: str,
    reason: str,
    when: datetime,
    *,
    who: str = "",
    until: date | None = None,
) -> None:
    """Acknowledge a change, whatever its series do, until the end of a day if there is one.

    Raises HistoryError if there is no such change, or the day is over.
    """
    if until is not None and when.date() > until:
        raise HistoryError(f"{until} is over", hint="give the last day for which it is to be acknowledged")
    change_id, _ = _found(connection, fingerprint)
    event = Acknowledgement(AcknowledgementKind.ACKNOWLEDGED, who, reason, until, when)
    _record(connection, change_id, event, ChangeStatus.ACKNOWLEDGED)


def withdraw(connection: Connection, fingerprint: str, reason: str, when: datetime, *, who: str = "") -> None:
    """Withdraw what acknowledged a change: it is open again, unless its series are all back.

    Raises HistoryError if there is no such change, or it is not acknowledged.
    """
    change_id, status = _found(connection, fingerprint)
    if status is not ChangeStatus.ACKNOWLEDGED:
        raise HistoryError(
            f"change {fingerprint} is {status}, and not acknowledged",
            hint="./tidemark history changes --status acknowledged lists those that are",
        )
    event = Acknowledgement(AcknowledgementKind.WITHDRAWN, who, reason, None, when)
    _record(connection, change_id, event, _status_without(connection, change_id))


def settle(connection: Connection, when: datetime) -> None:
    """Give every change the status that the latest decision about it means at this time.

    One that has expired is recorded as that. Decisions that a merge brought from another history count too.
    """
    rows = connection.execute(select(changes.c.id, changes.c.status)).all()
    decided = load_acknowledgements(connection, [row.id for row in rows])
    for row in rows:
        latest = decided[row.id][-1] if row.id in decided else None
        if latest is None:  # an export of an older Tidemark has no decisions
            continue
        is_acknowledged = row.status == ChangeStatus.ACKNOWLEDGED
        if latest.holds_at(when):
            if not is_acknowledged:
                _set_status(connection, row.id, ChangeStatus.ACKNOWLEDGED, latest.reason, when)
        elif latest.kind is AcknowledgementKind.ACKNOWLEDGED:
            over = Acknowledgement(AcknowledgementKind.EXPIRED, latest.who, "", latest.until, when)
            _record(connection, row.id, over, _status_without(connection, row.id))
        elif is_acknowledged:
            _set_status(connection, row.id, _status_without(connection, row.id), None, when)


def withdrawn_changes(connection: Connection) -> set[str]:
    """Return the fingerprints of the changes that were acknowledged once and are not any more."""
    names = {
        row.id: row.fingerprint for row in connection.execute(select(changes.c.id, changes.c.fingerprint))
    }
    decided = load_acknowledgements(connection, names)
    acknowledged = AcknowledgementKind.ACKNOWLEDGED
    return {names[change_id] for change_id, events in decided.items() if events[-1].kind is not acknowledged}


def _found(connection: Connection, fingerprint: str) -> tuple[int, ChangeStatus]:
    query = select(changes.c.id, changes.c.status).where(changes.c.fingerprint == fingerprint)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise HistoryError(f"there is no change {fingerprint}", hint="./tidemark history changes lists them")
    return row.id, ChangeStatus(row.status)


def _record(connection: Connection, change_id: int, event: Acknowledgement, status: ChangeStatus) -> None:
    earlier = load_acknowledgements(connection, [change_id]).get(change_id)
    if earlier:  # a clock that was set back must not put a decision before the one that it follows
        happened_at = max(event.happened_at, earlier[-1].happened_at + timedelta(milliseconds=1))
        event = replace(event, happened_at=happened_at)
    row = {
        "change_id": change_id,
        "happened_at": to_text(event.happened_at),
        "kind": event.kind,
        "who": event.who,
        "reason": event.reason,
        "until": event.until and event.until.isoformat(),
    }
    connection.execute(insert(acknowledgements).values(row))
    reason = event.reason if status is ChangeStatus.ACKNOWLEDGED else None
    _set_status(connection, change_id, status, reason, event.happened_at)


def _set_status(
    connection: Connection, change_id: int, status: ChangeStatus, reason: str | None, when: datetime
) -> None:
    values = {"status": status, "reason": reason, "updated_at": to_text(when)}
    connection.execute(update(changes).where(changes.c.id == change_id).values(values))


def _status_without(connection: Connection, change_id: int) -> ChangeStatus:
    """The status of a change that is not acknowledged. The judge finds what explains it, and since when."""
    lasting = select(func.count()).where(
        change_series.c.change_id == change_id, change_series.c.gone_id.is_(None)
    )
    return ChangeStatus.OPEN if connection.execute(lasting).scalar_one() else ChangeStatus.CLOSED
