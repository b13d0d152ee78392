"""The noise of a step, how much the log ratio of a round scatters, estimated with other steps' help.

Three rounds hardly determine their own scatter. The ten steps of a session on one machine say much about each
other's, and an earlier calibration says which steps are noisier than others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise

from history.stats.contrary_evidence import common_lean, common_trend
from history.stats.estimators import MAD_TO_DEVIATION, mean, median, variance

STALL_DEVIATIONS = 5.0
"""The standard deviations from the median of its step beyond which a round counts as stalled."""

STALL_SHARE = 0.25
"""The share of a step's rounds that may be left out as stalled, one round in any case. More than that is
normal behaviour of the step."""

MIN_KEPT = 3
"""The rounds of a step that remain at least: a verdict needs them."""

UNCHECKED_INFLATION = 2.0
"""The factor on the deviation of a calibration when no other step shows how noisy the session is."""

UNCHECKED_DF = 4.0
"""The degrees of freedom of such a calibration at most."""

MAX_PRIOR_DF = 60.0
"""The degrees of freedom of a prior at most, however similar the steps are."""

MAX_CORRELATION = 0.8
"""The correlation of neighbouring rounds at most, because few rounds can give any estimate."""

USUAL_CORRELATION = 0.1
"""The correlation of neighbouring rounds that is expected before any was seen."""

CORRELATION_DEVIATION = 0.35
"""How far from it the correlation of a session is expected to be: its standard deviation.

Both, and the standard error that is added, were chosen by simulation (docs/decisions/0053): with them fixed
rounds and rounds until decided keep 1 % of sessions in AR(1) noise of 0.3 with the recorded deviations."""

WANDER_CAUTION = 1.0
"""The standard errors that are taken off what all steps together show of wandering ratios."""

OWN_WANDER_CAUTION = 2.0
"""The same of what a step shows by itself. Without caution independent rounds would often seem to wander.

Both were chosen by simulation, so that independent rounds detect as much as before
(docs/results/verdicts.md)."""

WALK_FACTOR = 30.0
"""What a random walk of the ratio adds to the variance of a mean, over what it adds to squared sums."""

SUMS_PRECISION = 45.0
"""One over the variance of the mean of squared sums, in independent rounds of a variance of 1."""

SCATTER_CAUTION = 0.3
"""The standard errors that are added to the estimated unlikeness of steps, chosen by the same simulation.

