"""The sequential procedure over arrays of suites: a vectorised copy of repeated_intervals and noise_model.

It is used only for simulations. tests/benchmarks/test_vectorised.py verifies that its results equal
those of the product, round by round. Arrays are (suites, steps) or (suites, steps, rounds).
"""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulation.distribution_arrays import (
    inverse_trigammas,
    log_bias,
    normals_below,
    student_margins,
)
from benchmarks.simulation.round_arrays import (
    Array,
    in_order,
    moments,
    robust_deviations,
    were_run,
    without_stalls,
)
from history.stats import contrary_evidence, noise_model
from history.stats.distributions import normal_below
from history.stats.repeated_intervals import Design
from history.stats.selection import HALVINGS

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

    size: Array
    """(suites, steps): the log ratio that is reported at the last look of a step."""

    mean: Array
    """(suites, steps): the mean of the log ratios, which is not corrected for being selected."""

    doubted: Array
    """(suites, steps): whether a verdict was withheld at any look because of contrary evidence."""


@dataclass(frozen=True)
class VectorPriors:
    """history.stats.noise_model.Noise per (suite, step); sd and df are NaN where there is none."""

    sd: Array
    df: Array
    correlation: Array
    """(suites, 1): one for all steps of a suite, as trend, lean and wander."""

    trend: Array
    lean: Array
    wander: Array


@dataclass(frozen=True)
class VectorIntervals:
    """history.stats.estimators.Interval per (suite, step), on the logarithm."""

    mean: Array
    margin: Array
    error: Array
    last_margin: Array


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
    missed, doubted = np.zeros((suites, steps), bool), np.zeros((suites, steps), bool)
    size, means = np.zeros((suites, steps)), np.zeros((suites, steps))
    for look in range(design.least, design.cap + 1):
        busy = np.flatnonzero((verdict == UNDECIDED).any(axis=1))
        if not len(busy):
            break
        open_steps = verdict[busy] == UNDECIDED
        used[busy] = np.where(open_steps, look, used[busy])
        part = None if calibration is None else Calibration(calibration.sd[busy], calibration.df)
        rounds = logs[busy, :, :look]
        prior = pooled_noise(rounds, used[busy], part)
        kept = kept_rounds(rounds, used[busy], prior)
        shown_intervals = intervals(rounds, kept, look, design, prior)
        shown = judged(shown_intervals.mean, shown_intervals.margin, threshold)
        now = np.where(contradicted(rounds, used[busy], kept, prior, shown), UNDECIDED, shown)
        verdict[busy] = np.where(open_steps, now, verdict[busy])
        doubted[busy] |= open_steps & (now != shown)
        size[busy] = np.where(open_steps, reported(shown_intervals, now, threshold), size[busy])
        means[busy] = np.where(open_steps, shown_intervals.mean, means[busy])
        if truth is not None:
            true = np.broadcast_to(np.asarray(truth), (suites, steps))[busy]
            missed[busy] |= open_steps & (np.abs(shown_intervals.mean - true) > shown_intervals.margin)
    return SimulatedOutcome(verdict, used, missed, size, means, doubted)


def kept_rounds(logs: Array, counts: Array, prior: VectorPriors) -> Array:
    """Return the mask of the rounds that are not set aside as stalled."""
    return without_stalls(logs, counts, np.where(np.isnan(prior.sd), np.inf, prior.sd))


def intervals(logs: Array, kept: Array, look: int, design: Design, prior: VectorPriors) -> VectorIntervals:
    """history.stats.repeated_intervals.sequential_interval; meaningful for steps with `look` rounds."""
    has = ~np.isnan(prior.sd)
    mean, own, number = moments(logs, kept)
    d = number - 1
    expected = np.where(has, prior.sd, 1.0) ** 2
    prior_df = np.where(has, prior.df, 1.0)
    moderated = np.maximum(own, (prior_df * expected + d * own) / (prior_df + d))
    constant = own <= noise_model.MIN_VARIANCE
    spread = np.where(has, np.where(constant, expected, moderated), own)
    shared = np.where(has, np.maximum(_inflation(prior.correlation, number), 1 + prior.wander), 1)
    wander = _excess_of_sums(logs, kept) - noise_model.OWN_WANDER_CAUTION / np.sqrt(
        noise_model.SUMS_PRECISION
    )
    spread *= np.maximum(shared, 1 + noise_model.WALK_FACTOR * np.fmax(wander, 0))
    degrees = np.where(has, np.where(constant, np.maximum(prior_df, 1), prior_df + d), d)
    level, last = (normal_below(-design.critical(rounds)) for rounds in (look, design.cap))
    error = np.sqrt(spread / number)
    last_margin = student_margins(degrees + design.cap - look, last)
    return VectorIntervals(
        mean,
        student_margins(degrees, level) * error,
        error,
        last_margin * np.sqrt(spread / design.cap),
    )


