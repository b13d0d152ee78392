"""The sequential procedure over arrays of suites: a vectorised copy of repeated_intervals and noise_model.

It is used only for simulations. tests/benchmarks/test_vectorised.py verifies that its results equal
those of the product, round by round. Arrays are (suites, steps) or (suites, steps, rounds).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from history.stats import noise_model
from history.stats.repeated_intervals import Design

Array = NDArray[Any]

UNDECIDED, REGRESSION, IMPROVEMENT, UNCHANGED = range(4)


@dataclass(frozen=True)
class SimulatedOutcome:
    """The result of each step of each suite."""

    verdict: Array
    """(suites, steps): UNDECIDED, REGRESSION, IMPROVEMENT or UNCHANGED."""

    rounds: Array
    """(suites, steps): rounds that were run until the verdict, or the cap."""

    missed: Array
    """(suites, steps): whether the interval missed the truth at any look, if a truth was given."""


@dataclass(frozen=True)
class VectorPriors:
    """history.stats.noise_model.Noise per (suite, step); sd and df are NaN where there is none."""

    sd: Array
    df: Array
    correlation: Array
    """(suites, 1): one for all steps of a suite."""


@dataclass(frozen=True)
class Calibration:
    """Noise per (suite, step) of a calibration, for all steps."""

    sd: Array
    df: float


def run_suites(
    logs: Array,
    design: Design,
    threshold: float,
    calibration: Calibration | None = None,
    truth: Array | float | None = None,
) -> SimulatedOutcome:
    """Give every step rounds of `logs` (suites, steps, cap) until it is decided, as a session does."""
    suites, steps, _ = logs.shape
    verdict = np.zeros((suites, steps), int)
    used = np.full((suites, steps), design.least)
    missed = np.zeros((suites, steps), bool)
    for look in range(design.least, design.cap + 1):
        busy = np.flatnonzero((verdict == UNDECIDED).any(axis=1))
        if not len(busy):
            break
        open_steps = verdict[busy] == UNDECIDED
        used[busy] = np.where(open_steps, look, used[busy])
        part = None if calibration is None else Calibration(calibration.sd[busy], calibration.df)
        prior = pooled_noise(logs[busy, :, :look], used[busy], part)
        mean, margin = intervals(logs[busy, :, :look], used[busy], look, design, prior)
        now = judged(mean, margin, threshold)
        verdict[busy] = np.where(open_steps, now, verdict[busy])
        if truth is not None:
            true = np.broadcast_to(np.asarray(truth), (suites, steps))[busy]
            missed[busy] |= open_steps & (np.abs(mean - true) > margin)
    return SimulatedOutcome(verdict, used, missed)


def intervals(
    logs: Array, counts: Array, look: int, design: Design, prior: VectorPriors
) -> tuple[Array, Array]:
    """Mean and margin on the logarithm; meaningful where counts == look."""
    has = ~np.isnan(prior.sd)
    kept = _without_stalls(logs, counts, np.where(has, prior.sd, np.inf))
    mean, own, number = _moments(logs, kept)
    d = number - 1
    expected = np.where(has, prior.sd, 1.0) ** 2
    prior_df = np.where(has, prior.df, 1.0)
    moderated = np.maximum(own, (prior_df * expected + d * own) / (prior_df + d))
    constant = own <= noise_model.LEAST_VARIANCE
    spread = np.where(has, np.where(constant, expected, moderated), own)
    spread *= np.where(has, _inflation(prior.correlation, number), 1)
    degrees = np.where(has, np.where(constant, prior_df, prior_df + d), d)
    level = special.ndtr(-design.critical(look))
    return mean, -special.stdtrit(degrees, level) * np.sqrt(spread / number)


def judged(mean: Array, margin: Array, threshold: float) -> Array:
    """history.comparison.verdict.judge for a metric of which more is better."""
    low, high = mean - margin, mean + margin  # logarithms: the exponential may overflow
    below, above = np.log1p(-threshold), np.log1p(threshold)
    unchanged = (low >= below) & (high <= above)
    worse = (high < 0) & (mean < below)
    better = (low > 0) & (mean > above)
    return np.select([unchanged, worse, better], [UNCHANGED, REGRESSION, IMPROVEMENT], UNDECIDED)


def pooled_noise(logs: Array, counts: Array, calibration: Calibration | None) -> VectorPriors:
    """Each step's prior, as history.stats.noise_model.pooled_noise gives it."""
    suites, steps, _ = logs.shape
    unit = np.ones((suites, steps)) if calibration is None else calibration.sd
    correlation = _correlation(logs, _cleaned(logs, counts))[:, None]
    if steps == 1:
        if calibration is None:
            nothing = np.full((suites, 1), np.nan)
            return VectorPriors(nothing, nothing, correlation)
        df = np.full((suites, 1), min(calibration.df, noise_model.UNCHECKED_DF))
        return VectorPriors(unit * noise_model.UNCHECKED_INFLATION, df, correlation)
    scaled = logs / unit[:, :, None]
    _, value, number = _moments(scaled, _cleaned(scaled, counts))
    location, uncertainty = np.empty((suites, steps)), np.empty((suites, steps))
    for step in range(steps):
        rest = [other for other in range(steps) if other != step]
        location[:, step], uncertainty[:, step] = _log_moments(value[:, rest], number[:, rest] - 1)
    if calibration is not None:
        uncertainty = uncertainty + noise_model.trigamma(calibration.df / 2)
    df = np.minimum(2 * _inverse_trigamma(uncertainty), noise_model.MOST_PRIOR_DF)
    sd = unit * np.exp((location + special.digamma(df / 2) - np.log(df / 2)) / 2)
    return VectorPriors(sd, df, correlation)