Without it one step with three times the noise of the others is called a regression in 2 % of sessions."""

MIN_VARIANCE = 1e-24
"""A step whose log ratios vary less is constant: quotients are rounded."""

MAD_FACTORS = (math.inf, math.inf, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107)
"""The small-sample factors by number of values (Croux & Rousseeuw, COMPSTAT 1992); beyond, n / (n - 0.8)."""


@dataclass(frozen=True)
class Noise:
    """The scatter of one round of a step, and the precision of that estimate.

    Raises ValueError unless deviation and degrees of freedom are finite and above zero, and the correlation
    is at least 0 and below 1.
    """

    sd: float
    """The standard deviation of the natural log ratio of one A/A round: 0.02 is about 2 %."""

    df: float
    """The degrees of freedom, as if `sd` were the sample deviation of `df` + 1 normal rounds."""

    correlation: float = 0.0
    """The correlation of a round with the next one, from 0 to below 1."""

    trend: float = 0.0
    """How far the ratios of the session rise from round to round, in standard errors."""

    lean: float = 0.0
    """How many more rounds of the session lie above the mean of their step than below, in standard errors."""

    wander: float = 0.0
    """What ratios that wander add to the variance of a mean, as a multiple of that of independent rounds."""

    def __post_init__(self) -> None:
        if not (0 < self.sd < math.inf and 0 < self.df < math.inf and 0 <= self.correlation < 1):
            raise ValueError(f"sd and df must be finite and above 0, correlation 0 to below 1: {self}")

    def inflation(self, rounds: int) -> float:
        """Return the factor by which the variance of the mean of `rounds` rounds exceeds s^2 / rounds.

        When correlations fall off as correlation^distance (an AR(1) process), the mean of n rounds has the
        variance V sigma^2 / n with V = 1 + 2 sum (1 - k/n) correlation^k over k = 1 to n - 1, and the
        expected sample variance s^2 is sigma^2 (1 - (V - 1) / (n - 1)) (Bayley & Hammersley, Supplement to
        JRSS 8, 1946). If ratios wander by more than that, it is the factor of their wander.
        """
        wandering = 1 + self.wander
        if rounds < 2 or self.correlation <= 0:
            return wandering
        terms = ((1 - k / rounds) * self.correlation**k for k in range(1, rounds))
        excess = 2 * math.fsum(terms)
        return max(wandering, (1 + excess) / (1 - excess / (rounds - 1)))


def robust_deviation(values: Sequence[float]) -> float:
    """Return the median absolute deviation, scaled to estimate a normal standard deviation.

    The scale is MAD_TO_DEVIATION times a small-sample factor (Croux & Rousseeuw 1992). Returns 0 for fewer
    than two values.
    """
    if len(values) < 2:
        return 0.0
    middle = median(values)
    n = len(values)
    factor = MAD_FACTORS[n] if n < len(MAD_FACTORS) else n / (n - 0.8)
    return MAD_TO_DEVIATION * factor * median(abs(value - middle) for value in values)


def without_stalls(logs: Sequence[float], deviation: float) -> list[float]:
    """Return the rounds that did not stall, in order; `deviation` is the prior estimate of their scatter.

    A round is left out when it lies more than STALL_DEVIATIONS from the step's median, in units of
    `deviation` or of the step's own robust deviation, whichever is larger. If this applies to more than
    STALL_SHARE of the rounds (and to more than one), none is left out: what is that frequent is not a stall.
    At least MIN_KEPT rounds remain: among three that disagree the outlier cannot be identified.
    Outliers are rejected by median and MAD (Hampel, Technometrics 27, 1985). STALL_DEVIATIONS is so large
    that practically no normal round is rejected, and the t interval of the rest needs no correction.
    """
    if max(logs) - min(logs) <= STALL_DEVIATIONS * deviation:
        return list(logs)  # the median lies within their range: none is further from it
    middle = median(logs)
    cut = STALL_DEVIATIONS * max(deviation, robust_deviation(logs))
    kept = [log for log in logs if abs(log - middle) <= cut]
    allowed = min(max(1, int(len(logs) * STALL_SHARE)), len(logs) - MIN_KEPT)
    return kept if len(logs) - len(kept) <= allowed else list(logs)


def pooled_noise(
    rounds: Sequence[Sequence[float]], calibrated: Sequence[Noise | None] | None = None
) -> tuple[Noise | None, ...]:
    """Return the prior of each step's noise, estimated from the *other* steps and from a calibration.

    `rounds[j]` are any number of log ratios of step j, in the order in which they were run; `calibrated[j]`
    is the noise of step j in a calibration, if there is one. The deviation for step j uses none of its own
    rounds, so that it is independent of the step's sample variance and can be pooled with it by adding
    degrees of freedom. All steps share one correlation of neighbouring rounds, one trend, one lean and one
    wander.

    Empirical Bayes (Smyth, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 6.2): the variances of the steps
    are assumed to scatter around s0^2 as s0^2 d0 / chi^2(d0); d0 and s0^2 match the mean and the variance of
    the other steps' log s^2. Smyth's thousands of genes determine both; a few steps do not, so that
    SCATTER_CAUTION standard errors of the scatter, the uncertainty of the mean log variance and that of the
    calibration are added to the scatter before it is converted to degrees of freedom. Steps without any
    scatter tell nothing and are not counted.

    With a calibration the steps' deviations are first divided by their calibrated ones: the calibration says
    how much the steps differ, the session how noisy the machine is now. A night twice as noisy as the
    calibration therefore doubles every prior. Steps without a calibration are pooled with all others as they
    are. When no other step has two rounds, only the calibration is left; its deviation is then multiplied by
    UNCHECKED_INFLATION, and its degrees of freedom are at most UNCHECKED_DF.
    A prior is None without other rounds and calibration, or when most other steps are constant.
    Raises ValueError when `rounds` and `calibrated` differ in length.
    """
    by_step = calibrated if calibrated is not None else [None] * len(rounds)
    if len(by_step) != len(rounds):
        raise ValueError(f"{len(rounds)} steps have rounds, but {len(by_step)} have a calibration")
    raw = _cleaned(rounds, [1.0] * len(rounds))
    relative = _cleaned(rounds, [noise.sd if noise else None for noise in by_step])
    correlation = pooled_correlation(raw)
    as_is, as_calibrated = _Pool(raw), _Pool(relative)
    priors = [
        _prior((as_calibrated if noise else as_is).without(step), noise, correlation)
        for step, noise in enumerate(by_step)
    ]
    trend, lean = common_trend(raw, [expected_of(prior) for prior in priors]), common_lean(rounds, raw)
    wander = wander_of(raw, WANDER_CAUTION)
    return tuple(prior and replace(prior, trend=trend, lean=lean, wander=wander) for prior in priors)


def expected_of(prior: Noise | None) -> tuple[float, float]:
    """Return the variance of a round by a prior, with its degrees of freedom; (0, 0) without a prior."""
    return (0.0, 0.0) if prior is None else (prior.sd**2, prior.df)


def pooled_correlation(rounds: Sequence[Sequence[float]]) -> float:
    """Return the correlation of neighbouring rounds within a step, one for all steps; 0 to MAX_CORRELATION.

    With e the deviations from a step's mean, the sum of e_i e_(i+1) over the sample variance is on average
    -(n - 1) / n for n independent rounds (the bias of Marriott & Pope, Biometrika 41, 1954) and grows with
    the correlation r by about (n - 1) gain(n) r, with gain(n) from the expectations of both sums to first
    order in r. Summed over the steps, so that each counts by what it can tell, and solved for r.

    Three rounds of ten steps hardly tell r, and an understated one makes every interval too narrow. The
    estimate is therefore the mean of a normal posterior, whose prior has the mean USUAL_CORRELATION and the
    deviation CORRELATION_DEVIATION, plus one deviation of the posterior. 0 when no step tells anything.
    """
    excess = weight = terms = 0.0
    for logs in rounds:
        n = len(logs)
        spread = variance(logs) if n > 2 else 0.0
        if spread <= 0:
            continue
        middle = mean(logs)
        products = math.fsum((log - middle) * (following - middle) for log, following in pairwise(logs))
        excess += products / spread + (n - 1) / n
        weight += (n - 1) * (1 - (4 * n - 6) / (n * (n - 1)) + 2 * (n - 2) / n**2)
        terms += n - 1
    if not weight:
        return 0.0
    # `excess` has about the variance `terms`, so that excess / weight has the precision weight^2 / terms.
    before = 1 / CORRELATION_DEVIATION**2
    precision = weight**2 / terms + before
    expected = (excess * weight / terms + USUAL_CORRELATION * before) / precision
    return min(max(expected + 1 / math.sqrt(precision), 0.0), MAX_CORRELATION)


def wander_of(rounds: Sequence[Sequence[float]], caution: float) -> float:
    """Return what wandering ratios add to the variance of a mean, by the rounds of steps; see Noise.wander.

    A ratio that moves on from round to round and does not return leaves consecutive deviations from the mean
    of its step on the same side. With S_t the sum of the first t of n deviations and s^2 the variance, the
    mean of S_t^2 / (n s^2) is (n^2 - 1) / (6 n^2) in independent rounds on average, with a deviation of about
    1 / sqrt(45); it is the best test of a small random walk (Nyblom, JASA 84, 1989). A walk of variance
    q s^2 a round adds about q n^2 / 90, and to the variance of the mean, around the ratio at the beginning,
    q n s^2 / 3: 30 times as much in units of s^2 / n. It is the average of the steps that have a variance,
    less `caution` standard errors; 0 if that is less, or without any.
    """
    excesses = []
    for logs in rounds:
        n = len(logs)
        spread = variance(logs) if n > 2 else 0.0
        if spread > MIN_VARIANCE:
            middle = mean(logs)
            sums = accumulate(log - middle for log in logs)
            found = math.fsum(partial * partial for partial in sums) / (n * n * spread)
            excesses.append(found - (n * n - 1) / (6 * n * n))
    if not excesses:
        return 0.0
    return WALK_FACTOR * max(0.0, mean(excesses) - caution / math.sqrt(SUMS_PRECISION * len(excesses)))


def _cleaned(rounds: Sequence[Sequence[float]], units: Sequence[float | None]) -> list[list[float]]:
    """Return the rounds without stalls, in units of each step's deviation; none where there is no unit."""
    scaled = [
        [log / unit for log in logs] if unit and len(logs) > 1 else []
        for logs, unit in zip(rounds, units, strict=True)
    ]
    deviations = [robust_deviation(logs) for logs in scaled if logs]
    typical = median(deviations) if deviations else 0.0
    return [without_stalls(logs, typical) if logs else [] for logs in scaled]