def contradicted(logs: Array, counts: Array, kept: Array, prior: VectorPriors, shown: Array) -> Array:
    """(suites, steps): whether history.stats.contrary_evidence.objections are against the verdict `shown`."""
    rounds, there, number = in_order(logs, kept)
    middle = rounds.sum(axis=2) / number
    sign = np.where(middle > 0, 1, -1)
    least = np.where(there, sign[:, :, None] * rounds, np.inf).min(axis=2)
    agree = least >= contrary_evidence.AGREEMENT * np.abs(middle)
    mostly = least >= contrary_evidence.LEANING_AGREEMENT * np.abs(middle)
    shown_by_all = np.where(were_run(logs, counts), sign[:, :, None] * logs, np.inf).min(axis=2) > 0
    has = ~np.isnan(prior.sd)
    drifts = has & (np.abs(prior.trend) > contrary_evidence.DRIFT_CRITICAL)
    aside = were_run(logs, counts) & ~kept
    many, above = aside.sum(axis=2), (aside & (logs > middle[:, :, None])).sum(axis=2)
    fast, slow = (many > 1) & (above == many), (many > 1) & (above == 0)
    leans = has & ~(fast | slow | mostly) & (np.abs(prior.lean) > contrary_evidence.LEAN_CRITICAL)
    up, down = shown == IMPROVEMENT, shown == REGRESSION
    one_sided = (fast & ~up & ~(down & shown_by_all)) | (slow & ~down & ~(up & shown_by_all))
    one_sided |= leans & np.where(prior.lean > 0, up, down)
    return np.asarray((shown != UNDECIDED) & ((drifts & ((shown == UNCHANGED) | ~agree)) | one_sided))


def reported(shown: VectorIntervals, verdict: Array, threshold: float) -> Array:
    """(suites, steps): history.comparison.verdict.as_reported, on the logarithm."""
    called = ((verdict == REGRESSION) | (verdict == IMPROVEMENT)) & (shown.error > 0)
    mean, margin, error = shown.mean[called], shown.margin[called], shown.error[called]
    sign, size = np.where(mean > 0, 1, -1), np.abs(mean)
    least = np.maximum(shown.last_margin[called], sign * np.log1p(sign * threshold))
    low, high = np.zeros(size.shape), size
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        x = (middle - least) / error
        inverse_mills = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / normals_below(np.maximum(x, -30))
        rises = size - middle - error * np.where(x < -30, -x, inverse_mills) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    sizes = shown.mean.copy()
    sizes[called] = sign * np.maximum((size + low) / 2, size - margin)
    return sizes


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
    if steps == 1:
        if calibration is None:
            nothing = np.full((suites, 1), np.nan)
            return _of_session(logs, counts, nothing, nothing)
        df = np.full((suites, 1), min(calibration.df, noise_model.UNCHECKED_DF))
        return _of_session(logs, counts, unit * noise_model.UNCHECKED_INFLATION, df)
    scaled = logs / unit[:, :, None]
    _, value, number = moments(scaled, _cleaned(scaled, counts))
    location, uncertainty = np.empty((suites, steps)), np.empty((suites, steps))
    for step in range(steps):
        rest = [other for other in range(steps) if other != step]
        location[:, step], uncertainty[:, step] = _log_moments(value[:, rest], number[:, rest] - 1)
    if calibration is not None:
        uncertainty = uncertainty + noise_model.trigamma(calibration.df / 2)
    df = np.minimum(2 * inverse_trigammas(uncertainty), noise_model.MAX_PRIOR_DF)
    sd = unit * np.exp((location + log_bias(df / 2)) / 2)
    return _of_session(logs, counts, sd, df)


def _of_session(logs: Array, counts: Array, sd: Array, df: Array) -> VectorPriors:
    """Return the priors with what all steps of a suite share."""
    kept = _cleaned(logs, counts)
    nothing = np.zeros((len(logs), 1))
    wander = _wander(logs, kept)[:, None]
    priors = VectorPriors(sd, df, _correlation(logs, kept)[:, None], nothing, nothing, wander)
    trend, lean = _trend(logs, kept, priors)[:, None], _lean(logs, counts, kept)[:, None]
    return replace(priors, trend=trend, lean=lean)


