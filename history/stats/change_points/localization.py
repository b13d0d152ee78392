"""When a change that was raised began, and how large it is."""

import math
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.baseline import Baseline
from history.stats.change_points.change_point import COVERAGE, ChangePoint
from history.stats.estimators import MAD_TO_DEVIATION, ar1_inflation

Array = NDArray[np.float64]

STANDARD_ERRORS = 1.96
"""Half-width of a normal interval with COVERAGE."""

ROUNDS = 3
"""Of reweighting, after which a level of a few nights moves no more."""

LEVEL_NIGHTS = 110
"""Nights of a level, those nearest to the change, that its size is measured from."""

MIN_LEVEL = 3
"""Nights of a level without which a size is left as it was when the change was raised."""

NOT_SELECTED = 8
"""Nights after the one that raised a change from which on they alone measure it: they did not raise it."""

CUT = 3.0
"""Standard deviations from the median at which a night is cut."""


@dataclass(frozen=True)
class Located:
    """Positions among the values that were looked at, the new level, and the interval of the size."""

    position: int
    first: int
    last: int
    after: float
    low: float
    high: float


def located(values: Array, run: int, baseline: Baseline, column: int) -> Located:
    """Return the location of a change among the latest `values` of a segment.

    The evidence for the change is based on the last `run` values.

    The position maximises the likelihood of Student's t; its range holds COVERAGE of the likelihood over all
    positions (a uniform prior), flattened where nights correlate. At least one value is older than the
    change.
    """
    before = float(baseline.level[column])
    scale, degrees = float(baseline.scale[column]), 1 / float(baseline.inverse[column])
    correlation = float(baseline.correlation[column])
    inflation = ar1_inflation(correlation)
    position = max(len(values) - run, 1)
    after = location(values[position:], scale, degrees)
    for _ in range(2):  # the level moves the position a little, and the position the level
        ratios = _log_density(values - after, scale, degrees) - _log_density(values - before, scale, degrees)
        likelihood = np.cumsum(ratios[::-1])[::-1][1:] / inflation
        likeliest = int(likelihood.argmax()) + 1
        if likeliest == position:
            break
        position, after = likeliest, location(values[likeliest:], scale, degrees)
    weights = np.cumsum(np.exp(likelihood - likelihood.max()))
    weights /= weights[-1]
    tail = (1 - COVERAGE) / 2
    earliest = min(int(np.searchsorted(weights, tail)) + 1, position)
    latest = max(int(np.searchsorted(weights, 1 - tail)) + 1, position)
    share = 1 / (len(values) - position) + 1 / float(baseline.nights[column])
    margin = STANDARD_ERRORS * scale * float(baseline.deviation[column]) * math.sqrt(share * inflation)
    size = after - before
    return Located(position, earliest - 1, min(latest, len(values) - 1), after, size - margin, size + margin)


def location(values: Array, scale: float, degrees: float) -> float:
    """Return the location of Student's t by reweighting from the median."""
    level = float(median(values.tolist()))
    for _ in range(ROUNDS):
        weights = 1 / (degrees + ((values - level) / scale) ** 2)
        level = float((weights * values).sum() / weights.sum())
    return level


def _log_density(residual: Array, scale: float, degrees: float) -> Array:
    return np.asarray(-(degrees + 1) / 2 * np.log(degrees + (residual / scale) ** 2))


def measured_again(values: Array, change: ChangePoint, since: int, until: int) -> ChangePoint:
    """Return a change that the watch raised with levels and interval from all nights on both sides of it.

    `values` are those of all nights. The level before has lasted since night `since`, and the level after
    until night `until`, inclusive. The nights that raised a change make it look larger than it is, so that
    only later ones count as soon as there are enough.
    """
    assert change.raised is not None
    before = values[max(since, change.first - LEVEL_NIGHTS + 1) : change.first + 1]
    later = values[change.raised + 1 : until + 1]
    after = later if np.isfinite(later).sum() >= NOT_SELECTED else values[change.last : until + 1]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)][:LEVEL_NIGHTS]
    if min(len(before), len(after)) < MIN_LEVEL:
        return change
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(before - np.median(before))))
    levels, residuals = [], []
    for nights in (before, after):
        middle = np.median(nights)
        cut = np.clip(nights, middle - CUT * deviation, middle + CUT * deviation) if deviation else nights
        levels.append(float(cut.mean()))
        residuals.append(cut - cut.mean())
    spread = float(sum(residual @ residual for residual in residuals)) / (len(before) + len(after) - 2)
    beside = float(sum(residual[1:] @ residual[:-1] for residual in residuals)) / (
        len(before) + len(after) - 2
    )
    correlation = min(max(beside / spread, 0.0), 0.9) if spread > 0 else 0.0
    inflation = ar1_inflation(correlation)
    margin = STANDARD_ERRORS * math.sqrt(spread * inflation * (1 / len(before) + 1 / len(after)))
    size = levels[1] - levels[0]
    if size * change.size <= 0:
        return change
    return replace(change, before=levels[0], after=levels[1], low=size - margin, high=size + margin)
