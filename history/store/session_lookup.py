"""Which session is compared: the latest that holds all that is named, by version or by branch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, exists, or_, select

from build.version import Version, parse_version
from history.store.records import SessionStatus
from history.store.schema import bisect_events, confirmations, machines, nights, runs, sessions

IS_NO_BISECT = ~exists().where(bisect_events.c.session_uid == sessions.c.uid)
"""Whether a row of sessions belongs to no bisect."""


@dataclass(frozen=True)
class Name:
    """A version, or a branch that stands for its version of the night."""

    version: Version
    is_branch: bool = False

    def __str__(self) -> str:
        return str(self.version)

    def matches(self, night: FromClause) -> ColumnElement[bool]:
        """Whether a row of `nights`, or of an alias of it, has this name."""
        return (night.c.branch if self.is_branch else night.c.version) == str(self)


@dataclass(frozen=True)
class SessionFilter:
    """Which sessions count; None leaves a choice open."""

    suite: str | None = None
    profile: str | None = None
    uid: str | None = None
    box: str | None = None

    def __str__(self) -> str:
        said = {"suite": self.suite, "profile": self.profile, "session": self.uid, "machine": self.box}
        return "".join(f", {name} {value}" for name, value in said.items() if value)


def named(connection: Connection, version: Version) -> Name:
    """What a name of the command line means: a version if any session has it, else a branch if any has."""

    def any_has(column: ColumnElement[str]) -> bool:
        return connection.execute(select(column).where(column == str(version)).limit(1)).first() is not None

    if any_has(runs.c.version) or any_has(nights.c.version):
        return Name(version)
    return Name(version, is_branch=any_has(nights.c.branch))


def latest(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    """The session started last that holds all names: its id, and the versions that they stand for there."""
    found = [*_underived(connection, names, limits), *(_ended(connection, names, limits) if names else ())]
    # What a bisect measured was measured for its question: it serves where nothing else does.
    found = found or [*_by_runs(connection, names, limits)]
    if not found:
        return None
    _, session_id, *versions = max(map(tuple, found))
    return session_id, tuple(map(parse_version, versions)) or tuple(each.version for each in names)


def _ended(connection: Connection, names: Sequence[Name], limits: SessionFilter) -> Sequence[Sequence[Any]]:
    """The latest session that has nights of all names, which are found by version or branch."""
    its_nights = [nights.alias(f"night_{number}") for number in range(len(names))]
    last = its_nights[-1]  # the contender, which there are fewer sessions of than of the base
    conditions = [name.matches(night) for name, night in zip(names, its_nights, strict=True)]
    conditions += [night.c.build_id.is_not(None) for night in its_nights]
    conditions += [night.c.session_id == last.c.session_id for night in its_nights[:-1]]
    conditions += [one.c.branch != other.c.branch for one, other in combinations(its_nights, 2)]
    if limits.box is not None:
        conditions.append(last.c.box == limits.box)
    if limits.suite is not None:
        conditions.append(last.c.suite == limits.suite)
    its_session = exists().where(sessions.c.id == last.c.session_id)
    if limits.profile is not None:
        conditions.append(its_session.where(sessions.c.profile == limits.profile))
    if limits.uid is not None:
        conditions.append(its_session.where(sessions.c.uid == limits.uid))
    query = (
        select(last.c.started_at, last.c.session_id, *(night.c.version for night in its_nights))
        .where(*conditions)
        .order_by(last.c.started_at.desc(), last.c.session_id.desc())
    )
    return connection.execute(query.limit(1)).all()


def _underived(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> Sequence[Sequence[Any]]:
    """The latest session that has no night: it runs, or confirms, so that only versions are known.

    Without names, the latest of all sessions.
    """
    confirms = sessions.c.id.in_(select(confirmations.c.session_id))
    has_no_night = or_(sessions.c.status == SessionStatus.RUNNING, confirms)
    return _by_runs(connection, names, limits, IS_NO_BISECT, *([has_no_night] if names else []))


def _by_runs(
    connection: Connection, names: Sequence[Name], limits: SessionFilter, *conditions: ColumnElement[bool]
) -> Sequence[Sequence[Any]]:
    """The latest session that fulfils all conditions and has runs of all names, which are versions."""
    its_runs = exists().where(runs.c.session_id == sessions.c.id)
    every = [*conditions, *(its_runs.where(runs.c.version == str(name)) for name in names)]
    if limits.box is not None:
        its_machine = exists().where(machines.c.id == sessions.c.machine_id)
        every.append(its_machine.where(machines.c.hostname == limits.box))
    given = {"suite": limits.suite, "profile": limits.profile, "uid": limits.uid}
    every += [sessions.c[name] == value for name, value in given.items() if value is not None]
    query = (
        select(sessions.c.started_at, sessions.c.id)
        .where(*every)
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
    )
    return connection.execute(query.limit(1)).all()
