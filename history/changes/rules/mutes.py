"""Mutes of a plan: changes that are detected and stored as others are, of which nobody is told for a while.

The judge knows nothing of them. A report applies them to what it found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase

from sqlalchemy import Connection, delete, insert, select, update

from history.changes import repository
from history.changes.level_shift import Direction
from history.changes.repository import Change, Member
from history.changes.stored_rules import Muting, end_muting, set_muting
from history.metric_words import label_of
from history.store.records import ChangeStatus
from history.store.schema import mutes as table
from history.timestamps import from_text, to_text

IDLE_DAYS = 90
"""After how many days without a change that it mutes a person is told of a mute."""


@dataclass(frozen=True)
class Mute:
    """A mute of a plan. What is empty matches everything."""

    reason: str
    until: date
    """The last day, in UTC, for which it holds."""

    suites: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    """By their host names."""

    branches: tuple[str, ...] = ()
    """As the history names them, such as `postgres@master`; `*` matches any characters."""

    direction: Direction | None = None
    below_percent: float | None = None
    """The size in percent, 0 excluded, from which on a series is not muted; None for any size."""

    def __str__(self) -> str:
        """Return its conditions, by which it is known: `suites tpcc; metrics qps; below 3 %`."""
        return "; ".join(self._conditions())

    def _conditions(self) -> Iterator[str]:
        for name in ("suites", "steps", "metrics", "boxes", "branches"):
            values = getattr(self, name)
            if values:
                yield f"{name} {', '.join(values)}"
        if self.direction is not None:
            yield f"direction {self.direction}"
        if self.below_percent is not None:
            yield f"below {self.below_percent:g} %"

    def holds_at(self, moment: datetime) -> bool:
        """Return whether its last day is not over."""
        return moment.date() <= self.until

    def matches(self, change: Change) -> bool:
        """Return whether it mutes a change: it covers every lasting series that the change is told by."""
        lasting = [member for member in change.leading if member.gone is None]
        return bool(lasting) and all(self.covers(change, member) for member in lasting)

    def covers(self, change: Change, member: Member, *, of_any_size: bool = False) -> bool:
        """Return whether it matches a series of a change."""
        key = member.key
        asked = (
            (self.suites, change.suite),
            (self.steps, key.step),
            (self.metrics, key.metric),
            (self.boxes, key.environment.box),
        )
        return (
            all(not wanted or value in wanted for wanted, value in asked)
            and (not self.branches or any(fnmatchcase(change.branch, branch) for branch in self.branches))
            and self.direction in (None, member.direction)
            and (of_any_size or self.below_percent is None or size_of(member) < self.below_percent)
        )


def size_of(member: Member) -> float:
    """Return by how many percent the level of a series changed, whatever the direction."""
    return 100 * abs(member.ratio - 1)


@dataclass(frozen=True)
class MutedChanges:
    """What became of changes by the mutes of a plan."""

    muted: frozenset[int]
    """The ids of changes that are muted now."""

    returned: frozenset[int]
    """Those of open changes that were muted before and are not any more: new ones, to whoever is told."""

    notices: tuple[str, ...]
    """What is to be told of mutes that ended, and of such as match nothing; each once."""


def apply_mutes(connection: Connection, mutes: Sequence[Mute], when: datetime) -> MutedChanges:
    """Mute the open changes that a rule matches, of several the first, and end what no rule mutes any more.

    The same again at the same time changes nothing.
    """
    muted, returned, used = set[int](), set[int](), set[str]()
    for change in repository.load(connection):
        before = change.muting if change.is_muted else None
        is_open = change.status is ChangeStatus.OPEN
        rule = _rule_for(change, mutes, when) if is_open else None
        if rule is not None:
            now = Muting(str(rule), rule.reason, rule.until, when if before is None else before.muted_at)
            if now != before:
                set_muting(connection, change.id, now)
            muted.add(change.id)
            used.add(str(rule))
        elif before is not None:
            why, is_outgrown = _why_over(before, mutes, change, when)
            end_muting(connection, change.id, why, when, is_outgrown=is_outgrown)
            if is_open:
                returned.add(change.id)
    notices = tuple(_told(connection, mutes, used, when))
    return MutedChanges(frozenset(muted), frozenset(returned), notices)


def _rule_for(change: Change, mutes: Sequence[Mute], when: datetime) -> Mute | None:
    """Return the first rule that mutes an open change.

    One that it has outgrown does not do so again, although the size that later nights show goes up and down:
    people would be told of the change each time.
    """
    last = change.muting
    is_outgrown = (
        last is not None
        and last.ended_at is not None
        and last.is_outgrown
        and last.ended_at >= change.updated_at
    )
    outgrown = last.rule if last is not None and is_outgrown else None
    matching = (mute for mute in mutes if mute.holds_at(when) and mute.matches(change))
    return next((mute for mute in matching if str(mute) != outgrown), None)


def _why_over(muting: Muting, mutes: Sequence[Mute], change: Change, when: datetime) -> tuple[str, bool]:
    """Return why a change is not muted any more, and whether it outgrew its rule."""
    if change.status is not ChangeStatus.OPEN:
        return f"it is {change.status}", False
    rule = next((mute for mute in mutes if str(mute) == muting.rule), None)
    if rule is None:
        return "the plan does not have its mute any more", False
    if not rule.holds_at(when):
        return f"{rule.until} was the last day of its mute", False
    lasting = [member for member in change.leading if member.gone is None]
    if rule.below_percent is not None and all(
        rule.covers(change, member, of_any_size=True) for member in lasting
    ):
        largest = max(lasting, key=size_of)
        what = f"{largest.key.step} {label_of(largest.key.metric)} changed by {size_of(largest):.1f} %"
        return f"{what}, and its mute is of less than {rule.below_percent:g} %", True
    return "it shows in series that its mute is not of", True


# --- what is told of the rules themselves


def read_notices(connection: Connection, mutes: Sequence[Mute], when: datetime) -> Iterator[str]:
    """Yield what is to be said of mutes that ended or match nothing, as the last report left them."""
    rows = {row["rule"]: row for row in connection.execute(select(table)).mappings()}
    for mute in mutes:
        row = rows.get(str(mute))
        idle_since = when if row is None else from_text(row["matched_at"] or row["since"])
        notice = _notice(mute, idle_since, when)
        if notice:
            yield notice


def _told(connection: Connection, mutes: Sequence[Mute], used: set[str], when: datetime) -> Iterator[str]:
    """Record which mutes there are and which matched a change; yield what has not been told of them."""
    rows = {row["rule"]: row for row in connection.execute(select(table)).mappings()}
    for gone in rows.keys() - {str(mute) for mute in mutes}:
        connection.execute(delete(table).where(table.c.rule == gone))
    for mute in mutes:
        name, until = str(mute), mute.until.isoformat()
        row = rows.get(name)
        if row is None:
            new = {"rule": name, "until": until, "since": to_text(when)}
            connection.execute(insert(table).values(new))
        since = when if row is None else from_text(row["since"])
        matched = when if name in used else row and row["matched_at"] and from_text(row["matched_at"])
        told = row["told_at"] if row is not None and name not in used and row["until"] == until else None
        notice = _notice(mute, matched or since, when)
        has_ended = not mute.holds_at(when)
        is_told = told is not None and (not has_ended or from_text(told).date() > mute.until)
        if notice and not is_told:
            yield notice
            told = to_text(when)
        values = {"until": until, "matched_at": matched and to_text(matched), "told_at": told}
        connection.execute(update(table).where(table.c.rule == name).values(values))


def _notice(mute: Mute, idle_since: datetime, when: datetime) -> str:
    """Return what is wrong with a mute; empty if nothing is."""
    what = f"the mute of {mute} ({mute.reason})"
    if not mute.holds_at(when):
        return f"{what} ended: {mute.until} was its last day; take it out of the plan, or give it another one"
    if when - idle_since >= timedelta(days=IDLE_DAYS):
        days = (when - idle_since).days
        return f"{what} has matched no change for {days} days: take it out of the plan, or correct it"
    return ""
