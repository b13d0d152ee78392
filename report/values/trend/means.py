"""The geometric mean of the ratios of a branch, night by night, over the same steps in every night.

A mean over whatever steps a night has would move whenever a step is added or fails. The steps are therefore
chosen once for all nights and branches of an environment, and a night that lacks one of them has no mean.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from sqlalchemy import Connection

from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night
from history.store.records import Environment
from report.values.catalog import Catalog, PlaceNights
from suites.metrics import METRICS, Metric

NIGHTS = 366
"""The latest nights of each branch that are shown."""

MIN_SHARE = 0.9
"""The steps of a mean have a value in at least this share of the nights of all branches."""


@dataclass(frozen=True)
class BranchMeans:
    """A branch over its nights."""

    branch: str
    means: tuple[tuple[Night, float], ...]
    """The nights that have all steps, in order, and the geometric mean of their ratios to the base."""

    incomplete: tuple[Night, ...]
    """The nights that have a value, but lack one of the steps."""

    empty: int
    """The nights without any value."""


@dataclass(frozen=True)
class PlaceTrend:
    """All branches of an environment by one metric. Every branch has a mean in at least one night."""

    place: Environment
    metric: Metric
    base: str
    steps: tuple[str, ...]
    """The steps that every mean is of."""

    others: Mapping[str, int]
    """The steps that no mean has, with the number of nights of all branches in which they have a value."""

    branches: tuple[BranchMeans, ...]


def read_trends(connection: Connection, catalog: Catalog) -> Iterator[PlaceTrend]:
    """Yield the trends of all environments with a base, by every metric that their sessions are judged by."""
    for nights in catalog.places:
        for base, metric in product(nights.bases, _metrics(catalog, nights)):
            matrices = [
                read_matrix(connection, nights.place, branch, base, [metric.name], NIGHTS)
                for branch in nights.contenders(base)
            ]
            trend = trend_of(nights.place, metric, base, matrices)
            if trend is not None:
                yield trend


def trend_of(
    place: Environment, metric: Metric, base: str, matrices: Sequence[SeriesMatrix]
) -> PlaceTrend | None:
    """Return the trend of the branches of `matrices`; None if no night has all of its steps.

    The matrices have one series for each step.
    """
    found: Counter[str] = Counter()
    total = 0
    for matrix in matrices:
        known = matrix.ratios > 0
        total += int(known.any(axis=0).sum())
        for (_, step, _), row in zip(matrix.series, known, strict=True):
            found[step] += int(row.sum())
    steps = tuple(step for step, count in found.items() if count and count >= MIN_SHARE * total)
    branches = [_branch(matrix, steps) for matrix in matrices]
    with_means = tuple(branch for branch in branches if branch.means)
    if not with_means:
        return None
    others = {step: count for step, count in found.items() if count and step not in steps}
    return PlaceTrend(place, metric, base, steps, others, with_means)


def _branch(matrix: SeriesMatrix, steps: Sequence[str]) -> BranchMeans:
    rows = {step: row for (_, step, _), row in zip(matrix.series, matrix.log_ratios(), strict=True)}
    known = np.isfinite(np.array(list(rows.values()))).any(axis=0) if rows else np.zeros(len(matrix.nights))
    is_whole = bool(steps) and all(step in rows for step in steps)
    logs = (
        np.mean([rows[step] for step in steps], axis=0) if is_whole else np.full(len(matrix.nights), np.nan)
    )
    whole = np.isfinite(logs)
    return BranchMeans(
        matrix.branch,
        tuple(
            (night, float(np.exp(log)))
            for night, log, has in zip(matrix.nights, logs, whole, strict=True)
            if has
        ),
        tuple(
            night for night, some, has in zip(matrix.nights, known, whole, strict=True) if some and not has
        ),
        int(np.sum(known == 0)),
    )


def _metrics(catalog: Catalog, nights: PlaceNights) -> list[Metric]:
    """Return the metrics that the sessions of an environment are judged by, what is timed first."""
    judged = dict.fromkeys(catalog.by_id[night.session_id].judged_by for night in reversed(nights.nights))
    found = [METRICS[name] for name in judged if name in METRICS]
    return sorted(found, key=lambda metric: metric.is_counted)