def _cleaned(logs: Array, counts: Array) -> Array:
    typical = np.median(_robust_deviations(logs, counts), axis=1, keepdims=True)
    return _without_stalls(logs, counts, np.broadcast_to(typical, counts.shape))


def _correlation(logs: Array, kept: Array) -> Array:
    """(suites,): history.stats.noise_model.pooled_correlation."""
    mean, value, n = _moments(logs, kept)
    away = np.where(kept, logs - mean[:, :, None], 0)
    together = np.take_along_axis(away, np.argsort(~kept, axis=2, kind="stable"), axis=2)
    products = (together[:, :, 1:] * together[:, :, :-1]).sum(axis=2)
    tells = (n > 2) & (value > 0)
    excess = np.where(tells, products / np.where(tells, value, 1) + (n - 1) / n, 0).sum(axis=1)
    gain = 1 - (4 * n - 6) / (n * (n - 1)) + 2 * (n - 2) / n**2
    weight = np.where(tells, (n - 1) * gain, 0).sum(axis=1)
    terms = np.maximum(np.where(tells, n - 1, 0).sum(axis=1), 1)
    before = 1 / noise_model.CORRELATION_DEVIATION**2
    precision = weight**2 / terms + before
    expected = (excess * weight / terms + noise_model.USUAL_CORRELATION * before) / precision
    estimate = np.clip(expected + 1 / np.sqrt(precision), 0, noise_model.MOST_CORRELATION)
    return np.asarray(np.where(weight > 0, estimate, 0))


def _inflation(correlation: Array, number: Array) -> Array:
    """(suites, steps): history.stats.noise_model.Noise.inflation."""
    k = np.arange(1, number.max())
    terms = np.maximum(1 - k / number[:, :, None], 0) * correlation[:, :, None] ** k
    excess = 2 * terms.sum(axis=2)
    return np.asarray((1 + excess) / (1 - excess / (number - 1)))


