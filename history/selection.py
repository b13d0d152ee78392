"""Which session is compared: the latest that holds all that is named, by version or by branch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, exists, or_, select

from build.version import Version, parse_version
from history.records import SessionStatus
from history.schema import bisect_events, confirmations, machines, nights, runs, sessions


@dataclass(frozen=True)
class Name:
    """A version, or a branch that stands for its version of the night."""

    version: Version
    is_branch: bool = False

    def __str__(self) -> str:
        return str(self.version)

    def matches(self, night: FromClause) -> ColumnElement[bool]:
        """Whether a row of nights is of this name."""
        return (night.c.branch if self.is_branch else night.c.version) == str(self)


@dataclass(frozen=True)
class Limits:
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
    name = str(version)
    of_run = select(runs.c.session_id).where(runs.c.version == name).limit(1)
    of_night = select(nights.c.session_id).where(nights.c.version == name).limit(1)
    if any(connection.execute(query).scalar() is not None for query in (of_run, of_night)):
        return Name(version)
    of_branch = select(nights.c.session_id).where(nights.c.branch == name).limit(1)
    return Name(version, is_branch=connection.execute(of_branch).scalar() is not None)


def latest(
    connection: Connection, names: Sequence[Name], limits: Limits
) -> tuple[int, tuple[Version, ...]] | None:
    """The session started last that holds all names: its id, and the versions that they stand for there."""
    queries = [_running(names, limits)]
    if names:
        queries.append(_ended(names, limits))
    rows = [row for query in queries if (row := connection.execute(query).first()) is not None]
    if not rows:
        # What a bisect measured was measured for its question: it serves where nothing else does.
        row = connection.execute(_by_runs(names, limits)).first()
        rows = [] if row is None else [row]
    if not rows:
        return None
    _, session_id, *versions = max(map(tuple, rows))
    return session_id, tuple(map(parse_version, versions)) or tuple(each.version for each in names)


def _ended(names: Sequence[Name], limits: Limits) -> Select[Any]:
    """Of the sessions that have nights, which are found by version or branch."""
    rows = [nights.alias(f"night_{number}") for number in range(len(names))]
    last = rows[-1]  # the contender, which there are fewer sessions of than of the base
    query = select(last.c.started_at, last.c.session_id, *(row.c.version for row in rows))
    for name, row in zip(names, rows, strict=True):
        query = query.where(name.matches(row), row.c.build_id.is_not(None))
        if row is not last:
            query = query.where(row.c.session_id == last.c.session_id)
    for one, other in combinations(rows, 2):
        query = query.where(one.c.branch != other.c.branch)
    if limits.box is not None:
        query = query.where(last.c.box == limits.box)
    if limits.suite is not None:
        query = query.where(last.c.suite == limits.suite)
    for column, wanted in ((sessions.c.profile, limits.profile), (sessions.c.uid, limits.uid)):
        if wanted is not None:
            query = query.where(exists().where(sessions.c.id == last.c.session_id, column == wanted))
    return query.order_by(last.c.started_at.desc(), last.c.session_id.desc()).limit(1)


def _running(names: Sequence[Name], limits: Limits) -> Select[Any]:
    """Of the sessions that have no night: they run, or confirm, so that only versions are known. Without
    names of all sessions."""
    query = _by_runs(names, limits).where(is_no_bisect())
    if not names:
        return query
    confirm = sessions.c.id.in_(select(confirmations.c.session_id))
    return query.where(or_(sessions.c.status == SessionStatus.RUNNING, confirm))


def is_no_bisect() -> ColumnElement[bool]:
    """Whether a row of sessions is of no bisect."""
    return ~exists().where(bisect_events.c.session_uid == sessions.c.uid)


def _by_runs(names: Sequence[Name], limits: Limits) -> Select[Any]:
    query = select(sessions.c.started_at, sessions.c.id)
    for name in names:
        holds = exists().where(runs.c.session_id == sessions.c.id, runs.c.version == str(name))
        query = query.where(holds)
    if limits.box is not None:
        query = query.where(
            exists().where(machines.c.id == sessions.c.machine_id, machines.c.hostname == limits.box)
        )
    for column, wanted in (
        (sessions.c.suite, limits.suite),
        (sessions.c.profile, limits.profile),
        (sessions.c.uid, limits.uid),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    return query.order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(1)
