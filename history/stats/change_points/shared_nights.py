"""Nights on which most series of a box moved together, for a night or two: the machine's, not a version's."""

import math

import numpy as np
from numpy.typing import NDArray

from history.stats.estimators import MAD_TO_DEVIATION

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MIN_SERIES = 5
"""Series with a value: the median of fewer is moved by a few of them."""

FAR = 3.0
"""Standard deviations of a night by which the median series has to be off."""

BACK = 1.5
"""Standard deviations below which it has come back: nights in between go on with the run that they follow."""

REFERENCE_NIGHTS = 40
"""Earlier nights whose median and median deviation each series is measured against, without shared ones."""

MIN_REFERENCE = 15

REFRESHED = 5
"""Nights after which these are worked out anew."""

ASSUMED = 0.5
ASSUMED_NIGHTS = 50.0
"""Shared nights in so many that are assumed before any is seen."""

RARE = 0.02
"""A run of shared nights of which a year holds fewer, at the share seen so far, is not left to chance."""

YEAR = 365


def shared_moves(logs: Array) -> Array:
    """Return by how much the median series moved in the nights on which most moved together, [nights].

    `logs` are [series, nights], nan for a gap. The move is in their units, and 0 on other nights. A night
    that is the latest of a long run is one of a step that all series share, and not returned: runs are
    compared with those that the shared nights before them make likely. What is returned for a night depends
    on later ones only as long as the run that it is in goes on.
    """
    nights = logs.shape[1]
    moves, distances = np.zeros(nights), np.zeros(nights)
    shared = np.zeros(nights, dtype=np.bool_)
    """Of the runs that have ended."""
    start = MIN_REFERENCE
    for block in range(MIN_REFERENCE, nights, REFRESHED):
        some = slice(block, min(block + REFRESHED, nights))
        moves[some], distances[some] = _moves(logs, shared, some)
        for night in range(some.start, some.stop):
            if not _goes_on(distances, start, night):
                _end_run(shared, distances, start, night)
                start = night
    _end_run(shared, distances, start, nights)
    return np.where(shared, moves, 0.0)


def _goes_on(distances: Array, start: int, night: int) -> bool:
    """Whether a night is one of the run of far nights from `start` on."""
    first = distances[start]
    return bool(abs(first) >= FAR and distances[night] * np.sign(first) >= BACK)


def _end_run(shared: Mask, distances: Array, start: int, end: int) -> None:
    """Mark the far nights of a run as shared, unless it is too long for chance: then it is a step."""
    if start >= end or abs(distances[start]) < FAR:
        return
    far = np.abs(distances[start:end]) >= FAR
    earlier = int(shared[:start].sum())
    # A standard error more than seen: it is runs that the share makes too rare that are taken for a step.
    share = (earlier + ASSUMED + math.sqrt(earlier)) / (start + ASSUMED_NIGHTS)
    if YEAR * share ** (end - start) >= RARE:
        shared[start:end] = far


def _moves(logs: Array, shared: Mask, some: slice) -> tuple[Array, Array]:
    """Return the median move of some nights, and by how many deviations the median series is off, [nights].

    Both are 0 where too few series tell.
    """
    moves, distances = np.zeros(some.stop - some.start), np.zeros(some.stop - some.start)
    since = max(0, some.start - REFERENCE_NIGHTS)
    earlier = logs[:, since : some.start][:, ~shared[since : some.start]]
    known = np.isfinite(earlier).sum(axis=1) >= MIN_REFERENCE
    if known.sum() < MIN_SERIES:
        return moves, distances
    level = row_medians(earlier[known])[:, np.newaxis]
    spread = MAD_TO_DEVIATION * row_medians(np.abs(earlier[known] - level))[:, np.newaxis]
    block = logs[known, some] - level
    block[np.broadcast_to(spread <= 0, block.shape)] = np.nan
    told = np.isfinite(block).sum(axis=0) >= MIN_SERIES
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = block / spread
    moves[told] = row_medians(block[:, told].T)
    distances[told] = row_medians(relative[:, told].T)
    return moves, distances


def row_medians(values: Array) -> Array:
    """Return the median of each row without its gaps; nan for a row of gaps.

    As numpy.nanmedian, which takes ten times as long for rows of 40 values.
    """
    ordered = np.sort(values, axis=1)  # gaps come last
    counts = np.isfinite(ordered).sum(axis=1)
    rows, middle = np.arange(len(ordered)), np.maximum(counts - 1, 0)
    medians: Array = (ordered[rows, middle // 2] + ordered[rows, (middle + 1) // 2]) / 2
    return medians
