"""Notes on a box: its noise changed, or most of its series moved together, for some nights or for good.

Both are the machine's, not a version's: they are noted, and are no changes. No issue is opened for them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from history.changes.boxes.shared_steps import SharedStep, SharedSteps
from history.changes.detection import rule_of
from history.series.matrix import SeriesMatrix, judged_matrices
from history.series.series import Night
from history.stats.change_points import shared_moves
from history.store.records import Environment
from suites.metrics import judged_metrics

Array = NDArray[np.float64]

NOISE_NIGHTS = 200
"""The latest nights in which a change of the noise is looked for."""

SHARED_SHOWN = 30
"""The latest nights whose shared moves are noted."""

MIN_SERIES = 5
"""Series from whose differences the noise of a night is taken, at least."""

MIN_FACTOR = 1.25
"""By which the noise has to differ, up or down, to be noted,"""

STANDARD_ERRORS = 5.5
"""and by how many standard errors: the nights at which it may have changed are many, and neighbours alike."""

MIN_BEFORE = 20
MIN_SINCE = 7
"""Nights before and since that it takes."""

_MIN_DIFFERENCE = 0.05
"""Of the usual difference of two nights: less is taken for so much, because its logarithm has no bound."""


@dataclass(frozen=True)
class NoiseChange:
    """The noise of the series of a branch in one environment changed."""

    environment: Environment
    branch: str
    since: Night
    """The first night with the new noise, as estimated."""

    factor: float
    """Noise since then over that before."""

    series: int


@dataclass(frozen=True)
class SharedNight:
    """Most series of a metric moved together, for a night or two."""

    environment: Environment
    branch: str
    metric: str
    night: Night
    move: float
    """How far the median series moved, as a fraction."""

    series: int


BoxNote = NoiseChange | SharedNight | SharedStep


def read_box_notes(connection: Connection) -> tuple[BoxNote, ...]:
    """Return the notes on all boxes, from their latest nights."""
    metrics = [metric for metric in judged_metrics() if rule_of(metric).by_noise]
    matrices = list(judged_matrices(connection, NOISE_NIGHTS, metrics))
    return notes_on_boxes(matrices, SharedSteps(connection, matrices))


def notes_on_boxes(matrices: Sequence[SeriesMatrix], shared: SharedSteps) -> tuple[BoxNote, ...]:
    """Return the notes on all boxes, with the latest of `shared` first."""
    return (*shared.latest(SHARED_SHOWN), *(note for matrix in matrices for note in box_notes(matrix)))


def box_notes(matrix: SeriesMatrix) -> tuple[NoiseChange | SharedNight, ...]:
    """Return the notes on the latest nights of a matrix; past commits were not measured at their dates."""
    columns = [column for column, night in enumerate(matrix.nights) if night.measured_at is None][
        -NOISE_NIGHTS:
    ]
    rows = [row for row, (_, _, metric) in enumerate(matrix.series) if rule_of(metric).by_noise]
    latest = replace(
        matrix,
        nights=tuple(matrix.nights[column] for column in columns),
        series=tuple(matrix.series[row] for row in rows),
        ratios=matrix.ratios[np.ix_(rows, columns)],
    )
    return (*_noise_change(latest), *_shared_nights(latest))


def rows_by_metric(matrix: SeriesMatrix) -> dict[str, list[int]]:
    """Return the rows of each metric: what moves one may leave another where it is."""
    rows: dict[str, list[int]] = {}
    for row, (_, _, metric) in enumerate(matrix.series):
        rows.setdefault(metric, []).append(row)
    return rows


def without_shared(matrix: SeriesMatrix) -> Array:
    """Return the log ratios, [series, nights], with gaps where most series of the metric moved together.

    What is not weighed against noise has no such gaps: a machine does not move it.
    """
    logs = matrix.log_ratios()
    for metric, rows in rows_by_metric(matrix).items():
        if not rule_of(metric).by_noise:
            continue
        shared = shared_moves(logs[rows]) != 0
        logs[np.ix_(np.array(rows), np.flatnonzero(shared))] = np.nan
    return logs


def _noise_change(matrix: SeriesMatrix) -> Iterator[NoiseChange]:
    logs = matrix.log_ratios()
    found = _likeliest_change(_noise_of_nights(logs))
    if found is not None:
        column, factor = found
        yield NoiseChange(matrix.environment, matrix.branch, matrix.nights[column], factor, len(logs))


def _likeliest_change(noise: Array) -> tuple[int, float] | None:
    """Return the night from which on the noise differs most, and by what factor; None where none is sure.

    `noise` is logarithmic, [nights]. The largest difference of two means, in standard errors.
    """
    nights = np.flatnonzero(np.isfinite(noise))
    values = noise[nights]
    counts = np.arange(MIN_BEFORE, len(values) - MIN_SINCE + 1)
    if not len(counts):
        return None
    sums, squares = np.cumsum(values), np.cumsum(values * values)
    before, since = sums[counts - 1] / counts, (sums[-1] - sums[counts - 1]) / (len(values) - counts)
    within = squares[-1] - counts * before**2 - (len(values) - counts) * since**2
    error = np.sqrt(within / (len(values) - 2) * (1 / counts + 1 / (len(values) - counts)))
    size = since - before
    errors = np.abs(size) / np.maximum(error, np.finfo(np.float64).tiny)
    best = int(errors.argmax())
    if errors[best] < STANDARD_ERRORS or abs(size[best]) < math.log(MIN_FACTOR):
        return None
    return int(nights[counts[best]]), math.exp(float(size[best]))


def _noise_of_nights(logs: Array) -> Array:
    """Return the logarithm of each night's noise over the usual, [nights]; nan where too few series tell.

    `logs` are [series, nights]. It is the mean over series of the logarithm of the difference from the night
    before, over that series' median difference: what all of them share, and no level shifts.
    """
    differences = np.abs(np.diff(logs, axis=1, prepend=np.nan))
    known = np.isfinite(differences).sum(axis=1) > 1
    differences = differences[known]
    if len(differences) < MIN_SERIES:
        return np.full(logs.shape[1], np.nan)
    usual = np.nanmedian(differences, axis=1, keepdims=True)
    moving = usual[:, 0] > 0
    relative = differences[moving] / usual[moving]
    sizes = np.log(np.maximum(relative, _MIN_DIFFERENCE))
    told = np.isfinite(sizes).sum(axis=0) >= MIN_SERIES
    noise = np.full(logs.shape[1], np.nan)
    noise[told] = np.nanmean(sizes[:, told], axis=0)
    return noise


def _shared_nights(matrix: SeriesMatrix) -> Iterator[SharedNight]:
    logs = matrix.log_ratios()
    earliest = len(matrix.nights) - SHARED_SHOWN
    for metric, rows in rows_by_metric(matrix).items():
        moves = shared_moves(logs[rows])
        for column in np.flatnonzero(moves).tolist():
            if column >= earliest:
                yield SharedNight(
                    matrix.environment,
                    matrix.branch,
                    metric,
                    matrix.nights[column],
                    math.expm1(float(moves[column])),
                    int(np.isfinite(logs[rows, column]).sum()),
                )
