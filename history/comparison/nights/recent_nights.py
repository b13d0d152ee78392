"""The ratios of a branch to its base in the last nights, which a table shows beside one session."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from history.series.series import in_environment
from history.store.database import plain_rows
from history.store.records import Environment, Session
from history.store.schema import nights, points, series

LAST_NIGHTS = 16
"""The nights that a trend covers, including that of the session itself."""

MIN_NIGHTS = 3
"""The nights with a value that a trend needs at least."""

Values = Mapping[tuple[str, str, str, int], float]
"""The values by branch, step, metric and session."""


def trends(
    connection: Connection, session: Session, base: str, contender: str, metric: str
) -> dict[str, tuple[float | None, ...]]:
    """Return the ratio of contender's branch to base's branch by step, in the last nights up to a session.

    A ratio is None in a gap. Steps with fewer than MIN_NIGHTS are left out; a session without a night has
    no trends.
    """
    rows = connection.execute(select(nights).where(nights.c.session_id == session.id)).all()
    lines = {row.version: row.branch for row in rows}
    if not {base, contender} <= lines.keys():
        return {}
    environment = Environment(rows[0].box, rows[0].suite, rows[0].configuration)
    # A past commit stands at its date: what is before it in the series are commits before it.
    place = next(row.started_at for row in rows if row.version == contender)
    query = (
        select(nights.c.session_id)
        .where(
            in_environment(nights, environment),
            nights.c.branch == lines[contender],
            nights.c.started_at <= place,
        )
        .order_by(nights.c.started_at.desc(), nights.c.session_id.desc())
    )
    last = connection.execute(query.limit(LAST_NIGHTS)).scalars().all()[::-1]
    values = values_of(connection, environment, (lines[base], lines[contender]), (metric,), last)
    steps = {step for branch, step, _, _ in values if branch == lines[contender]}
    trends_by_step = {}
    for step in steps:
        ratios = tuple(_ratio(values, lines[base], lines[contender], step, metric, night) for night in last)
        if len([ratio for ratio in ratios if ratio is not None]) >= MIN_NIGHTS:
            trends_by_step[step] = ratios
    return trends_by_step


def values_of(
    connection: Connection,
    environment: Environment,
    branches: Collection[str],
    metrics: Collection[str],
    session_ids: Sequence[int],
) -> Values:
    """Return the values of the branches in the nights of these sessions, for all steps."""
    if not session_ids:
        return {}
    query = (
        select(series.c.branch, series.c.step, series.c.metric, points.c.session_id, points.c.value)
        .join_from(series, points, points.c.series_id == series.c.id)
        .where(
            *_of_branches(environment, branches),
            series.c.metric.in_(list(metrics)),
            points.c.session_id.between(min(session_ids), max(session_ids)),
        )
    )
    wanted = set(session_ids)
    rows = plain_rows(connection, query)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in rows if row[3] in wanted}


def step_positions(
    connection: Connection, environment: Environment, branches: Collection[str]
) -> dict[str, int]:
    """Return the position in the suite by step, for the steps of which these branches have series."""
    query = select(series.c.step, func.max(series.c.step_position)).where(
        *_of_branches(environment, branches)
    )
    return dict(map(tuple, connection.execute(query.group_by(series.c.step))))


def _of_branches(environment: Environment, branches: Collection[str]) -> list[ColumnElement[bool]]:
    return [in_environment(series, environment), series.c.branch.in_(list(branches))]


def _ratio(
    values: Values, base: str, contender: str, step: str, metric: str, session_id: int
) -> float | None:
    below = values.get((base, step, metric, session_id))
    above = values.get((contender, step, metric, session_id))
    return above / below if below and above and min(below, above) > 0 else None
