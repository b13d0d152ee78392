"""Reading series: environments, branches, nights, and the points of a series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, RowMapping, Select, and_, func, select

from history.store.database import plain_rows
from history.store.records import ALL_STEPS, Environment
from history.store.schema import builds, gaps, nights, points, series, sessions
from history.timestamps import from_text, to_text

IDS_PER_QUERY = 500
"""The session ids in one query at most, because databases limit the number of parameters."""


@dataclass(frozen=True)
class SeriesKey:
    """The fields that identify a series."""

    environment: Environment
    branch: str
    step: str
    metric: str


class Night(NamedTuple):
    """A night of a branch. It is a tuple because a series has thousands of them."""

    session_id: int
    started_at: datetime
    """Its place in the series: when the session began, or for a past commit the commit's date."""

    version: str
    build_id: int | None
    """None when the version was not built, or did not reach its first step."""

    measured_at: datetime | None = None
    """For a past commit, when it was measured; None for a night, which stands where it was measured."""

    commit: str = ""
    """The commit that was built, or that an imported file names; empty if the source is not from git."""

    @property
    def shown(self) -> str:
        """The version, with its commit if there is one."""
        return with_commit(self.version, self.commit)


SHOWN_DIGITS = 10
"""The digits of a commit that are shown."""


def with_commit(version: str, commit: str) -> str:
    """Return a version with the commit that it was, unless it is called by that."""
    shown = commit[:SHOWN_DIGITS]
    return version if not shown or shown in version else f"{version}, commit {shown}"


def commit_in(source_digest: str | None) -> str:
    """Return the commit in the digest of a build's source, `git:COMMIT:TREE`; empty without one."""
    return source_digest.split(":")[1] if source_digest and source_digest.startswith("git:") else ""


class Point(NamedTuple):
    """The value of a series in one night."""

    night: Night
    value: float | None
    """The value in the metric's unit; None in a gap."""

    base: float | None
    """The base's value of the same night; None when it is missing, and for a series without a base."""

    gap: str = ""
    """The reason why the value or the base's value is missing; empty when neither is."""

    @property
    def relative(self) -> float | None:
        """The value over the base's; None when one is missing, or when the base's is not above zero."""
        if self.value is None or self.base is None or self.base <= 0:
            return None
        return self.value / self.base


def list_environments(connection: Connection) -> tuple[Environment, ...]:
    """Return the environments that have nights, in order."""
    columns = (nights.c.box, nights.c.suite, nights.c.configuration)
    return tuple(
        Environment(*row) for row in connection.execute(select(*columns).distinct().order_by(*columns))
    )


