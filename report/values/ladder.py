"""The version ladder of an environment: releases and branch tips by steps, against the base of their night.

A ratio is taken within one session, never between two nights. Another column as the base is the quotient of
two such ratios, which the page computes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from history.comparison.recent_nights import step_positions, values_of
from history.comparison.result import StepComparison
from history.comparison.verdict import Verdict
from history.errors import stored_version
from history.stats.estimators import Interval, geometric_mean
from history.store.reader import Reader
from history.store.records import Environment
from report.values.catalog import NightEntry, PlaceNights
from report.values.comparisons import Comparisons
from suites.metric import QPS

MOST_VERSIONS = 30
"""The columns of a ladder; of more, the latest stay."""


@dataclass(frozen=True)
class LadderCell:
    """A step of a version against the base."""

    ratio: float | None
    verdict: Verdict | None
    interval: Interval | None
    reason: str
    base_value: float | None
    value: float | None
    """Queries per second of the base and of the version."""

    has_rounds: bool = True
    """Whether its session still has rounds, and so a page of the step."""


@dataclass(frozen=True)
class LadderColumn:
    """A version, in the latest session that has both it and the base."""

    version: str
    branch: str
    uid: str
    started_at: datetime
    base_version: str
    cells: Mapping[str, LadderCell]
    """By step."""


@dataclass(frozen=True)
class Ladder:
    """All versions of one environment."""

    place: Environment
    base: str
    """The version of the base in the latest night."""

    groups: Mapping[str, str]
    """The group of each step, in suite order; empty without one."""

    columns: tuple[LadderColumn, ...]
    left_out: int
    """Older versions that have no column."""

    def mean(self, column: LadderColumn, steps: Sequence[str]) -> float | None:
        """Return the geometric mean of a column over some steps; None when one is missing."""
        values = [column.cells[step].ratio for step in steps if step in column.cells]
        known = [value for value in values if value is not None]
        return geometric_mean(known) if known and len(known) == len(steps) else None


def read_ladder(comparisons: Comparisons, nights: PlaceNights) -> Ladder | None:
    """Return the ladder of an environment; None when it has no base or no contender with a session."""
    base = nights.base
    if base is None:
        return None
    latest: dict[tuple[str, str], NightEntry] = {}
    for night in nights.nights:
        if night.base == base:
            for branch, version in night.versions.items():
                if branch != base and branch in night.built:
                    latest[_column_of(branch, version)] = night
    chosen = sorted(latest.items(), key=lambda item: item[1].started_at)[-MOST_VERSIONS:]
    columns: list[LadderColumn] = []
    groups: dict[str, str] = {}
    for (branch, _), night in sorted(chosen, key=lambda item: _order(item[1].versions[item[0][0]])):
        column, found = _column(comparisons, nights, night, branch)
        if column is not None:
            columns.append(column)
            groups |= found
    if not columns:
        return None
    last = next(night for night in reversed(nights.nights) if night.base == base)
    return Ladder(nights.place, last.versions[base], groups, tuple(columns), len(latest) - len(chosen))


def _column_of(branch: str, version: str) -> tuple[str, str]:
    """Return what a column stands for: a release, or the tip of a branch."""
    return (branch, version if stored_version(version).is_release else "")


def _order(version: str) -> tuple[str, bool, list[int], str]:
    parsed = stored_version(version)
    numbers = [int(part) for part in parsed.ref.replace("_", ".").split(".") if part.isdigit()]
    return parsed.engine, not parsed.is_release, numbers, version


def _column(
    comparisons: Comparisons, nights: PlaceNights, night: NightEntry, branch: str
) -> tuple[LadderColumn | None, Mapping[str, str]]:
    assert night.base is not None
    version, base = night.versions[branch], night.versions[night.base]
    one = comparisons.of(night.uid, base, version)
    if one is None:
        return _from_points(comparisons.history, nights, night, branch)
    cells = {step.step: cell_of(step) for step in one.steps}
    column = LadderColumn(version, branch, night.uid, night.started_at, base, cells)
    return column, {step.step: step.group for step in one.steps}


def cell_of(step: StepComparison) -> LadderCell:
    """Return the cell of a step of a comparison."""
    judged = step.judged
    return LadderCell(
        judged.value,
        step.judged.verdict,
        step.judged.interval,
        step.judged.reason,
        judged.base,
        judged.contender,
    )


def _from_points(
    history: Reader, nights: PlaceNights, night: NightEntry, branch: str
) -> tuple[LadderColumn | None, Mapping[str, str]]:
    """Return the column of a session whose rounds were pruned, from the values of its night."""
    assert night.base is not None
    with history.database.reading() as connection:
        found = values_of(connection, nights.place, {branch, night.base}, {QPS}, [night.session_id])
        positions = step_positions(connection, nights.place, {branch, night.base})
    cells = {}
    for step in sorted(positions, key=lambda name: (positions[name], name)):
        old = found.get((night.base, step, QPS, night.session_id))
        new = found.get((branch, step, QPS, night.session_id))
        ratio = new / old if old and new else None
        if old is not None or new is not None:
            reason = "its rounds were pruned" if ratio else "not measured in this night"
            cells[step] = LadderCell(ratio, None, None, reason, old, new, has_rounds=False)
    if not cells:
        return None, {}
    column = LadderColumn(
        night.versions[branch], branch, night.uid, night.started_at, night.versions[night.base], cells
    )
    return column, dict.fromkeys(cells, "")
