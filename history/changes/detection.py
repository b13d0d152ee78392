"""The two ways in which series are searched for changes: by evidence against noise, and by size."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from history.series.matrix import SeriesMatrix
from history.stats.change_points import (
    ChangePoint,
    Known,
    StepEvidence,
    StepRule,
    evidence_tonight,
    step_probabilities,
    tail_probabilities,
    watch_many,
    watch_steps,
)
from suites.metrics import METRICS

Array = NDArray[np.float64]

SUSPECT_SHARE = 0.8
"""The share of a metric's own threshold from which on a step is a suspect, whose size is then measured."""

HALF = 0.5
"""The share of the practical threshold from which on a value is a suspect, if it is improbable enough."""


@dataclass(frozen=True)
class DetectionRule:
    """How series are watched for changes and screened for suspects; values are log ratios to the base."""

    watch: Callable[[Array, str, float, Sequence[Known]], list[tuple[ChangePoint, ...]]]
    """Returns the changes in the rows of a matrix of one or more metrics: matrix [series, nights], a metric,
    the share of quiet series-years with a false change, and known levels."""

    tonight: Callable[[Array, str, Sequence[Known]], Array]
    """Returns the two-sided probabilities of the last night, [series], nan where the rows do not tell."""

    suspect: Callable[[str, float, float], tuple[float, float]]
    """Returns the probability up to which, and the log ratio to the level beyond which, a value is a suspect:
    from its metric, the probability that the number of series allows, and the practical threshold."""

    by_noise: bool
    """Whether it weighs values against the noise of the machine, so that its series share false alarms, and
    nights on which most of them moved together are left out."""


def _watch_steps(
    logs: Array, metric: str, false_share: float, known: Sequence[Known]
) -> list[tuple[ChangePoint, ...]]:
    return watch_steps(logs, step_rule(metric), known)


def step_rule(metric: str) -> StepRule:
    """Return the rule of a metric that is searched for steps, from its row."""
    row = METRICS[metric]
    assert row.threshold_percent is not None
    return StepRule(math.log1p(row.threshold_percent / 100), row.scatter.typical)


BY_EVIDENCE = DetectionRule(
    watch=lambda logs, metric, false_share, known: watch_many(logs, false_share, known),
    tonight=lambda logs, metric, known: tail_probabilities(logs, known),
    suspect=lambda metric, limit, least: (limit, -math.log1p(-least) * HALF),
    by_noise=True,
)
"""By evidence that adds up over nights, against the noise that the series has shown."""

BY_STEP = DetectionRule(
    watch=_watch_steps,
    tonight=lambda logs, metric, known: step_probabilities(logs, step_rule(metric), known),
    suspect=lambda metric, limit, least: (1.0, SUSPECT_SHARE * step_rule(metric).threshold),
    by_noise=False,
)
"""By the size of a step alone, for what is counted, which hardly scatters."""


def rule_of(metric: str) -> DetectionRule:
    """Return how the series of a metric are searched."""
    return BY_STEP if METRICS[metric].is_counted else BY_EVIDENCE


def watched(
    matrix: SeriesMatrix, logs: Array, false_share: float, known: Sequence[Known]
) -> list[tuple[ChangePoint, ...]]:
    """Return the changes in each row of a matrix, each by the rule of its metric.

    `logs` are its log ratios, [series, nights], with gaps on the nights that are left out.
    """
    found: list[tuple[ChangePoint, ...]] = [()] * len(logs)
    for metric, rows in rows_by_rule(metric for _, _, metric in matrix.series):
        points = rule_of(metric).watch(logs[rows], metric, false_share, _within(rows, known))
        for row, its_points in zip(rows, points, strict=True):
            found[row] = its_points
    return found


def tonight(metrics: Sequence[str], logs: Array, known: Sequence[Known]) -> Array:
    """Return the two-sided probability of each row's last night, [rows], by the rule of its metric.

    `metrics` are those of the rows of `logs` [rows, nights]. nan where unknown.
    """
    found = np.full(len(logs), np.nan)
    for metric, rows in rows_by_rule(metrics):
        found[rows] = rule_of(metric).tonight(logs[rows], metric, _within(rows, known))
    return found


def evidence(metrics: Sequence[str], logs: Array, known: Sequence[Known]) -> list[StepEvidence | None]:
    """Return the evidence of the latest nights in each row, as `tonight`; None by a rule without noise."""
    found: list[StepEvidence | None] = [None] * len(logs)
    rows = [row for row, metric in enumerate(metrics) if rule_of(metric).by_noise]
    for row, its_evidence in zip(rows, evidence_tonight(logs[rows], _within(rows, known)), strict=True):
        found[row] = its_evidence
    return found


def rows_by_rule(metrics: Iterable[str]) -> list[tuple[str, list[int]]]:
    """Return a metric and the rows that are searched together: all by noise, of others each metric alone."""
    groups: dict[str, tuple[str, list[int]]] = {}
    for row, metric in enumerate(metrics):
        key = "" if rule_of(metric).by_noise else metric
        groups.setdefault(key, (metric, []))[1].append(row)
    return list(groups.values())


def _within(rows: Sequence[int], known: Sequence[Known]) -> list[Known]:
    """Return the known levels of some rows, numbered as these are among themselves."""
    place = {row: number for number, row in enumerate(rows)}
    return [replace(level, row=place[level.row]) for level in known if level.row in place]