@dataclass(frozen=True)
class _Others:
    """The log variance of a further step, as estimated from all steps but one."""

    location: float
    """The mean of log sigma^2."""
    uncertainty: float
    """The variance of a further step's log sigma^2 around it."""


class _Pool:
    """The sample variances of all steps, from which the estimate without any one step is computed.

    The terms of each variance are computed once, not once for every step that is left out.
    """

    def __init__(self, cleaned: Sequence[Sequence[float]]) -> None:
        values = {step: variance(logs) for step, logs in enumerate(cleaned) if len(logs) > 1}
        self._constant = {step for step, value in values.items() if value <= MIN_VARIANCE}
        steps = [step for step in values if step not in self._constant]
        halves = [(len(cleaned[step]) - 1) / 2 for step in steps]
        self._places = {step: place for place, step in enumerate(steps)}
        self._logs = [
            math.log(values[step]) - digamma(half) + math.log(half)
            for step, half in zip(steps, halves, strict=True)
        ]
        self._samplings = list(map(trigamma, halves))

    def without(self, step: int) -> _Others | None:
        """Return the estimate from all other steps; None without any, or when most of them are constant.

        With d degrees of freedom log s^2 has mean log sigma^2 + digamma(d/2) - log(d/2) and variance
        trigamma(d/2) (Smyth 2004); any scatter of the logarithms beyond that is the scatter of sigma^2
        itself. The uncertainty is that scatter, trigamma(d0/2), plus the error of the mean.
        """
        place = self._places.get(step)
        logs, samplings = _without(self._logs, place), _without(self._samplings, place)
        if not logs or len(self._constant - {step}) > len(logs):
            return None
        location, sampling = mean(logs), mean(samplings)
        found = variance(logs) if len(logs) > 1 else sampling
        error = math.sqrt(2 / max(1, len(logs) - 1)) * max(found, sampling)
        scatter = max(0.0, found - sampling) + SCATTER_CAUTION * error
        return _Others(location, scatter + (scatter + sampling) / len(logs))


