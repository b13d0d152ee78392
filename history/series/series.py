"""Series over nights, as they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, and_, select

from history.store.database import plain_rows
from history.store.records import ALL_STEPS, Environment
from history.store.schema import gaps, nights, points, series
from history.timestamps import from_text, to_text

AT_ONCE = 500
"""Sessions named in one query: databases limit its parameters."""


@dataclass(frozen=True)
class SeriesKey:
    """What names a series."""

    place: Environment
    branch: str
    step: str
    metric: str


class Night(NamedTuple):
    """One night of a branch. A tuple, because a series has thousands."""

    session_id: int
    started_at: datetime
    version: str
    build_id: int | None
    """None when the version was not built, or never came to its first step."""


class Point(NamedTuple):
    """One night of one series."""

    night: Night
    value: float | None
    """In the metric's unit; None in a gap."""

    base: float | None
    """The base's value of the same night; None when there is none, and for a series without a base."""

    gap: str = ""
    """Why there is no value, or no base to compare it with; empty when nothing is missing."""

    @property
    def relative(self) -> float | None:
        """Value over base of the same night; None where one is missing or the base is not above zero."""
        if self.value is None or self.base is None or self.base <= 0:
            return None
        return self.value / self.base


def places(connection: Connection) -> tuple[Environment, ...]:
    """Everywhere that there are nights of."""
    columns = (nights.c.box, nights.c.suite, nights.c.configuration)
    return tuple(
        Environment(*row) for row in connection.execute(select(*columns).distinct().order_by(*columns))
    )


def base_branch(connection: Connection, place: Environment) -> str | None:
    """The branch that was the base of the latest night at a place."""
    query = (
        select(nights.c.branch)
        .where(at_place(nights, place), nights.c.is_base == 1)
        .order_by(nights.c.started_at.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def branches_at(connection: Connection, place: Environment) -> tuple[str, ...]:
    """The branches that have nights at a place."""
    query = select(nights.c.branch).where(at_place(nights, place)).distinct().order_by(nights.c.branch)
    return tuple(connection.execute(query).scalars())


def nights_of(
    connection: Connection,
    place: Environment,
    branch: str,
    since: datetime | None = None,
    last: int | None = None,
) -> tuple[Night, ...]:
    """The nights of a branch in order: since a moment, or the last so many."""
    columns = (nights.c.session_id, nights.c.started_at, nights.c.version, nights.c.build_id)
    query = select(*columns).where(at_place(nights, place), nights.c.branch == branch)
    if since is not None:
        query = query.where(nights.c.started_at >= to_text(since))
    query = query.order_by(nights.c.started_at.desc(), nights.c.session_id.desc())
    if last is not None:
        query = query.limit(last)
    found = plain_rows(connection, query)
    return tuple(Night(row[0], from_text(row[1]), row[2], row[3]) for row in reversed(found))


def read(
    connection: Connection, key: SeriesKey, base: str | None = None, since: datetime | None = None
) -> tuple[Point, ...]:
    """A series night by night, beside the base's values; a night without a value is there as a gap."""
    its_nights = nights_of(connection, key.place, key.branch, since)
    values = _points(connection, key, key.branch)
    bases = _points(connection, key, base) if base is not None else {}
    ids = [each.session_id for each in its_nights]
    lacking = [each for each in ids if each not in values or (base is not None and each not in bases)]
    reasons = _reasons(connection, key, base, lacking)
    missing = {each: _gap(each, key.branch, base, values, bases, reasons) for each in lacking}
    why = [missing.get(each, "") for each in ids]
    return tuple(map(Point, its_nights, map(values.get, ids), map(bases.get, ids), why))


def at_place(table: FromClause, place: Environment) -> ColumnElement[bool]:
    """Whether a row of `nights` or `series`, or of an alias of one, is of a place."""
    its = table.c
    return and_(its.box == place.box, its.suite == place.suite, its.configuration == place.configuration)


def _points(connection: Connection, key: SeriesKey, branch: str) -> dict[int, float]:
    found = select(series.c.id).where(
        at_place(series, key.place),
        series.c.branch == branch,
        series.c.step == key.step,
        series.c.metric == key.metric,
    )
    query = select(points.c.session_id, points.c.value).where(points.c.series_id == found.scalar_subquery())
    return dict(plain_rows(connection, query))


Reasons = Mapping[tuple[int, str], str]
"""Session and branch -> why the step has no value there."""


def _reasons(connection: Connection, key: SeriesKey, base: str | None, lacking: Sequence[int]) -> Reasons:
    found: dict[tuple[int, str], str] = {}
    for start in range(0, len(lacking), AT_ONCE):
        query = select(gaps).where(
            gaps.c.session_id.in_(lacking[start : start + AT_ONCE]),
            gaps.c.branch.in_([each for each in (key.branch, base) if each is not None]),
            gaps.c.step.in_((key.step, ALL_STEPS)),
        )
        found |= {(row.session_id, row.branch): row.reason for row in connection.execute(query)}
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


def find(connection: Connection, **wanted: str | None) -> tuple[SeriesKey, ...]:
    """The series that are as described, in suite order; `wanted` as in `described`."""
    return tuple(map(key_of, connection.execute(described(**wanted))))


def described(
    *,
    box: str | None = None,
    suite: str | None = None,
    configuration: str | None = None,
    branch: str | None = None,
    step: str | None = None,
    metric: str | None = None,
) -> Select[Any]:
    """The query for the rows of `series` that are as described, in suite order; None leaves a choice open."""
    places = {"box": box, "suite": suite, "configuration": configuration}
    wanted = {**places, "branch": branch, "step": step, "metric": metric}
    query = select(series).where(
        *(series.c[name] == each for name, each in wanted.items() if each is not None)
    )
    order = (*places, "branch", "step_position", "step", "metric")
    return query.order_by(*(series.c[name] for name in order))


def key_of(row: Row[Any]) -> SeriesKey:
    """What names the series of a row of `series`."""
    return SeriesKey(Environment(row.box, row.suite, row.configuration), row.branch, row.step, row.metric)
