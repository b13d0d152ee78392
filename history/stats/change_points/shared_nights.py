"""Nights on which most series of a box moved together, for a night or two: the machine's, not a version's."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SERIES = 5
"""Series with a value: the median of fewer is moved by a few of them."""

FAR = 3.0
"""Standard deviations of a night by which the median series has to be off."""

REFERENCE_NIGHTS = 40
"""Earlier nights whose median and median deviation each series is measured against."""

LEAST_REFERENCE = 15

REFRESHED = 5
"""Nights after which these are worked out anew."""

ASSUMED = 0.5
ASSUMED_NIGHTS = 50.0
"""Shared nights in so many that are assumed before any is seen."""

RARE = 0.02
"""A run of shared nights of which a year holds fewer, at the share seen so far, is not left to chance."""

YEAR = 365
_DEVIATION = 1.4826
"""Standard deviation of normal values over their median deviation."""


def shared_moves(logs: Array) -> Array:
    """Return by how much the median series moved in the nights on which most moved together, [nights].

    `logs` are [series, nights], nan for a gap. The move is in their units, and 0 on other nights. A night
    that is the latest of a long run is one of a step that all series share, and not returned: runs are
    compared with those that the share of shared nights before them makes likely. What is returned for a night
    depends on later ones only as long as the run that it is in goes on.
    """
    moves, far = _moves(logs)
    seen, start = 0, 0
    for night in range(1, len(moves) + 1):
        if night < len(moves) and far[night] and far[start] and moves[night] * moves[start] > 0:
            continue
        if far[start]:
            share = (seen + ASSUMED) / (start + ASSUMED_NIGHTS)
            if YEAR * share ** (night - start) < RARE:
                far[start:night] = False
            seen += int(far[start:night].sum())
        start = night
    return np.where(far, moves, 0.0)


def _moves(logs: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The median move of each night, and whether most series moved far, in the same direction."""
    nights = logs.shape[1]
    moves, far = np.zeros(nights), np.zeros(nights, dtype=np.bool_)
    for start in range(LEAST_REFERENCE, nights, REFRESHED):
        earlier = logs[:, max(0, start - REFERENCE_NIGHTS) : start]
        some = np.isfinite(earlier).sum(axis=1) >= LEAST_REFERENCE
        if some.sum() < LEAST_SERIES:
            continue
        level = np.nanmedian(earlier[some], axis=1, keepdims=True)
        spread = _DEVIATION * np.nanmedian(np.abs(earlier[some] - level), axis=1, keepdims=True)
        block = logs[some, start : start + REFRESHED] - level
        block[np.broadcast_to(spread <= 0, block.shape)] = np.nan
        for column, move in enumerate(block.T):
            there = np.isfinite(move)
            if there.sum() >= LEAST_SERIES:
                distance = float(np.median(move[there] / spread[there, 0]))
                moves[start + column] = float(np.median(move[there]))
                far[start + column] = abs(distance) >= FAR
    return moves, far
