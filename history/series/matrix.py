"""The matrix of all series of a branch over its nights, in which change points are detected."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from history.series.series import (
    Night,
    bases_beside,
    in_environment,
    list_environments,
    nights_of,
)
from history.store.database import plain_rows
from history.store.records import Environment
from history.store.schema import points, series
from suites.metrics import METRICS, judged_metrics

_AT_ONCE = 500
"""Series whose values one statement reads."""


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

    negligible: tuple[float, ...] = ()
    """By row: the difference of `ratios` that matters to nobody, by the row of its metric and what the base
    usually has; empty where the base's values are not known."""

    def is_negligible(self, row: int, before: float, after: float) -> bool:
        """Return whether the step between two logarithms of `ratios` of a row matters to nobody.

        Rows beyond those of `series`, such as means over groups, have no such steps.
        """
        return row < len(self.negligible) and abs(math.exp(after) - math.exp(before)) <= self.negligible[row]

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
    return _Reading(connection, environment, base, metrics).matrix(branch, last)


def judged_matrices(
    connection: Connection, last: int, metrics: Sequence[str] | None = None
) -> Iterator[SeriesMatrix]:
    """Yield the series of every branch beside its base, environment by environment.

    Over the `last` nights of each; of all judged metrics unless some are named.
    """
    for environment in list_environments(connection):
        readings: dict[str, _Reading] = {}
        for branch, base in bases_beside(connection, environment).items():
            if base not in readings:
                readings[base] = _Reading(connection, environment, base, metrics or judged_metrics())
            yield readings[base].matrix(branch, last)


Row = NDArray[np.float64]
"""The values of a series, [nights]."""


def _negligible(metric: str, base: Row | None) -> float:
    """Return what a metric's negligible difference is of the base's median, or itself without a base."""
    difference = METRICS[metric].negligible
    if base is None or not difference:
        return difference
    known = base[np.isfinite(base)]
    return difference / float(np.median(known)) if len(known) else 0.0


@dataclass
class _Reading:
    """Reads matrices of one environment and base; the values of the base only once."""

    connection: Connection
    environment: Environment
    base: str | None
    metrics: Sequence[str]
    _base_sessions: Sequence[int] = ()
    """The sessions of `_base_rows`: branches mostly have the same ones."""

    _base_rows: Mapping[tuple[str, str], Row] = field(default_factory=dict)

    def matrix(self, branch: str, last: int | None) -> SeriesMatrix:
        """Return the matrix of a branch, as read_matrix does."""
        nights = nights_of(self.connection, self.environment, branch, last=last)
        sessions = [night.session_id for night in nights]
        ids = self._series(branch)
        rows, base = self._rows(ids, sessions), self._rows_of_base(sessions)
        ratios = np.full((len(ids), len(nights)), np.nan)
        for number, key in enumerate(ids):
            if self.base is None:
                ratios[number] = rows[key]
            elif key in base:
                ratios[number] = rows[key] / base[key]
        negligible = tuple(_negligible(key[1], None if self.base is None else base.get(key)) for key in ids)
        identified = tuple((id_, step, metric) for (step, metric), id_ in ids.items())
        return SeriesMatrix(self.environment, branch, self.base, nights, identified, ratios, negligible)

    def _rows_of_base(self, sessions: Sequence[int]) -> Mapping[tuple[str, str], Row]:
        if self.base is not None and self._base_sessions != sessions:
            self._base_rows = self._rows(self._series(self.base), sessions)
            self._base_sessions = sessions
            for row in self._base_rows.values():
                row[~(row > 0)] = np.nan
        return self._base_rows

    def _series(self, branch: str) -> dict[tuple[str, str], int]:
        """Return the ids of a branch's series by step and metric, in the order of the steps."""
        wanted = select(series.c.step, series.c.metric, series.c.id).where(
            in_environment(series, self.environment),
            series.c.branch == branch,
            series.c.metric.in_(self.metrics),
        )
        found = plain_rows(self.connection, wanted.order_by(series.c.step_position, series.c.step))
        return {(step, metric): id_ for step, metric, id_ in found}

    def _rows(
        self, ids: Mapping[tuple[str, str], int], sessions: Sequence[int]
    ) -> dict[tuple[str, str], Row]:
        """Return the values of series at sessions, nan in a gap."""
        values: dict[int, dict[int, float]] = {id_: {} for id_ in ids.values()}
        every, first = list(values), min(sessions, default=0)
        for begin in range(0, len(every), _AT_ONCE):
            query = select(points.c.series_id, points.c.session_id, points.c.value).where(
                points.c.series_id.in_(every[begin : begin + _AT_ONCE]), points.c.session_id >= first
            )
            for id_, session_id, value in plain_rows(self.connection, query):
                values[id_][session_id] = value
        return {
            key: np.array([values[id_].get(session, math.nan) for session in sessions])
            for key, id_ in ids.items()
        }
