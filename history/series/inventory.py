"""The inventory of a history: branches with their nights, series, and sessions that did not finish."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, select

from history.series.series import SeriesKey, find_series, in_environment, key_of, series_query
from history.store.records import Environment, SessionStatus
from history.store.schema import machines, nights, points, series, sessions
from history.timestamps import from_text

LAST_FAILURES = 10
"""The number of unfinished sessions that the inventory lists."""


@dataclass(frozen=True)
class Branch:
    """A branch in one environment, with a summary of its nights."""

    environment: Environment
    branch: str
    nights: int
    first: datetime
    last: datetime
    version: str
    """The version of the last night."""

    is_base: bool
    """Whether it was the base of that night."""


@dataclass(frozen=True)
class UnfinishedSession:
    """A session that failed or was interrupted."""

    uid: str
    started_at: datetime
    box: str
    suite: str
    status: SessionStatus


@dataclass(frozen=True)
class InventoryFilter:
    """Limits on what is shown; None means any."""

    box: str | None = None
    suite: str | None = None
    branch: str | None = None
    step: str | None = None
    metric: str | None = None
    configuration: str | None = None


def list_branches(connection: Connection, wanted: InventoryFilter) -> tuple[Branch, ...]:
    """Return the branches of all environments, in order; with a step or metric those with such a series."""
    first, last = func.min(nights.c.started_at), func.max(nights.c.started_at)
    keys = (nights.c.box, nights.c.suite, nights.c.configuration, nights.c.branch)
    query = select(*keys, func.count(), first, last).where(*_of_nights(wanted)).group_by(*keys)
    branches = []
    with_series = _with_series(connection, wanted)
    for *where, branch, count, began, ended in connection.execute(query.order_by(*keys)).all():
        environment = Environment(*where)
        if with_series is None or (environment, branch) in with_series:
            version, is_base = _latest(connection, environment, branch)
            times = (from_text(began), from_text(ended))
            branches.append(Branch(environment, branch, count, *times, version, bool(is_base)))
    return tuple(branches)


def list_unfinished(connection: Connection, wanted: InventoryFilter) -> tuple[UnfinishedSession, ...]:
    """Return the last sessions that failed or were interrupted, latest first."""
    query = (
        select(
            *(sessions.c.uid, sessions.c.started_at, machines.c.hostname, sessions.c.suite),
            sessions.c.status,
        )
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(sessions.c.status.in_((SessionStatus.FAILED, SessionStatus.INTERRUPTED)))
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
        .limit(LAST_FAILURES)
    )
    for column, value in ((machines.c.hostname, wanted.box), (sessions.c.suite, wanted.suite)):
        if value is not None:
            query = query.where(column == value)
    return tuple(
        UnfinishedSession(row[0], from_text(row[1]), row[2], row[3], SessionStatus(row[4]))
        for row in connection.execute(query)
    )


def list_series(connection: Connection, wanted: InventoryFilter) -> tuple[tuple[SeriesKey, int], ...]:
    """Return the matching series in suite order, each with its number of points."""
    point_count = select(func.count()).select_from(points).where(points.c.series_id == series.c.id)
    query = series_query(**vars(wanted)).add_columns(point_count.scalar_subquery().label("points"))
    return tuple((key_of(row), row["points"]) for row in connection.execute(query).mappings())


def _with_series(connection: Connection, wanted: InventoryFilter) -> set[tuple[Environment, str]] | None:
    if wanted.step is None and wanted.metric is None:
        return None
    return {(key.environment, key.branch) for key in find_series(connection, **vars(wanted))}


def _of_nights(wanted: InventoryFilter) -> list[ColumnElement[bool]]:
    pairs = (
        (nights.c.box, wanted.box),
        (nights.c.suite, wanted.suite),
        (nights.c.branch, wanted.branch),
        (nights.c.configuration, wanted.configuration),
    )
    return [column == value for column, value in pairs if value is not None]


def _latest(connection: Connection, environment: Environment, branch: str) -> tuple[str, int]:
    query = (
        select(nights.c.version, nights.c.is_base)
        .where(
            in_environment(nights, environment),
            nights.c.branch == branch,
        )
        .order_by(nights.c.started_at.desc(), nights.c.session_id.desc())
        .limit(1)
    )
    row = connection.execute(query).one()
    return row[0], row[1]
