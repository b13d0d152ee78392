"""Nights of many series whose suspects are measured again the same night, and what comes of it.

A suspicion is decided by interleaved rounds with noise of their own, whose standard deviation is that of a
night, until the sequential intervals of a confirming session are decided. Generators are those of
detection_series.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.detection_series import CENSORED, NIGHTS, SIGMA, Array, Kind, one_step
from benchmarks.simulation.vectorised import IMPROVEMENT, REGRESSION, run_suites
from history.changes.confirmation import FALSE_SUSPECTS_A_NIGHT, METRIC_CONFIDENCE, WAYS_OF_SUSPICION
from history.stats.change_points import measured_again, watch_many
from history.stats.change_points.online_cusum import Watchers
from history.stats.change_points.suspicion import chance_of
from history.stats.repeated_intervals import Design

BOX_SERIES = 300
"""The series of each of the ten boxes of a team of 3,000."""

PRACTICAL = 0.02
"""The practical threshold, as a fraction: half of it is what a suspect differs by."""

SETTLED = 60
"""The first night whose suspects are counted: before it, series are too young to have any."""

ROUNDS = (3, 20)

NEARBY = 5
"""Nights by which a change that is raised may miss the step that it is compared with."""


@dataclass(frozen=True)
class Suspicions:
    """The suspicions in some series: [series, nights], and the last night before each that surely was old."""

    raised: NDArray[np.bool_]
    first: NDArray[np.int64]


def suspicions(values: Array, series_of_box: int) -> Suspicions:
    """Return the suspicions in `values` [series, nights]; what one has asked is not asked again."""
    limit = FALSE_SUSPECTS_A_NIGHT / WAYS_OF_SUSPICION / series_of_box
    watchers = Watchers(len(values))
    raised, first = np.zeros(values.shape, dtype=np.bool_), np.full(values.shape, -1)
    for night, tonight in enumerate(np.ascontiguousarray(values.T)):
        alone = watchers.tail_probability(tonight) <= limit
        far = np.abs(tonight - watchers.levels) > PRACTICAL / 2
        changes = dict(watchers.take(tonight))
        together = np.array([chance_of(excess) <= limit for excess in watchers.excess.tolist()])
        for column in np.flatnonzero((alone & far) | (together & np.isfinite(tonight))).tolist():
            change = changes.get(column)
            if change is None and together[column]:
                change = watchers.describe(column)
            if change is None or abs(change.size) > PRACTICAL / 2:
                raised[column, night] = True
                first[column, night] = night - 1 if change is None else change.first
                watchers.begin_level(column, np.nan)
    return Suspicions(raised, first)


def false_suspects(kind: Kind, seed: tuple[int, ...], series: int, series_of_box: int) -> float:
    """Return the mean number of suspects in a quiet night of a box."""
    values = kind(np.random.default_rng(seed), (series, NIGHTS))
    return float(suspicions(values, series_of_box).raised[:, SETTLED:].mean()) * series_of_box


def confirmed_share(size: float, seed: tuple[int, ...], sessions: int) -> float:
    """Return the share of sessions of one step that find a change; `size` is a logarithm, 0 for none."""
    rounds = SIGMA * np.random.default_rng(seed).standard_normal((sessions, 1, ROUNDS[1])) + size
    found = run_suites(rounds, Design(1, *ROUNDS, METRIC_CONFIDENCE), PRACTICAL)
    return float(np.isin(found.verdict, (REGRESSION, IMPROVEMENT)).mean())


def delays(
    kind: Kind, seed: tuple[int, ...], series: int, size: float, series_of_box: int, lasts: int = CENSORED
) -> Array:
    """Return the nights until a step of `size` standard deviations is confirmed, [series]; at most CENSORED.

    It is gone after `lasts` nights. A session that compares two nights after the step finds nothing.
    """
    stepped = one_step(kind, seed, series, size)
    found = np.full(series, float(CENSORED))
    share = confirmed_share(SIGMA * size, (*seed, 1), 4_000)
    rng = np.random.default_rng((*seed, 2))
    values = stepped.values.copy()
    at = np.array([nights[0] for nights in stepped.steps])
    if lasts < CENSORED:
        quiet = kind(np.random.default_rng(seed), (series, NIGHTS))
        over = np.arange(NIGHTS) >= (at + lasts)[:, None]
        values = np.where(over, quiet, values)
    suspected = suspicions(values, series_of_box)
    for row, night in enumerate(at.tolist()):
        for since in np.flatnonzero(suspected.raised[row, night : night + lasts]).tolist():
            if suspected.first[row, night + since] < night and rng.random() < share:
                found[row] = since + 1
                break
    return found


def sizes(
    kind: Kind, seed: tuple[int, ...], series: int, size: float, false_share: float, later: int
) -> tuple[float, float]:
    """Return the mean size over the truth, and the share of intervals that hold it, of raised steps.

    They are measured `later` nights after the one that raised them.
    """
    stepped = one_step(kind, seed, series, size)
    ratios, held = [], []
    for row, changes in enumerate(watch_many(stepped.values, false_share)):
        for change in changes:
            assert change.raised is not None
            night = change.raised + later
            if abs(change.index - stepped.steps[row][0]) > NEARBY or night >= NIGHTS:
                continue
            again = measured_again(stepped.values[row], change, 0, night)
            truth = float(np.copysign(SIGMA * size, change.size))
            ratios.append(again.size / truth)
            held.append(again.low <= truth <= again.high)
    return float(np.mean(ratios)), float(np.mean(held))
