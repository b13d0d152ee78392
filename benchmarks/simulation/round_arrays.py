"""Which rounds of arrays (suites, steps, rounds) count, and their moments: a vectorised copy of a part of
history.stats.noise_model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from history.stats import noise_model
from history.stats.estimators import MAD_TO_DEVIATION

Array = NDArray[Any]


def were_run(logs: Array, counts: Array) -> Array:
    """Return the mask of the rounds that were run: so many of each step."""
    return np.arange(logs.shape[2]) < counts[:, :, None]


def _median(values: Array, counts: Array) -> Array:
    """Return the medians of the first `counts` values in order; the others are infinite."""
    ordered = np.sort(values, axis=2)
    low = np.take_along_axis(ordered, ((counts - 1) // 2)[:, :, None], axis=2)
    high = np.take_along_axis(ordered, (counts // 2)[:, :, None], axis=2)
    return np.asarray((low + high)[:, :, 0] / 2)


def _distances(logs: Array, counts: Array) -> Array:
    """Return the distances from the median of a step; infinite for rounds that were not run."""
    there = were_run(logs, counts)
    middle = _median(np.where(there, logs, np.inf), counts)
    return np.where(there, np.abs(logs - middle[:, :, None]), np.inf)


def robust_deviations(logs: Array, counts: Array) -> Array:
    """(suites, steps): the deviations of rounds by their median distance from the median."""
    return _deviation_of(_distances(logs, counts), counts)


def _deviation_of(distances: Array, counts: Array) -> Array:
    small = np.array(noise_model.MAD_FACTORS)
    factor = np.where(counts < len(small), small[np.minimum(counts, len(small) - 1)], counts / (counts - 0.8))
    return MAD_TO_DEVIATION * factor * _median(distances, counts)


def without_stalls(logs: Array, counts: Array, deviation: Array) -> Array:
    """Return the mask of the rounds that were run and are not stalled."""
    distances = _distances(logs, counts)
    cut = noise_model.STALL_DEVIATIONS * np.maximum(deviation, _deviation_of(distances, counts))
    there = were_run(logs, counts)
    kept = there & (distances <= cut[:, :, None])
    allowed = np.minimum(
        np.maximum(1, (counts * noise_model.STALL_SHARE).astype(int)), counts - noise_model.MIN_KEPT
    )
    many = counts - kept.sum(axis=2) > allowed
    return np.where(many[:, :, None], there, kept)


def moments(logs: Array, kept: Array) -> tuple[Array, Array, Array]:
    """(suites, steps): the means, the variances and the numbers of the rounds that are kept."""
    number = kept.sum(axis=2)
    mean = np.where(kept, logs, 0).sum(axis=2) / number
    square = np.where(kept, (logs - mean[:, :, None]) ** 2, 0).sum(axis=2)
    return mean, square / (number - 1), number


def in_order(logs: Array, kept: Array) -> tuple[Array, Array, Array]:
    """Return the kept rounds first, in order, followed by zeros; a mask of them; and their number."""
    together = np.take_along_axis(logs, np.argsort(~kept, axis=2, kind="stable"), axis=2)
    number = kept.sum(axis=2)
    there = np.arange(logs.shape[2]) < number[:, :, None]
    return np.where(there, together, 0), there, number
