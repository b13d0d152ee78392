"""What the page of a branch shows: its throughput by step and night, in each environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from history.series.matrix import SeriesMatrix, read_matrix
from history.store.records import Environment
from report.values.catalog import Catalog
from suites.metric import QPS

NIGHTS = 60
"""The nights of a strip; the series explorer has all."""

Sight = Mapping[str, float | None]
"""The smallest visible change by step, as a fraction; None when it is unknown."""


@dataclass(frozen=True)
class BranchPlace:
    """A branch in one environment over its last nights."""

    place: Environment
    base: str
    matrix: SeriesMatrix
    """Throughput relative to the base, [steps, nights]."""

    visible: Sight


def read_branch(
    connection: Connection,
    catalog: Catalog,
    branch: str,
    visible: Mapping[Environment, Sight],
) -> tuple[BranchPlace, ...]:
    """Return a branch in all environments in which it has a base other than itself."""
    found = []
    for nights in catalog.nights_of_branch(branch):
        if nights.base is None or nights.base == branch:
            continue
        matrix = read_matrix(connection, nights.place, branch, nights.base, [QPS], NIGHTS)
        found.append(BranchPlace(nights.place, nights.base, matrix, visible.get(nights.place, {})))
    return tuple(found)
