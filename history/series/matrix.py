"""The matrix of all series of a branch over its nights, in which change points are detected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from history.series.series import (
    Night,
    base_branch,
    branches_at,
    in_environment,
    list_environments,
    nights_of,
)
from history.store.database import plain_rows
from history.store.records import Environment
from history.store.schema import points, series
from suites.metrics import judged_metrics


@dataclass(frozen=True)
class SeriesMatrix:
    """Several series of one branch over the same nights, which are in order."""

    environment: Environment
    branch: str
    base: str | None
    """The branch that values are relative to; None when they are as measured."""

    nights: tuple[Night, ...]
    series: tuple[tuple[int, str, str], ...]
    """The id, step and metric of each row of `ratios`."""

    ratios: NDArray[np.float64]
    """The value over the base's value of the same night, [series, nights]; nan in a gap.

    Without a base, it is the value itself, in the metric's unit.
    """

    def log_ratios(self) -> NDArray[np.float64]:
        """Return the natural logarithms of `ratios`, [series, nights]; nan where there is none."""
        logs = np.full_like(self.ratios, np.nan)
        np.log(self.ratios, out=logs, where=self.ratios > 0)
        return logs


def read_matrix(
    connection: Connection,
    environment: Environment,
    branch: str,
    base: str | None,
    metrics: Sequence[str],
    last: int | None = None,
) -> SeriesMatrix:
    """Return the series of a branch for the given metrics, as ratios to the base, over the `last` nights.

    Without a base, the values are as measured; without `last`, all nights are read.
    """
    branch_nights = nights_of(connection, environment, branch, last=last)
    column = {night.session_id: number for number, night in enumerate(branch_nights)}
    wanted = select(series).where(
        in_environment(series, environment),
        series.c.branch.in_((branch, branch if base is None else base)),
        series.c.metric.in_(metrics),
    )
    series_ids: dict[tuple[str, str, str], int] = {}
    for row in connection.execute(wanted.order_by(series.c.step_position, series.c.step)):
        series_ids[row.branch, row.step, row.metric] = row.id
    rows = [(id_, step, metric) for (name, step, metric), id_ in series_ids.items() if name == branch]
    shape = (len(rows), len(branch_nights))
    first = min(column, default=0)
    ratios = np.full(shape, np.nan)
    for number, (id_, step, metric) in enumerate(rows):
        if base is None:
            ratios[number] = _row(connection, id_, first, column)
            continue
        base_id = series_ids.get((base, step, metric))
        if base_id is not None:
            numerator = _row(connection, id_, first, column)
            denominator = _row(connection, base_id, first, column)
            denominator[~(denominator > 0)] = np.nan
            ratios[number] = numerator / denominator
    return SeriesMatrix(environment, branch, base, branch_nights, tuple(rows), ratios)


def judged_matrices(connection: Connection, last: int) -> Iterator[SeriesMatrix]:
    """Yield the judged series of every branch beside its base, environment by environment.

    Over the `last` nights of each.
    """
    for environment in list_environments(connection):
        base = base_branch(connection, environment)
        for branch in branches_at(connection, environment):
            if base is not None and branch != base:
                yield read_matrix(connection, environment, branch, base, judged_metrics(), last)


def _row(
    connection: Connection, series_id: int, first: int, column: Mapping[int, int]
) -> NDArray[np.float64]:
    """Return the values of a series, [nights], at the columns of their sessions, from session `first` on."""
    query = select(points.c.session_id, points.c.value).where(
        points.c.series_id == series_id, points.c.session_id >= first
    )
    row = np.full(len(column), np.nan)
    for session_id, value in plain_rows(connection, query):
        position = column.get(session_id)
        if position is not None:
            row[position] = value
    return row