def _trend(logs: Array, kept: Array, prior: VectorPriors) -> Array:
    """(suites,): history.stats.contrary_evidence.common_trend."""
    rounds, there, n = in_order(logs, kept)
    expected, df = _expected_of(prior)
    place = np.where(there, np.arange(rounds.shape[2]) - (n[:, :, None] - 1) / 2, 0)
    rise = (place * rounds).sum(axis=2) / np.sqrt(n * (n * n - 1) / 12)
    square = np.where(there, (rounds - (rounds.sum(axis=2) / n)[:, :, None]) ** 2, 0).sum(axis=2)
    variance = (df * expected + np.maximum(square - rise**2, 0)) / (df + n - 2)
    most = contrary_evidence.MAX_TREND
    slope = np.where(variance > 0, rise / np.sqrt(np.where(variance > 0, variance, 1)), 0)
    return np.asarray(
        np.clip(slope, -most, most).sum(axis=1) / np.sqrt(np.maximum((variance > 0).sum(axis=1), 1))
    )


def _lean(logs: Array, counts: Array, kept: Array) -> Array:
    """(suites,): history.stats.contrary_evidence.common_lean."""
    mean, _, _ = moments(logs, kept)
    there = were_run(logs, counts)
    excess = np.where(there, np.sign(logs - mean[:, :, None]), 0).sum(axis=(1, 2))
    return np.asarray(excess / np.sqrt(there.sum(axis=(1, 2)) * (1 - 2 / np.pi)))


def _expected_of(prior: VectorPriors) -> tuple[Array, Array]:
    has = ~np.isnan(prior.sd)
    return np.where(has, prior.sd, 0.0) ** 2, np.where(has, prior.df, 0.0)


def _cleaned(logs: Array, counts: Array) -> Array:
    typical = np.median(robust_deviations(logs, counts), axis=1, keepdims=True)
    return without_stalls(logs, counts, np.broadcast_to(typical, counts.shape))


def _correlation(logs: Array, kept: Array) -> Array:
    """(suites,): history.stats.noise_model.pooled_correlation."""
    mean, value, n = moments(logs, kept)
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
    estimate = np.clip(expected + 1 / np.sqrt(precision), 0, noise_model.MAX_CORRELATION)
    return np.asarray(np.where(weight > 0, estimate, 0))


def _wander(logs: Array, kept: Array) -> Array:
    """(suites,): history.stats.noise_model.wander_of all steps."""
    excess = _excess_of_sums(logs, kept)
    tells = ~np.isnan(excess)
    some = np.maximum(tells.sum(axis=1), 1)
    error = 1 / np.sqrt(noise_model.SUMS_PRECISION * some)
    found = np.where(tells, excess, 0).sum(axis=1) / some - noise_model.WANDER_CAUTION * error
    return np.asarray(noise_model.WALK_FACTOR * np.maximum(found, 0))


def _excess_of_sums(logs: Array, kept: Array) -> Array:
    """(suites, steps): the excess of squared partial sums in wander_of; NaN of steps that tell nothing."""
    rounds, there, n = in_order(logs, kept)
    away = np.where(there, rounds - (rounds.sum(axis=2) / n)[:, :, None], 0)
    spread = (away**2).sum(axis=2) / np.maximum(n - 1, 1)
    tells = (n > 2) & (spread > noise_model.MIN_VARIANCE)
    squares = np.where(there, away.cumsum(axis=2) ** 2, 0).sum(axis=2)
    return np.where(tells, squares / (n * n * np.where(tells, spread, 1)) - (n * n - 1) / (6 * n * n), np.nan)


def _inflation(correlation: Array, number: Array) -> Array:
    """(suites, steps): history.stats.noise_model.Noise.inflation."""
    k = np.arange(1, number.max())
    terms = np.maximum(1 - k / number[:, :, None], 0) * correlation[:, :, None] ** k
    excess = 2 * terms.sum(axis=2)
    return np.asarray((1 + excess) / (1 - excess / (number - 1)))


def _log_moments(value: Array, df: Array) -> tuple[Array, Array]:
    """(suites,): _Pool.without of steps with these variances; NaN where it gives none."""
    varies = value > noise_model.MIN_VARIANCE
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
TRIGAMMA = np.array([noise_model.trigamma(x) for x in HALF_DF])
LOG_BIAS = np.array([noise_model.digamma(x) for x in HALF_DF]) - np.log(HALF_DF)