def _log_moments(value: Array, df: Array) -> tuple[Array, Array]:
    """(suites,): _Pool.without of steps with these variances; NaN where it gives none."""
    varies = value > noise_model.LEAST_VARIANCE
    count = varies.sum(axis=1)
    logs = np.log(np.where(varies, value, 1)) - LOG_BIAS[df]
    some = np.maximum(count, 1)
    location = np.where(varies, logs, 0).sum(axis=1) / some
    sampling = np.where(varies, TRIGAMMA[df], 0).sum(axis=1) / some
    square = np.where(varies, (logs - location[:, None]) ** 2, 0).sum(axis=1)
    found = np.where(count > 1, square / np.maximum(count - 1, 1), sampling)
    error = np.sqrt(2 / np.maximum(count - 1, 1)) * np.maximum(found, sampling)
    scatter = np.maximum(0, found - sampling) + noise_model.SCATTER_CAUTION * error
    known = 2 * count >= value.shape[1]
    return np.where(known, location, np.nan), scatter + (scatter + sampling) / some


HALF_DF = np.maximum(np.arange(1000), 1) / 2
TRIGAMMA = special.polygamma(1, HALF_DF)
LOG_BIAS = special.digamma(HALF_DF) - np.log(HALF_DF)
TABLE_X = np.exp(np.linspace(np.log(0.2), np.log(1e4), 20_000))
TABLE_LOG_X, TABLE_LOG_Y = np.log(TABLE_X)[::-1], np.log(special.polygamma(1, TABLE_X))[::-1]


def _inverse_trigamma(value: Array) -> Array:
    """Interpolate between logarithms, which is accurate because the function is nearly a power."""
    return np.asarray(np.exp(np.interp(np.log(np.maximum(value, 1e-4)), TABLE_LOG_Y, TABLE_LOG_X)))


def _first(logs: Array, counts: Array) -> Array:
    return np.arange(logs.shape[2]) < counts[:, :, None]


def _median(values: Array, counts: Array) -> Array:
    """Return the medians of the first `counts` values in order; the others are infinite."""
    ordered = np.sort(values, axis=2)
    low = np.take_along_axis(ordered, ((counts - 1) // 2)[:, :, None], axis=2)
    high = np.take_along_axis(ordered, (counts // 2)[:, :, None], axis=2)
    return np.asarray((low + high)[:, :, 0] / 2)


def _distances(logs: Array, counts: Array) -> Array:
    """Return the distances from the median of a step; infinite for rounds that were not run."""
    there = _first(logs, counts)
    middle = _median(np.where(there, logs, np.inf), counts)
    return np.where(there, np.abs(logs - middle[:, :, None]), np.inf)


def _robust_deviations(logs: Array, counts: Array) -> Array:
    return _deviation_of(_distances(logs, counts), counts)


def _deviation_of(distances: Array, counts: Array) -> Array:
    small = np.array(noise_model.MAD_FACTORS)
    factor = np.where(counts < len(small), small[np.minimum(counts, len(small) - 1)], counts / (counts - 0.8))
    return 1.4826 * factor * _median(distances, counts)


def _without_stalls(logs: Array, counts: Array, deviation: Array) -> Array:
    """Return the mask of the rounds that were run and are not stalled."""
    distances = _distances(logs, counts)
    cut = noise_model.STALL_DEVIATIONS * np.maximum(deviation, _deviation_of(distances, counts))
    there = _first(logs, counts)
    kept = there & (distances <= cut[:, :, None])
    allowed = np.minimum(
        np.maximum(1, (counts * noise_model.STALL_SHARE).astype(int)), counts - noise_model.LEAST_KEPT
    )
    many = counts - kept.sum(axis=2) > allowed
    return np.where(many[:, :, None], there, kept)


def _moments(logs: Array, kept: Array) -> tuple[Array, Array, Array]:
    number = kept.sum(axis=2)
    mean = np.where(kept, logs, 0).sum(axis=2) / number
    square = np.where(kept, (logs - mean[:, :, None]) ** 2, 0).sum(axis=2)
    return mean, square / (number - 1), number
