"""How improbable the last night of each series of a branch is, by what is known of its level and noise.

A series whose noise the watch knows is held against that. Of a younger one the nights since its last change
say the level, and with at least LEAST_NIGHTS of them their scatter, pooled over the steps, the noise; with
fewer the scatter of the rounds stands for it, in which what nights differ by is missing.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from build.version import parse_version
from history.changes.confirm import level_starts
from history.changes.repository import Change
from history.comparison.pairs import pair_steps
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.stats.change_points import Known, tail_probabilities
from history.stats.distributions import student_tail
from history.stats.estimators import mean, variance
from history.stats.noise_model import Noise, pooled_noise, without_stalls
from history.stats.repeated_intervals import moderated
from history.store.schema import nights
from history.store.session_reads import runs_of
from suites.metrics import PRIMARY, judged_metrics

Array = NDArray[np.float64]

LEAST_NIGHTS = 3
"""Of a level, below which the scatter of its nights says nothing."""

SUMMED = PRIMARY
"""The metric that is looked at over a group of steps together, too."""


@dataclass(frozen=True)
class Row:
    """A series, or the mean of a group's."""

    metric: str
    steps: tuple[str, ...]
    series_ids: tuple[int, ...]

    @property
    def pool(self) -> tuple[str, bool]:
        """Rows that have noise in common."""
        return self.metric, len(self.steps) > 1


class Line:
    """A branch at a place up to tonight, its last night.

    `logs` are log ratios of shape (rows, nights), nan in a gap: the series, then the groups of steps.
    """

    def __init__(self, matrix: SeriesMatrix, known: Sequence[Change], groups: Mapping[str, str]) -> None:
        """`groups` are step to group."""
        self.matrix = matrix
        logs = np.full_like(matrix.ratios, np.nan)
        np.log(matrix.ratios, out=logs, where=matrix.ratios > 0)
        self.rows = [Row(metric, (step,), (series_id,)) for series_id, step, metric in matrix.series]
        sums = []
        for group in dict.fromkeys(groups.values()):
            its = [
                place
                for place, (_, step, metric) in enumerate(matrix.series)
                if metric == SUMMED and groups.get(step) == group
            ]
            if len(its) > 1:
                steps, ids = zip(
                    *((matrix.series[place][1], matrix.series[place][0]) for place in its), strict=True
                )
                self.rows.append(Row(SUMMED, steps, ids))
                sums.append(logs[its].mean(axis=0))
        self.logs: Array = np.vstack([logs, *sums]) if len(logs) else logs
        starts, tonight = level_starts(known), matrix.nights[-1].started_at
        self._starts = [
            sorted({each for id_ in row.series_ids for each in starts.get(id_, ()) if each < tonight})
            for row in self.rows
        ]

    def columns(self, row: int) -> list[int]:
        """The nights of the present level that have a value, tonight's left out."""
        since = self._starts[row][-1] if self._starts[row] else None
        return [
            column
            for column, night in enumerate(self.matrix.nights[:-1])
            if (since is None or night.started_at >= since) and math.isfinite(self.logs[row, column])
        ]

    def earlier(self, row: int) -> list[float]:
        """Their values."""
        return [float(self.logs[row, column]) for column in self.columns(row)]

    def level(self, row: int) -> float | None:
        """The present level, without tonight; None without a value."""
        values = self.earlier(row)
        return median(values) if values else None

    def steps_of(self, row: int) -> tuple[str, ...]:
        """What a row is of."""
        return self.rows[row].steps

    def known(self) -> list[Known]:
        """The levels that known changes began, for the watch."""
        found = []
        for row, starts in enumerate(self._starts):
            for start, end in pairwise([*starts, self.matrix.nights[-1].started_at]):
                its = [
                    column
                    for column, night in enumerate(self.matrix.nights)
                    if start <= night.started_at < end
                ]
                values = self.logs[row, its][np.isfinite(self.logs[row, its])]
                if len(values):
                    found.append(Known(row, its[0], float(np.median(values))))
        return found