def _without(values: list[float], place: int | None) -> list[float]:
    return values if place is None else values[:place] + values[place + 1 :]


def _prior(others: _Others | None, calibrated: Noise | None, correlation: float) -> Noise | None:
    unit = calibrated.sd if calibrated else 1.0
    if others is None:
        if not calibrated:
            return None
        alone = min(calibrated.df, UNCHECKED_DF)
        return Noise(unit * UNCHECKED_INFLATION, alone, max(calibrated.correlation, correlation))
    uncertainty = others.uncertainty + (trigamma(calibrated.df / 2) if calibrated else 0.0)
    # Newton's method would not converge for an uncertainty close to zero.
    certain = uncertainty <= trigamma(MAX_PRIOR_DF / 2)
    df = MAX_PRIOR_DF if certain else min(2 * inverse_trigamma(uncertainty), MAX_PRIOR_DF)
    sd = unit * math.exp((others.location + digamma(df / 2) - math.log(df / 2)) / 2)
    return Noise(sd, df, correlation)


@lru_cache(maxsize=1024)  # steps of one session have few numbers of rounds
def digamma(x: float) -> float:
    """Return the derivative of the log gamma function for x > 0 (Abramowitz & Stegun 6.3.5 and 6.3.18)."""
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    square = 1 / x**2
    return shift + math.log(x) - 1 / (2 * x) - square * (1 / 12 - square * (1 / 120 - square / 252))


@lru_cache(maxsize=1024)
def trigamma(x: float) -> float:
    """Return the derivative of digamma for x > 0 (Abramowitz & Stegun 6.4.6 and 6.4.12); 0 at infinity."""
    if math.isinf(x):
        return 0.0
    shift = 0.0
    while x < 10:
        shift += 1 / x**2
        x += 1
    square = 1 / x**2
    return shift + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square / 42))


def inverse_trigamma(value: float) -> float:
    """Return the x with trigamma(x) = value; infinity at 0 and below.

    Newton's method on 1 / trigamma, which is convex and nearly linear (Smyth 2004, appendix).
    """
    if value <= 0:
        return math.inf
    if value < 1e-7:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        below = trigamma(x)
        step = below * (1 - below / value) / _tetragamma(x)
        x += step
        if -step / x < 1e-10:
            break
    return x


def _tetragamma(x: float) -> float:
    """Return the derivative of trigamma for x > 0 (Abramowitz & Stegun 6.4.6 and 6.4.13)."""
    shift = 0.0
    while x < 10:
        shift -= 2 / x**3
        x += 1
    square = 1 / x**2
    return shift - square - square / x - square**2 * (1 / 2 - square * (1 / 6 - square / 6))
