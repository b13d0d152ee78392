"""What the page of a branch shows: its ratios by step and night, in each environment and by each metric."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from history.changes.report import ChangeReport
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import in_environment
from history.store.records import Environment
from history.store.schema import series
from report.values.catalog import Catalog, PlaceNights
from suites.metric import Metric
from suites.metrics import METRICS

NIGHTS = 60
"""The nights of a strip; the series explorer has all."""

Sight = Mapping[str, float | None]
"""The smallest visible change by step, as a fraction; None when it is unknown."""

Sights = Mapping[tuple[Environment, str], Sight]
"""By environment and metric."""


@dataclass(frozen=True)
class BranchPlace:
    """A branch in one environment over its last nights, by one metric."""

    place: Environment
    metric: Metric
    base: str
    matrix: SeriesMatrix
    """Ratios to the base, [steps, nights]."""

    visible: Sight
    threshold: float
    """The fraction beyond which a change is reported."""


def read_branch(
    connection: Connection,
    catalog: Catalog,
    branch: str,
    reports: Collection[ChangeReport],
    sights: Sights,
) -> tuple[BranchPlace, ...]:
    """Return a branch in all environments in which it has a base other than itself.

    It is there by every metric that its sessions are judged by, that they counted, and in which a change of
    `reports`, those of the branch, was found.
    """
    found = []
    for nights in catalog.nights_of_branch(branch):
        if nights.base is None or nights.base == branch:
            continue
        for metric in _metrics(connection, catalog, nights, branch, reports):
            matrix = read_matrix(connection, nights.place, branch, nights.base, [metric.name], NIGHTS)
            visible = sights.get((nights.place, metric.name), {})
            threshold = catalog.threshold_of(metric.name)
            if metric.is_counted:
                visible = {step: threshold for _, step, _ in matrix.series}
            found.append(BranchPlace(nights.place, metric, nights.base, matrix, visible, threshold))
    return tuple(found)


def _metrics(
    connection: Connection,
    catalog: Catalog,
    nights: PlaceNights,
    branch: str,
    reports: Collection[ChangeReport],
) -> list[Metric]:
    """Return the metrics of a branch in an environment: those of its sessions first, what is timed first."""
    own = dict.fromkeys(
        catalog.by_id[night.session_id].judged_by for night in reversed(nights.of_branch(branch))
    )
    query = select(series.c.metric).distinct()
    recorded = connection.execute(
        query.where(in_environment(series, nights.place), series.c.branch == branch)
    ).scalars()
    counted = [name for name in recorded if name in METRICS and METRICS[name].is_counted]
    changed = [
        member.key.metric
        for report in reports
        for member in report.change.members
        if member.key.environment == nights.place and member.key.metric in METRICS
    ]
    found = [METRICS[name] for name in dict.fromkeys((*own, *sorted(counted), *sorted(changed)))]
    return sorted(found, key=lambda metric: (metric.name not in own, metric.is_counted))
