"""All series of a branch side by side, as change points are looked for in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from history.series.series import Night, at_place, nights_of
from history.store.database import plain_rows
from history.store.records import Environment
from history.store.schema import points, series


@dataclass(frozen=True)
class SeriesMatrix:
    """Several series of one branch over the same nights, in order."""

    place: Environment
    branch: str
    base: str
    nights: tuple[Night, ...]
    series: tuple[tuple[int, str, str], ...]
    """Id, step and metric of each row of `ratios`."""

    ratios: NDArray[np.float64]
    """Value over base of the same night, of shape (series, nights); nan in a gap."""


def read_matrix(
    connection: Connection,
    place: Environment,
    branch: str,
    base: str,
    metrics: Sequence[str],
    last: int,
) -> SeriesMatrix:
    """All series of a branch for some metrics, as ratios to the base, over the last so many nights."""
    its_nights = nights_of(connection, place, branch, last=last)
    column = {night.session_id: number for number, night in enumerate(its_nights)}
    wanted = select(series).where(
        at_place(series, place),
        series.c.branch.in_((branch, base)),
        series.c.metric.in_(metrics),
    )
    known: dict[tuple[str, str, str], int] = {}
    for row in connection.execute(wanted.order_by(series.c.step_position, series.c.step)):
        known[row.branch, row.step, row.metric] = row.id
    mine = [(id_, step, metric) for (line, step, metric), id_ in known.items() if line == branch]
    shape = (len(mine), len(its_nights))
    first = min(column, default=0)
    ratios = np.full(shape, np.nan)
    for number, (id_, step, metric) in enumerate(mine):
        other = known.get((base, step, metric))
        if other is not None:
            above = _row(connection, id_, first, column)
            below = _row(connection, other, first, column)
            below[~(below > 0)] = np.nan
            ratios[number] = above / below
    return SeriesMatrix(place, branch, base, its_nights, tuple(mine), ratios)


def _row(
    connection: Connection, series_id: int, first: int, column: Mapping[int, int]
) -> NDArray[np.float64]:
    """The values of a series from session `first` on, at the columns of their sessions."""
    query = select(points.c.session_id, points.c.value).where(
        points.c.series_id == series_id, points.c.session_id >= first
    )
    row = np.full(len(column), np.nan)
    for session_id, value in plain_rows(connection, query):
        place = column.get(session_id)
        if place is not None:
            row[place] = value
    return row