@dataclass
class RoundNoise:
    """The log ratios of rounds, read on demand: they are many, and mostly not needed."""

    connection: Connection
    matrix: SeriesMatrix
    _read: dict[int, Mapping[tuple[str, str], list[float]]] = field(default_factory=dict)

    def of(self, night: Night, row: Row) -> list[float]:
        """The rounds of a series in a night; none of a group, and of a night that was pruned."""
        if len(row.steps) > 1:
            return []
        if night.session_id not in self._read:
            self._read[night.session_id] = self._rounds(night)
        return self._read[night.session_id].get((row.steps[0], row.metric), [])

    def _rounds(self, night: Night) -> dict[tuple[str, str], list[float]]:
        query = select(nights.c.version).where(
            nights.c.session_id == night.session_id, nights.c.branch == self.matrix.base
        )
        base = self.connection.execute(query).scalar()
        if base is None:
            return {}
        both = (parse_version(base), parse_version(night.version))
        runs = runs_of(self.connection, night.session_id, both, judged_metrics())
        return {
            (step.step, metric): logs
            for step in pair_steps(runs, base, night.version)
            for metric in judged_metrics()
            if (logs := list(step.log_ratios(metric) or ()))
        }


def probabilities(line: Line, noise: RoundNoise) -> Array:
    """How probable it is for each row to lie so far from its level tonight, either way; nan where unknown."""
    found = tail_probabilities(line.logs, line.known())
    by_pool: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for row in np.flatnonzero(np.isnan(found) & np.isfinite(line.logs[:, -1])).tolist():
        if line.columns(row):
            by_pool[line.rows[row].pool].append(row)
    for rows in by_pool.values():
        tonight = {row: noise.of(line.matrix.nights[-1], line.rows[row]) for row in rows}
        few = [row for row in rows if len(line.columns(row)) < LEAST_NIGHTS]
        found[few] = _by_rounds(line, noise, few, tonight)
        rest = [row for row in rows if row not in few]
        found[rest] = _by_nights(line, rest, tonight)
    return found


def _by_nights(line: Line, rows: Sequence[int], tonight: Mapping[int, Sequence[float]]) -> list[float]:
    """From the scatter of the nights; that of the rounds says by how much steps differ in it."""
    values = [line.earlier(row) for row in rows]
    priors = pooled_noise(values, [_of_mean(tonight[row]) for row in rows])
    found = []
    for row, its, prior in zip(rows, values, priors, strict=True):
        kept = its if prior is None else without_stalls(its, prior.sd)
        spread, df = moderated(variance(kept), len(kept) - 1, prior)
        distance = float(line.logs[row, -1]) - mean(kept)
        found.append(_both_tails(distance, spread * (1 + 1 / len(kept)), df))
    return found


def _by_rounds(
    line: Line, noise: RoundNoise, rows: Sequence[int], tonight: Mapping[int, Sequence[float]]
) -> list[float]:
    """From the scatter of the rounds of both nights, moderated over the steps of tonight."""
    priors = pooled_noise([tonight[row] for row in rows])
    found = []
    for row, prior in zip(rows, priors, strict=True):
        new = tonight[row]
        old = noise.of(line.matrix.nights[line.columns(row)[-1]], line.rows[row])
        df = len(new) + len(old) - 2
        if min(len(new), len(old)) < 1 or df < 1:
            found.append(math.nan)
            continue
        own = ((len(new) - 1) * _variance(new) + (len(old) - 1) * _variance(old)) / df
        spread, df_all = moderated(own, df, prior)
        distance = float(line.logs[row, -1]) - median(line.earlier(row))
        found.append(_both_tails(distance, spread * (1 / len(new) + 1 / len(old)), df_all))
    return found


def _of_mean(rounds: Sequence[float]) -> Noise | None:
    """The noise of a night's value, as far as its rounds show it."""
    spread = _variance(rounds)
    return Noise(math.sqrt(spread / len(rounds)), len(rounds) - 1) if spread > 0 else None


def _variance(values: Sequence[float]) -> float:
    return variance(values) if len(values) > 1 else 0.0


def _both_tails(distance: float, spread: float, df: float) -> float:
    if spread <= 0:
        return float(distance == 0)
    return 2 * student_tail(abs(distance) / math.sqrt(spread), df)
