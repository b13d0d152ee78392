"""Lookup of the session to compare: the latest one with all given versions or branches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, and_, exists, func, or_, select

from build.version import Version, parse_version
from history.errors import stored_version
from history.store.records import SessionStatus
from history.store.schema import (
    bisect_events,
    confirmations,
    counted_profiles,
    machines,
    nights,
    profiles,
    runs,
    sessions,
)

IS_NO_BISECT = ~exists().where(bisect_events.c.session_uid == sessions.c.uid)
"""The condition that a row of `sessions` belongs to no bisect."""


WHOLE = (SessionStatus.FINISHED, SessionStatus.RUNNING)
"""The sessions in which nothing is missing, or will be; a running one is what whoever began it asks for."""


@dataclass(frozen=True)
class Name:
    """A version, or a branch, which stands for its version of the night."""

    version: Version
    is_branch: bool = False

    def __str__(self) -> str:
        return str(self.version)

    def matches(self, night: FromClause) -> ColumnElement[bool]:
        """Return whether a row of `nights`, or of an alias of it, has this name."""
        return (night.c.branch if self.is_branch else night.c.version) == str(self)


@dataclass(frozen=True)
class SessionFilter:
    """Limits on the sessions to consider; None means any, and so does no step."""

    suite: str | None = None
    profile: str | None = None
    uid: str | None = None
    box: str | None = None
    statuses: Sequence[SessionStatus] | None = None
    steps: Sequence[str] = ()
    """Steps that all names have; where no session has them, they are no limit."""
    is_profiled: bool = False
    """Whether they need a CPU profile of these steps, sampled or counted; likewise."""

    def __str__(self) -> str:
        limits = {"suite": self.suite, "profile": self.profile, "session": self.uid, "machine": self.box}
        return "".join(f", {name} {value}" for name, value in limits.items() if value)


def resolve_name(connection: Connection, version: Version) -> Name:
    """Return what a name given by the user means: a version if any session has it, else a branch.

    The name of an install prefix is a branch as well; before its first session ends, it is the last version
    that was measured under the name.
    """

    def exists_in(column: ColumnElement[str]) -> bool:
        return connection.execute(select(column).where(column == str(version)).limit(1)).first() is not None

    if exists_in(runs.c.version) or exists_in(nights.c.version):
        return Name(version)
    if exists_in(nights.c.branch):
        return Name(version, is_branch=True)
    return Name(_running_install(connection, version) or version)


def _running_install(connection: Connection, named: Version) -> Version | None:
    column, start = runs.c.version, f"{named.engine}@{named.ref}="
    # The range, which ends after all hexadecimal digits, is read from an index; a prefix alone is not.
    alike = and_(column.between(start, f"{start}g"), column.startswith(start, autoescape=True))
    found = connection.execute(
        select(column).where(alike).group_by(column).order_by(func.max(runs.c.id).desc())
    )
    versions = (stored_version(text) for text in found.scalars())
    return next((version for version in versions if version.variant == named.variant), None)


def latest(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    """Return the id of the latest session with all names, and their versions in it; None without any.

    One without the steps counts only when there is no other. The same holds for one that failed or was
    interrupted, and after these for one of a bisect.
    """
    if limits.steps and (match := _whole_first(connection, names, limits)):
        return match
    return _whole_first(connection, names, replace(limits, steps=()))


def _whole_first(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    by_name = bool(names) and limits.uid is None
    whole = _latest(connection, names, replace(limits, statuses=WHOLE)) if by_name else None
    return whole or latest_of_any_status(connection, names, limits)


def latest_of_any_status(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    """Return what `latest` does, but also a session that failed or was interrupted if it is the latest."""
    # A bisect measures for its own question, so that its sessions are only the last resort.
    return _latest(connection, names, limits) or _named(names, _by_runs(connection, names, limits))


def _latest(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> tuple[int, tuple[Version, ...]] | None:
    matches = [*_underived(connection, names, limits), *(_ended(connection, names, limits) if names else ())]
    return _named(names, matches)


def _named(names: Sequence[Name], matches: Sequence[Sequence[Any]]) -> tuple[int, tuple[Version, ...]] | None:
    """Return the latest match: its session, and the versions of all names in it."""
    if not matches:
        return None
    _, session_id, *versions = max(map(tuple, matches))
    return session_id, tuple(map(parse_version, versions)) or tuple(name.version for name in names)


def _ended(connection: Connection, names: Sequence[Name], limits: SessionFilter) -> Sequence[Sequence[Any]]:
    """Return the latest session with nights of all names, which are looked up by version or branch."""
    aliases = [nights.alias(f"night_{number}") for number in range(len(names))]
    last = aliases[-1]  # the contender, which has fewer sessions than the base
    conditions = [name.matches(night) for name, night in zip(names, aliases, strict=True)]
    conditions += [night.c.build_id.is_not(None) for night in aliases]
    conditions += [night.c.session_id == last.c.session_id for night in aliases[:-1]]
    conditions += [combination.c.branch != other.c.branch for combination, other in combinations(aliases, 2)]
    if limits.box is not None:
        conditions.append(last.c.box == limits.box)
    if limits.suite is not None:
        conditions.append(last.c.suite == limits.suite)
    in_session = exists().where(sessions.c.id == last.c.session_id)
    if limits.profile is not None:
        conditions.append(in_session.where(sessions.c.profile == limits.profile))
    if limits.uid is not None:
        conditions.append(in_session.where(sessions.c.uid == limits.uid))
    if limits.statuses is not None:
        conditions.append(in_session.where(sessions.c.status.in_(limits.statuses)))
    conditions += [
        _has_step(step, night.c.session_id, night.c.version, limits)
        for step in limits.steps
        for night in aliases
    ]
    query = (
        select(last.c.started_at, last.c.session_id, *(night.c.version for night in aliases))
        .where(*conditions)
        .order_by(last.c.started_at.desc(), last.c.session_id.desc())
    )
    return connection.execute(query.limit(1)).all()


def _underived(
    connection: Connection, names: Sequence[Name], limits: SessionFilter
) -> Sequence[Sequence[Any]]:
    """Return the latest session that has no night because it is running or confirming; it has no branches.

    Without names, return the latest of all sessions.
    """
    confirms = sessions.c.id.in_(select(confirmations.c.session_id))
    has_no_night = or_(sessions.c.status == SessionStatus.RUNNING, confirms)
    return _by_runs(connection, names, limits, IS_NO_BISECT, *([has_no_night] if names else []))


def _by_runs(
    connection: Connection, names: Sequence[Name], limits: SessionFilter, *conditions: ColumnElement[bool]
) -> Sequence[Sequence[Any]]:
    """Return the latest session that meets all conditions and has runs of all names, as versions."""
    has_run = exists().where(runs.c.session_id == sessions.c.id)
    criteria = [*conditions, *(has_run.where(runs.c.version == str(name)) for name in names)]
    if limits.box is not None:
        on_machine = exists().where(machines.c.id == sessions.c.machine_id)
        criteria.append(on_machine.where(machines.c.hostname == limits.box))
    if limits.statuses is not None:
        criteria.append(sessions.c.status.in_(limits.statuses))
    criteria += [_has_step(step, sessions.c.id, str(name), limits) for step in limits.steps for name in names]
    given = {"suite": limits.suite, "profile": limits.profile, "uid": limits.uid}
    criteria += [sessions.c[name] == value for name, value in given.items() if value is not None]
    query = (
        select(sessions.c.started_at, sessions.c.id)
        .where(*criteria)
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
    )
    return connection.execute(query.limit(1)).all()


def _has_step(
    step: str, session_id: ColumnElement[int], version: ColumnElement[str] | str, limits: SessionFilter
) -> ColumnElement[bool]:
    """Return whether a version has a run of a step in a session, and a profile if that is wanted."""
    found = exists().where(runs.c.session_id == session_id, runs.c.version == version, runs.c.step == step)
    if not limits.is_profiled:
        return found
    return found.where(
        or_(*(exists().where(table.c.run_id == runs.c.id) for table in (profiles, counted_profiles)))
    )
