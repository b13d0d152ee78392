"""The anomaly score of the last night: how improbable it is, given the level and the noise of each series.

If the nightly watch has estimated the noise of a series, that estimate is used. For a younger series the
level is the median of the nights since its last change. With at least MIN_NIGHTS of them the noise is their
scatter, pooled over the steps; with fewer it is the scatter of the rounds, which lacks the variation between
nights.
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

from history.changes.detection import rule_of, tonight
from history.changes.level_shift import StoredChange, level_starts
from history.comparison.pairs import pair_steps
from history.errors import stored_options, stored_version
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.stats.change_points import Known
from history.stats.distributions import student_tail
from history.stats.estimators import mean, variance
from history.stats.noise_model import Noise, pooled_noise, without_stalls
from history.stats.repeated_intervals import moderated
from history.store.schema import nights, sessions
from history.store.session_reads import bursts_of, runs_of
from suites.metrics import PRIMARY, judged_metrics

Array = NDArray[np.float64]

MIN_NIGHTS = 3
"""The nights of a level from which its noise is estimated at least."""

SUMMED = PRIMARY
"""The metric that is also scored as the mean over a group of steps."""


@dataclass(frozen=True)
class ScoredSeries:
    """A series that is scored, or the mean of the series of a group of steps."""

    metric: str
    steps: tuple[str, ...]
    series_ids: tuple[int, ...]

    @property
    def pool(self) -> tuple[str, bool]:
        """The key of the rows that share their noise."""
        return self.metric, len(self.steps) > 1


class BranchLogRatios:
    """The log ratios of a branch in one environment, up to its last night, which is called tonight.

    `logs` are of shape [rows, nights], nan in a gap. The first rows are series, the others groups of steps.
    """

    def __init__(
        self, matrix: SeriesMatrix, changes: Sequence[StoredChange], groups: Mapping[str, str]
    ) -> None:
        """Take the log ratios of a matrix; `groups` are the groups by step."""
        self.matrix = matrix
        logs = matrix.log_ratios()
        self.rows = [ScoredSeries(metric, (step,), (series_id,)) for series_id, step, metric in matrix.series]
        sums = []
        for group in dict.fromkeys(groups.values()):
            members = [
                row
                for row, (_, step, metric) in enumerate(matrix.series)
                if metric == SUMMED and groups.get(step) == group
            ]
            if len(members) > 1:
                steps, ids = zip(
                    *((matrix.series[row][1], matrix.series[row][0]) for row in members), strict=True
                )
                self.rows.append(ScoredSeries(SUMMED, steps, ids))
                sums.append(logs[members].mean(axis=0))
        self.logs: Array = np.vstack([logs, *sums]) if len(logs) else logs
        starts, tonight = level_starts(changes), matrix.nights[-1].started_at
        self._starts = [
            sorted({start for id_ in row.series_ids for start in starts.get(id_, ()) if start < tonight})
            for row in self.rows
        ]

    def columns(self, row: int) -> list[int]:
        """Return the columns of the nights of the present level that have a value, without tonight."""
        since = self._starts[row][-1] if self._starts[row] else None
        return [
            column
            for column, night in enumerate(self.matrix.nights[:-1])
            if (since is None or night.started_at >= since) and math.isfinite(self.logs[row, column])
        ]

    def earlier(self, row: int) -> list[float]:
        """Return the values at `columns`."""
        return [float(self.logs[row, column]) for column in self.columns(row)]

    def level(self, row: int) -> float | None:
        """Return the present level, the median without tonight; None without a value."""
        values = self.earlier(row)
        return median(values) if values else None

    def steps_of(self, row: int) -> tuple[str, ...]:
        """Return the steps of a row."""
        return self.rows[row].steps

    def earlier_levels(self) -> list[Known]:
        """Return the levels that earlier changes began, as input of the watch."""
        levels = []
        for row, starts in enumerate(self._starts):
            for start, end in pairwise([*starts, self.matrix.nights[-1].started_at]):
                columns = [
                    column
                    for column, night in enumerate(self.matrix.nights)
                    if start <= night.started_at < end
                ]
                values = self.logs[row, columns][np.isfinite(self.logs[row, columns])]
                if len(values):
                    levels.append(Known(row, columns[0], float(np.median(values))))
        return levels


@dataclass
class RoundNoise:
    """The log ratios of rounds, read on demand because there are many, which are rarely needed."""

    connection: Connection
    matrix: SeriesMatrix
    _read: dict[int, Mapping[tuple[str, str], list[float]]] = field(default_factory=dict)

    def of(self, night: Night, row: ScoredSeries) -> list[float]:
        """Return the rounds' log ratios of a series in a night; none for a group or a pruned night."""
        if len(row.steps) > 1:
            return []
        if night.session_id not in self._read:
            self._read[night.session_id] = self._rounds(night)
        return self._read[night.session_id].get((row.steps[0], row.metric), [])

    def _rounds(self, night: Night) -> dict[tuple[str, str], list[float]]:
        query = (
            select(nights.c.version, sessions.c.options)
            .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
            .where(nights.c.session_id == night.session_id, nights.c.branch == self.matrix.base)
        )
        row = self.connection.execute(query).first()
        if row is None:
            return {}
        base, bursts = row.version, bursts_of(self.connection, night.session_id, stored_options(row.options))
        both = (stored_version(base), stored_version(night.version))
        runs = runs_of(self.connection, night.session_id, both, judged_metrics())
        return {
            (step.step, metric): logs
            for step in pair_steps(runs, base, night.version, bursts)
            for metric in judged_metrics()
            if (logs := list(step.even_logs(metric) or ()))
        }


