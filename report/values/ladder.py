"""The version ladders of an environment: releases and branch tips by steps, against the base of their night.

There is one for every metric that judges steps: a session that counted instructions takes no column from one
that timed rounds. A ratio is taken within one session, never between two nights. Another column as the base
is the quotient of two such ratios, which the page computes.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from build.version import release_numbers
from history.comparison.nights.recent_nights import step_positions, values_of
from history.comparison.verdict import Judged, MetricChange
from history.errors import stored_version
from history.stats.estimators import geometric_mean
from history.store.records import Environment
from report.values.catalog import Catalog, NightEntry, PlaceNights
from report.values.comparisons import Comparisons
from suites.metrics import METRICS, Metric, judged_metrics

MAX_VERSIONS = 30
"""The columns of a ladder; of more, the latest stay."""


@dataclass(frozen=True)
class LadderColumn:
    """A version, in the latest session that has both it and the base, judged by the metric of the ladder."""

    version: str
    branch: str
    uid: str
    started_at: datetime
    base_version: str
    cells: Mapping[str, Judged]
    """By step."""

    groups: Mapping[str, str]
    """The group of each step, in suite order; empty without one."""

    has_rounds: bool = True
    """Whether its session still has rounds, and so pages of its steps."""


@dataclass(frozen=True)
class Ladder:
    """All versions of one environment by one metric."""

    place: Environment
    metric: Metric
    is_own: bool
    """Whether sessions are judged by the metric; else it stands beside their verdicts."""

    base: str
    """The version of the base in the latest night."""

    base_branch: str

    columns: tuple[LadderColumn, ...]
    left_out: int
    """Older versions that have no column."""

    @property
    def groups(self) -> Mapping[str, str]:
        """The group of each step, in suite order; empty without one."""
        return {step: group for column in self.columns for step, group in column.groups.items()}

    def mean(self, column: LadderColumn, steps: Sequence[str]) -> float | None:
        """Return the geometric mean of a column over some steps; None when one is missing."""
        values = [column.cells[step].value for step in steps if step in column.cells]
        known = [value for value in values if value is not None]
        return geometric_mean(known) if known and len(known) == len(steps) else None


def read_ladders(
    comparisons: Comparisons, catalog: Catalog, nights: PlaceNights, base: str
) -> tuple[Ladder, ...]:
    """Return the ladders of a base branch: those of metrics that sessions are judged by, timed ones first."""
    found: defaultdict[str, dict[tuple[str, str], LadderColumn]] = defaultdict(dict)
    latest = _latest(catalog, nights, base)
    older = {metric: entries[:-MAX_VERSIONS] for metric, entries in latest.items()}
    compared = [candidate for entries in latest.values() for candidate in entries[-MAX_VERSIONS:]]
    for branch, night in sorted(compared, key=lambda column: column[1].started_at):
        stands_for = _column_of(branch, night.versions[branch])
        for metric, column in _columns(comparisons, catalog, nights, night, branch).items():
            found[metric][stands_for] = column
    own = set(latest)
    last = next(night for night in reversed(nights.nights) if night.base == base)
    ladders = []
    for metric in sorted(found, key=lambda name: _rank(name, own)):
        columns = sorted(found[metric].values(), key=lambda column: column.started_at)
        chosen = sorted(columns[-MAX_VERSIONS:], key=lambda column: _order(column.version))
        left_out = len(columns) - len(chosen) + len(older.get(metric, ()))
        ladders.append(
            Ladder(
                nights.place,
                METRICS[metric],
                metric in own,
                last.versions[base],
                base,
                tuple(chosen),
                left_out,
            )
        )
    return tuple(ladders)


def _latest(
    catalog: Catalog, nights: PlaceNights, base: str
) -> Mapping[str, Sequence[tuple[str, NightEntry]]]:
    """Return the branches and latest nights of all columns, oldest first, by the metric that judged them."""
    latest: defaultdict[str, dict[tuple[str, str], tuple[str, NightEntry]]] = defaultdict(dict)
    for night in nights.nights:
        if night.base == base:
            judged_by = catalog.by_id[night.session_id].judged_by
            for branch, version in night.versions.items():
                if branch != base and branch in night.built:
                    latest[judged_by][_column_of(branch, version)] = (branch, night)
    return {
        metric: sorted(columns.values(), key=lambda column: column[1].started_at)
        for metric, columns in latest.items()
    }


def _rank(metric: str, own: set[str]) -> tuple[bool, bool, int]:
    """Return the order of metrics: those of sessions first, timed before counted, then as the rows are."""
    return metric not in own, METRICS[metric].is_counted, list(METRICS).index(metric)


def _column_of(branch: str, version: str) -> tuple[str, str]:
    """Return what a column stands for: a release, or the tip of a branch."""
    return (branch, version if stored_version(version).is_release else "")


def _order(version: str) -> tuple[str, bool, tuple[int, ...], str]:
    parsed = stored_version(version)
    numbers = release_numbers(parsed.ref) if parsed.is_release else ()
    numbers = numbers or tuple(int(part) for part in re.split(r"[._]", parsed.ref) if part.isdigit())
    return parsed.engine, not parsed.is_release, numbers, version


def _columns(
    comparisons: Comparisons, catalog: Catalog, nights: PlaceNights, night: NightEntry, branch: str
) -> Mapping[str, LadderColumn]:
    """Return the column of a branch in a night by each metric that judges it."""
    assert night.base is not None
    version, base = night.versions[branch], night.versions[night.base]
    comparison = comparisons.of(catalog.by_id[night.session_id], base, version)
    if comparison is None:
        return _from_points(comparisons, catalog, nights, night, branch)
    columns = {}
    groups = {step.step: step.group for step in comparison.steps}
    for metric in comparison.judged_metrics:
        cells = {step.step: judged for step in comparison.steps if (judged := step.by(metric)) is not None}
        columns[metric] = LadderColumn(version, branch, night.uid, night.started_at, base, cells, groups)
    return columns


def _from_points(
    comparisons: Comparisons, catalog: Catalog, nights: PlaceNights, night: NightEntry, branch: str
) -> Mapping[str, LadderColumn]:
    """Return the columns of a session whose rounds were pruned, from the values of its night."""
    assert night.base is not None
    judged_by = catalog.by_id[night.session_id].judged_by
    metrics = dict.fromkeys((judged_by, *judged_metrics()))
    with comparisons.history.database.reading() as connection:
        found = values_of(connection, nights.place, {branch, night.base}, metrics, [night.session_id])
        positions = step_positions(connection, nights.place, {branch, night.base})
    columns = {}
    steps = sorted(positions, key=lambda name: (positions[name], name))
    for metric in metrics:
        cells = {}
        for step in steps:
            old, new = (found.get((side, step, metric, night.session_id)) for side in (night.base, branch))
            if old is not None or new is not None:
                cells[step] = _of_points(metric, old, new, catalog.threshold_of(metric))
        if cells:
            columns[metric] = LadderColumn(
                night.versions[branch],
                branch,
                night.uid,
                night.started_at,
                night.versions[night.base],
                cells,
                dict.fromkeys(cells, ""),
                has_rounds=False,
            )
    return columns


def _of_points(metric: str, old: float | None, new: float | None, threshold: float) -> Judged:
    ratio = new / old if old and new else None
    reason = "its rounds were pruned" if ratio else "not measured in this night"
    pairs = int(ratio is not None)
    return Judged(
        metric, old, new, ratio, None, MetricChange.UNKNOWN, pairs, threshold, "night", reason=reason
    )
