"""The last nights of a branch against its base's, as a table shows them beside one session."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from history.series.series import at_place
from history.store.database import plain_rows
from history.store.records import Environment, Session
from history.store.schema import nights, points, series
from history.timestamps import to_text

LAST_NIGHTS = 16
"""That a trend goes back over, the session's own included."""

LEAST_NIGHTS = 3
"""Nights with a value below which there is no trend to show."""

Values = Mapping[tuple[str, str, str, int], float]
"""Branch, step, metric and session -> value."""


def trends(
    connection: Connection, session: Session, base: str, contender: str, metric: str
) -> dict[str, tuple[float | None, ...]]:
    """Step -> contender's branch over base's branch, night by night up to a session; None in a gap.

    Nothing of a session that has no night yet, and of steps with too few nights.
    """
    rows = connection.execute(select(nights).where(nights.c.session_id == session.id)).all()
    lines = {row.version: row.branch for row in rows}
    if not {base, contender} <= lines.keys():
        return {}
    place = Environment(rows[0].box, rows[0].suite, rows[0].configuration)
    query = (
        select(nights.c.session_id)
        .where(
            at_place(nights, place),
            nights.c.branch == lines[contender],
            nights.c.started_at <= to_text(session.started_at),
        )
        .order_by(nights.c.started_at.desc(), nights.c.session_id.desc())
    )
    last = connection.execute(query.limit(LAST_NIGHTS)).scalars().all()[::-1]
    values = values_of(connection, place, (lines[base], lines[contender]), (metric,), last)
    steps = {step for branch, step, _, _ in values if branch == lines[contender]}
    found = {}
    for step in steps:
        ratios = tuple(_ratio(values, lines[base], lines[contender], step, metric, night) for night in last)
        if len([each for each in ratios if each is not None]) >= LEAST_NIGHTS:
            found[step] = ratios
    return found


def values_of(
    connection: Connection,
    place: Environment,
    branches: Collection[str],
    metrics: Collection[str],
    session_ids: Sequence[int],
) -> Values:
    """What the branches came to in the nights of these sessions, for all steps."""
    if not session_ids:
        return {}
    query = (
        select(series.c.branch, series.c.step, series.c.metric, points.c.session_id, points.c.value)
        .join_from(series, points, points.c.series_id == series.c.id)
        .where(
            *_of_branches(place, branches),
            series.c.metric.in_(list(metrics)),
            points.c.session_id.between(min(session_ids), max(session_ids)),
        )
    )
    wanted = set(session_ids)
    rows = plain_rows(connection, query)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in rows if row[3] in wanted}


def step_positions(connection: Connection, place: Environment, branches: Collection[str]) -> dict[str, int]:
    """Step -> its place in the suite, for the steps that these branches have series of."""
    query = select(series.c.step, func.max(series.c.step_position)).where(*_of_branches(place, branches))
    return dict(map(tuple, connection.execute(query.group_by(series.c.step))))


def _of_branches(place: Environment, branches: Collection[str]) -> list[ColumnElement[bool]]:
    return [at_place(series, place), series.c.branch.in_(list(branches))]


def _ratio(
    values: Values, base: str, contender: str, step: str, metric: str, session_id: int
) -> float | None:
    below = values.get((base, step, metric, session_id))
    above = values.get((contender, step, metric, session_id))
    return above / below if below and above and min(below, above) > 0 else None