def tonight_probabilities(ratios: BranchLogRatios, noise: RoundNoise) -> Array:
    """Return the two-sided tail probability of each row's value tonight, [rows]; nan where unknown."""
    result = tonight([row.metric for row in ratios.rows], ratios.logs, ratios.earlier_levels())
    by_pool: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for row in np.flatnonzero(np.isnan(result) & np.isfinite(ratios.logs[:, -1])).tolist():
        if ratios.columns(row) and rule_of(ratios.rows[row].metric).by_noise:
            by_pool[ratios.rows[row].pool].append(row)
    for rows in by_pool.values():
        rounds = {row: noise.of(ratios.matrix.nights[-1], ratios.rows[row]) for row in rows}
        few = [row for row in rows if len(ratios.columns(row)) < MIN_NIGHTS]
        result[few] = _by_rounds(ratios, noise, few, rounds)
        rest = [row for row in rows if row not in few]
        result[rest] = _by_nights(ratios, rest, rounds)
    return result


def _by_nights(
    ratios: BranchLogRatios, rows: Sequence[int], tonight: Mapping[int, Sequence[float]]
) -> list[float]:
    """Return the probabilities by the scatter of the nights, with that of the rounds as prior."""
    values = [ratios.earlier(row) for row in rows]
    priors = pooled_noise(values, [_of_mean(tonight[row]) for row in rows])
    result = []
    for row, levels, prior in zip(rows, values, priors, strict=True):
        kept = levels if prior is None else without_stalls(levels, prior.sd)
        spread, df = moderated(variance(kept), len(kept) - 1, prior)
        distance = float(ratios.logs[row, -1]) - mean(kept)
        result.append(_both_tails(distance, spread * (1 + 1 / len(kept)), df))
    return result


def _by_rounds(
    ratios: BranchLogRatios, noise: RoundNoise, rows: Sequence[int], tonight: Mapping[int, Sequence[float]]
) -> list[float]:
    """Return the probabilities by the scatter of the rounds of tonight and of the night before it.

    The scatter is moderated over tonight's steps.
    """
    priors = pooled_noise([tonight[row] for row in rows])
    result = []
    for row, prior in zip(rows, priors, strict=True):
        new = tonight[row]
        old = noise.of(ratios.matrix.nights[ratios.columns(row)[-1]], ratios.rows[row])
        df = len(new) + len(old) - 2
        if min(len(new), len(old)) < 1 or df < 1:
            result.append(math.nan)
            continue
        own = ((len(new) - 1) * _variance(new) + (len(old) - 1) * _variance(old)) / df
        spread, df_all = moderated(own, df, prior)
        distance = float(ratios.logs[row, -1]) - median(ratios.earlier(row))
        result.append(_both_tails(distance, spread * (1 / len(new) + 1 / len(old)), df_all))
    return result


def _of_mean(rounds: Sequence[float]) -> Noise | None:
    """Return the noise of a night's value as estimated from its rounds; None when they do not scatter."""
    spread = _variance(rounds)
    return Noise(math.sqrt(spread / len(rounds)), len(rounds) - 1) if spread > 0 else None


def _variance(values: Sequence[float]) -> float:
    return variance(values) if len(values) > 1 else 0.0


def _both_tails(distance: float, spread: float, df: float) -> float:
    if spread <= 0:
        return float(distance == 0)
    return 2 * student_tail(abs(distance) / math.sqrt(spread), df)