def base_beside(connection: Connection, environment: Environment, branch: str) -> str | None:
    """Return the base of the latest night in which a branch was measured beside one; None without any.

    A plan has one base for each engine, so that the branches of an environment can have several.
    """
    night, base_night = nights.alias("night"), nights.alias("base")
    query = (
        select(base_night.c.branch)
        .join_from(night, base_night, base_night.c.session_id == night.c.session_id)
        .where(
            in_environment(night, environment),
            night.c.branch == branch,
            night.c.is_base == 0,
            base_night.c.is_base == 1,
        )
        .order_by(night.c.started_at.desc(), night.c.session_id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def bases_beside(connection: Connection, environment: Environment) -> dict[str, str]:
    """Return the base of every branch of an environment that has one, by branch, as `base_beside` does."""
    found = {
        branch: base_beside(connection, environment, branch)
        for branch in branches_at(connection, environment)
    }
    return {branch: base for branch, base in found.items() if base is not None}


def base_branches(connection: Connection, environment: Environment) -> tuple[str, ...]:
    """Return all branches that were the base of a night in an environment, that of the latest night first."""
    query = (
        select(nights.c.branch)
        .where(in_environment(nights, environment), nights.c.is_base == 1)
        .group_by(nights.c.branch)
        .order_by(func.max(nights.c.started_at).desc(), nights.c.branch)
    )
    return tuple(connection.execute(query).scalars())


def branches_at(connection: Connection, environment: Environment) -> tuple[str, ...]:
    """Return the branches that have nights in an environment."""
    query = (
        select(nights.c.branch)
        .where(in_environment(nights, environment))
        .distinct()
        .order_by(nights.c.branch)
    )
    return tuple(connection.execute(query).scalars())


def nights_of(
    connection: Connection,
    environment: Environment,
    branch: str,
    since: datetime | None = None,
    last: int | None = None,
) -> tuple[Night, ...]:
    """Return the nights of a branch in order, from a time on, or the `last` ones."""
    query = select_nights().where(in_environment(nights, environment), nights.c.branch == branch)
    if since is not None:
        query = query.where(nights.c.started_at >= to_text(since))
    query = query.order_by(nights.c.started_at.desc(), nights.c.session_id.desc())
    if last is not None:
        query = query.limit(last)
    rows = plain_rows(connection, query)
    return tuple(night_of(*row) for row in reversed(rows))


def select_nights() -> Select[Any]:
    """Return a query for nights, whose rows are the arguments of `night_of`."""
    columns = (nights.c.session_id, nights.c.started_at, nights.c.version, nights.c.build_id)
    return (
        select(*columns, sessions.c.started_at, builds.c.source_digest)
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .outerjoin(builds, builds.c.id == nights.c.build_id)
    )


def night_of(
    session_id: int,
    stands_at: str,
    version: str,
    build_id: int | None,
    measured_at: str,
    source_digest: str | None = None,
) -> Night:
    """Return a night from the texts of its place, of the start of its session, and of its build's source."""
    measured = None if measured_at == stands_at else from_text(measured_at)
    return Night(session_id, from_text(stands_at), version, build_id, measured, commit_in(source_digest))


def read_series(
    connection: Connection, key: SeriesKey, base: str | None = None, since: datetime | None = None
) -> tuple[Point, ...]:
    """Return a series night by night with the values of the base; a night without a value is a gap."""
    branch_nights = nights_of(connection, key.environment, key.branch, since)
    values = _points(connection, key, key.branch)
    bases = _points(connection, key, base) if base is not None else {}
    ids = [night.session_id for night in branch_nights]
    lacking = [
        session_id
        for session_id in ids
        if session_id not in values or (base is not None and session_id not in bases)
    ]
    reasons = _reasons(connection, key, base, lacking)
    missing = {
        session_id: _gap(session_id, key.branch, base, values, bases, reasons) for session_id in lacking
    }
    gap_reasons = [missing.get(session_id, "") for session_id in ids]
    return tuple(map(Point, branch_nights, map(values.get, ids), map(bases.get, ids), gap_reasons))


def in_environment(table: FromClause, environment: Environment) -> ColumnElement[bool]:
    """Return the condition that a row of `nights` or `series`, or of an alias, is of an environment."""
    columns = table.c
    return and_(
        columns.box == environment.box,
        columns.suite == environment.suite,
        columns.configuration == environment.configuration,
    )


def _points(connection: Connection, key: SeriesKey, branch: str) -> dict[int, float]:
    series_id = select(series.c.id).where(
        in_environment(series, key.environment),
        series.c.branch == branch,
        series.c.step == key.step,
        series.c.metric == key.metric,
    )
    query = select(points.c.session_id, points.c.value).where(
        points.c.series_id == series_id.scalar_subquery()
    )
    return dict(plain_rows(connection, query))


Reasons = Mapping[tuple[int, str], str]
"""The reasons why a step has no value, by session and branch."""


def _reasons(connection: Connection, key: SeriesKey, base: str | None, lacking: Sequence[int]) -> Reasons:
    branches = [name for name in (key.branch, base) if name is not None]
    found = gap_reasons(connection, branches, lacking, (key.step, ALL_STEPS))
    return {(session_id, branch): reason for (session_id, branch, _), reason in found.items()}


def gap_reasons(
    connection: Connection,
    branches: Sequence[str],
    session_ids: Sequence[int],
    steps: Sequence[str] | None = None,
) -> Mapping[tuple[int, str, str], str]:
    """Return why values are missing, by session, branch and step, which is ALL_STEPS for a whole version.

    Without `steps` the gaps of all steps are returned.
    """
    columns = (gaps.c.session_id, gaps.c.branch, gaps.c.step, gaps.c.reason)
    found: dict[tuple[int, str, str], str] = {}
    for start in range(0, len(session_ids), IDS_PER_QUERY):
        query = select(*columns).where(
            gaps.c.session_id.in_(session_ids[start : start + IDS_PER_QUERY]), gaps.c.branch.in_(branches)
        )
        if steps is not None:
            query = query.where(gaps.c.step.in_(steps))
        found |= {
            (session_id, branch, step): reason
            for session_id, branch, step, reason in plain_rows(connection, query)
        }
    return found


def _gap(
    session_id: int,
    branch: str,
    base: str | None,
    values: Mapping[int, Any],
    bases: Mapping[int, Any],
    reasons: Reasons,
) -> str:
    if session_id not in values:
        return reasons.get((session_id, branch), "not recorded")
    if base is not None and session_id not in bases:
        return f"{base}: {reasons.get((session_id, base), 'not measured in this night')}"
    return ""


def find_series(connection: Connection, **wanted: str | None) -> tuple[SeriesKey, ...]:
    """Return the matching series in suite order; the keywords are those of `series_query`."""
    return tuple(map(key_of, connection.execute(series_query(**wanted)).mappings()))


def series_query(
    *,
    box: str | None = None,
    suite: str | None = None,
    configuration: str | None = None,
    branch: str | None = None,
    step: str | None = None,
    metric: str | None = None,
) -> Select[Any]:
    """Return the query for the matching rows of `series` in suite order; None means any."""
    environment = {"box": box, "suite": suite, "configuration": configuration}
    wanted = {**environment, "branch": branch, "step": step, "metric": metric}
    query = select(series).where(
        *(series.c[name] == value for name, value in wanted.items() if value is not None)
    )
    order = (*environment, "branch", "step_position", "step", "metric")
    return query.order_by(*(series.c[name] for name in order))


def key_of(row: RowMapping) -> SeriesKey:
    """Return the key of a row with the columns of `series`."""
    environment = Environment(row["box"], row["suite"], row["configuration"])
    return SeriesKey(environment, row["branch"], row["step"], row["metric"])
