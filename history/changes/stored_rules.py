"""What the history keeps of a plan's rules: the owners of changes, and which are or were muted.

Reports of nights write it, because they have the plan; whoever shows a change reads it without one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, delete, insert, select, update

from history.store.schema import change_owners, mutings
from history.timestamps import from_text, to_text


@dataclass(frozen=True)
class Owner:
    """An account or a team whose change it is, by a rule of the plan."""

    account: str
    """Without the @."""

    is_assignee: bool
    rule: str
    """The conditions of the rule."""


@dataclass(frozen=True)
class Muting:
    """That a rule of the plan mutes a change, or did so last."""

    rule: str
    """The conditions of the rule."""

    reason: str
    until: date
    """The last day, in UTC, for which it holds."""

    muted_at: datetime
    ended_at: datetime | None = None
    """When a report found that it is over; None while it is not."""

    ended_why: str = ""
    is_outgrown: bool = False
    """Whether it ended because the change grew or spread beyond the rule."""

    @property
    def is_in_force(self) -> bool:
        """Whether the last report found the change muted."""
        return self.ended_at is None

    def __str__(self) -> str:
        """Return such as `muted until 2026-12-31 by the plan (suites tpcc): the new allocator costs this`."""
        if self.ended_at is not None:
            return f"no longer muted since {self.ended_at:%Y-%m-%d}: {self.ended_why}"
        return f"muted until {self.until} by the plan ({self.rule}): {self.reason}"


def load_owners(connection: Connection, change_ids: Collection[int]) -> Mapping[int, tuple[Owner, ...]]:
    """Return the owners of some changes, by id."""
    query = select(change_owners).where(change_owners.c.change_id.in_(change_ids))
    found: defaultdict[int, tuple[Owner, ...]] = defaultdict(tuple)
    for row in connection.execute(query.order_by(change_owners.c.place)).mappings():
        owner = Owner(row["account"], bool(row["is_assignee"]), row["rule"])
        found[row["change_id"]] = (*found[row["change_id"]], owner)
    return found


def set_owners(connection: Connection, change_id: int, owners: Sequence[Owner]) -> None:
    """Set the owners of a change, instead of those that it has."""
    connection.execute(delete(change_owners).where(change_owners.c.change_id == change_id))
    rows = [
        {
            "change_id": change_id,
            "place": place,
            "account": owner.account,
            "is_assignee": int(owner.is_assignee),
            "rule": owner.rule,
        }
        for place, owner in enumerate(owners, start=1)
    ]
    if rows:
        connection.execute(insert(change_owners), rows)


def load_mutings(connection: Connection, change_ids: Collection[int]) -> Mapping[int, Muting]:
    """Return by which rule changes are muted, or were last, by id."""
    query = select(mutings).where(mutings.c.change_id.in_(change_ids))
    return {
        row["change_id"]: Muting(
            row["rule"],
            row["reason"],
            date.fromisoformat(row["until"]),
            from_text(row["muted_at"]),
            row["ended_at"] and from_text(row["ended_at"]),
            row["ended_why"] or "",
            bool(row["is_outgrown"]),
        )
        for row in connection.execute(query).mappings()
    }


def set_muting(connection: Connection, change_id: int, muting: Muting) -> None:
    """Set by which rule a change is muted, instead of the one before."""
    connection.execute(delete(mutings).where(mutings.c.change_id == change_id))
    row = {
        "change_id": change_id,
        "rule": muting.rule,
        "reason": muting.reason,
        "until": muting.until.isoformat(),
        "muted_at": to_text(muting.muted_at),
    }
    connection.execute(insert(mutings).values(row))


def end_muting(
    connection: Connection, change_id: int, why: str, when: datetime, *, is_outgrown: bool
) -> None:
    """Record that a change is not muted any more, why, and whether it outgrew its rule."""
    values = {"ended_at": to_text(when), "ended_why": why, "is_outgrown": int(is_outgrown)}
    connection.execute(update(mutings).where(mutings.c.change_id == change_id).values(values))
