"""How much one round's log ratio scatters: what the other steps and a calibration say about a step.

Three rounds say next to nothing about their own scatter. Ten steps of one session on one machine say a good
deal about each other's, and an earlier calibration says which of them are noisier than others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from history.stats.estimators import mean, median, variance

STALL_DEVIATIONS = 5.0
"""A round that lies this many standard deviations from the median of its step has stalled."""

STALL_SHARE = 0.25
"""Of a step's rounds may be set aside as stalled, and one in any case: more of them are how the step is."""

LEAST_KEPT = 3
"""Rounds that are never set aside: what is left has to be enough for a verdict."""

UNCHECKED_INFLATION = 2.0
"""By how much a calibration alone, without other steps to show how noisy today is, is multiplied."""

UNCHECKED_DF = 4.0
"""Degrees of freedom that such a calibration is given at most."""

MOST_PRIOR_DF = 60.0
"""Degrees of freedom that a prior is given at most, however alike the steps look."""

MOST_CORRELATION = 0.8
"""Of neighbouring rounds: an estimate from few rounds can be anything."""

MAD_FACTORS = (math.inf, math.inf, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107)
CORRELATION_CORRECTION = 1.3
"""What the estimated correlation of neighbouring rounds is multiplied by: few rounds understate it.

Chosen by simulation (docs/verdicts.md): false regressions in AR(1) noise of 0.3 fall from 1.3 to 0.9 % of
suites, and where rounds do not correlate steps need 0.5 % more of them."""

"""By the number of values (Croux & Rousseeuw, COMPSTAT 1992): above these n / (n - 0.8)."""


@dataclass(frozen=True)
class Noise:
    """The scatter of one round of a step, and how surely it is known.

    Raises ValueError unless deviation and degrees of freedom are finite and above zero.
    """

    sd: float
    """Standard deviation of the log ratio of one round of A/A, as a natural logarithm: 0.02 is about 2 %."""

    df: float
    """Degrees of freedom: as if `sd` were the sample deviation of `df` + 1 normal rounds."""

    correlation: float = 0.0
    """Of a round with the next one, from 0 to below 1."""

    def __post_init__(self) -> None:
        if not (0 < self.sd < math.inf and 0 < self.df < math.inf and 0 <= self.correlation < 1):
            raise ValueError(f"there is no such noise: {self}")

    def inflation(self, rounds: int) -> float:
        """By how much the variance of the mean of `rounds` rounds exceeds what their sample variance says.

        For correlations that fall off as correlation^distance (an AR(1) process) the mean of n rounds has
        the variance V sigma^2 / n with V = 1 + 2 sum (1 - k/n) correlation^k over k = 1 to n - 1, and the
        expected sample variance is sigma^2 (1 - (V - 1) / (n - 1)) (Bayley & Hammersley, Supplement to JRSS
        8, 1946).
        """
        if rounds < 2 or self.correlation <= 0:
            return 1.0
        terms = ((1 - k / rounds) * self.correlation**k for k in range(1, rounds))
        excess = 2 * math.fsum(terms)
        return (1 + excess) / (1 - excess / (rounds - 1))


def robust_deviation(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, scaled to estimate a normal standard deviation.

    1.4826 times a factor for small samples (Croux & Rousseeuw 1992). 0 of fewer than two values.
    """
    if len(values) < 2:
        return 0.0
    middle = median(values)
    n = len(values)
    factor = MAD_FACTORS[n] if n < len(MAD_FACTORS) else n / (n - 0.8)
    return 1.4826 * factor * median(abs(each - middle) for each in values)


def without_stalls(logs: Sequence[float], deviation: float) -> list[float]:
    """The rounds that did not stall, in their order; `deviation` is what is known of their scatter.

    A round is set aside when it lies more than STALL_DEVIATIONS from the step's median, in units of
    `deviation` or of the step's own robust deviation, whichever is larger. When this would hit more than
    STALL_SHARE of the rounds (and more than one), none is set aside: what happens that often is no stall.
    At least LEAST_KEPT rounds stay: of three that disagree nobody can say which one is the odd one.
    A rule of rejection by median and MAD (Hampel, Technometrics 27, 1985); STALL_DEVIATIONS is so large that
    of normal rounds practically none is hit, and the t interval of the rest needs no correction.
    """
    if max(logs) - min(logs) <= STALL_DEVIATIONS * deviation:
        return list(logs)  # the median is among them: none can be further from it
    middle = median(logs)
    cut = STALL_DEVIATIONS * max(deviation, robust_deviation(logs))
    kept = [each for each in logs if abs(each - middle) <= cut]
    allowed = min(max(1, int(len(logs) * STALL_SHARE)), len(logs) - LEAST_KEPT)
    return kept if len(logs) - len(kept) <= allowed else list(logs)


def pooled_noise(
    rounds: Sequence[Sequence[float]], calibrated: Sequence[Noise | None] | None = None
) -> tuple[Noise | None, ...]:
    """What is known of each step's noise from elsewhere: from the *other* steps, and from a calibration.

    `rounds[j]` are the log ratios of step j so far, of any number; `calibrated[j]` is the noise of step j in
    a calibration, if there is one. The deviation for step j uses none of its own rounds, so that it is
    independent of the step's sample variance and can be pooled with it by adding degrees of freedom. The
    correlation of neighbouring rounds is one for all steps; `rounds` are in the order in which they were run.

    Empirical Bayes (Smyth, Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 6.2): the variances of the steps
    are taken to scatter around s0^2 as s0^2 d0 / chi^2(d0); d0 and s0^2 match mean and variance of the other
    steps' log s^2. Other than in Smyth, whose thousands of genes leave no doubt about s0^2, the uncertainty
    of the mean log variance and of the calibration is added to the scatter before it is turned into degrees
    of freedom.

    With a calibration the steps' deviations are first divided by their calibrated ones: it says by how much
    the steps differ, the session how noisy today is. A night twice as noisy as the calibration therefore
    doubles every prior. Steps without a calibration are pooled with all others as they are. When no other
    step has two rounds, a calibration is all there is; it is then widened by UNCHECKED_INFLATION and given
    UNCHECKED_DF degrees of freedom.
    None when nothing at all is known, or when all others are constant.
    """
    known = calibrated if calibrated is not None else [None] * len(rounds)
    if len(known) != len(rounds):
        raise ValueError(f"{len(rounds)} steps, but {len(known)} of a calibration")
    raw = _cleaned(rounds, [1.0] * len(rounds))
    relative = _cleaned(rounds, [noise.sd if noise else None for noise in known])
    correlation = pooled_correlation(raw)
    as_is, as_calibrated = _Pool(raw), _Pool(relative)
    return tuple(
        _prior((as_calibrated if noise else as_is).without(step), noise, correlation)
        for step, noise in enumerate(known)
    )


def pooled_correlation(rounds: Sequence[Sequence[float]]) -> float:
    """The correlation of neighbouring rounds within a step, one for all steps; 0 to MOST_CORRELATION.

    With e the deviations from a step's mean, the sum of e_i e_(i+1) over the sample variance is on average
    -(n - 1) / n for n independent rounds (the bias of Marriott & Pope, Biometrika 41, 1954) and grows with
    the correlation r by about (n - 1) gain(n) r, with gain(n) from the expectations of both sums to first
    order in r. Summed over the steps, so that each counts by what it can tell, and solved for r. From few
    rounds that is too small (of 0.3 it is 0.16 from 3 rounds a step and 0.26 from 12), so it is multiplied by
    CORRELATION_CORRECTION.
    """
    excess = weight = 0.0
    for logs in rounds:
        n = len(logs)
        spread = variance(logs) if n > 2 else 0.0
        if spread <= 0:
            continue
        middle = mean(logs)
        products = math.fsum((one - middle) * (following - middle) for one, following in pairwise(logs))
        excess += products / spread + (n - 1) / n
        weight += (n - 1) * (1 - (4 * n - 6) / (n * (n - 1)) + 2 * (n - 2) / n**2)
    if not weight:
        return 0.0
    return min(max(CORRELATION_CORRECTION * excess / weight, 0.0), MOST_CORRELATION)


def _cleaned(rounds: Sequence[Sequence[float]], units: Sequence[float | None]) -> list[list[float]]:
    """Rounds without stalls, in units of each step's deviation; none where there is no unit."""
    scaled = [
        [each / unit for each in logs] if unit and len(logs) > 1 else []
        for logs, unit in zip(rounds, units, strict=True)
    ]
    deviations = [robust_deviation(logs) for logs in scaled if logs]
    typical = median(deviations) if deviations else 0.0
    return [without_stalls(logs, typical) if logs else [] for logs in scaled]


@dataclass(frozen=True)
class _Others:
    """What the variances of all steps but one say."""

    location: float
    """Mean of log sigma^2."""
    uncertainty: float
    """The variance of a further step's log sigma^2 around it."""


class _Pool:
    """The sample variances of the steps, of which each step asks what all others say.

    What a variance contributes is computed once, not once for every step that asks.
    """

    def __init__(self, cleaned: Sequence[Sequence[float]]) -> None:
        steps = [step for step, logs in enumerate(cleaned) if len(logs) > 1]
        self._places = {step: place for place, step in enumerate(steps)}
        self._halves = [(len(cleaned[step]) - 1) / 2 for step in steps]
        self._values = [variance(cleaned[step]) for step in steps]
        self._in_order = sorted(self._values)
        self._logs = self._unbiased(0.0)
        self._samplings = list(map(trigamma, self._halves))

    def without(self, step: int) -> _Others | None:
        """What the others say; None when there are none, and when most of them are constant.

        With d degrees of freedom log s^2 has mean log sigma^2 + digamma(d/2) - log(d/2) and variance
        trigamma(d/2) (Smyth 2004); what the logarithms scatter beyond that is the scatter of sigma^2 itself.
        The uncertainty is that scatter, trigamma(d0/2), and the error of the mean.
        """
        place = self._places.get(step)
        in_order = self._in_order.copy()
        if place is not None:
            in_order.remove(self._values[place])
        if not in_order or (middle := median(in_order)) <= 0:
            return None
        floor = 1e-5 * middle  # as limma does: a constant step has no logarithm
        logs = _without(self._logs if in_order[0] >= floor else self._unbiased(floor), place)
        location, sampling = mean(logs), mean(_without(self._samplings, place))
        scatter = max(0.0, variance(logs) - sampling) if len(logs) > 1 else 0.0
        return _Others(location, scatter + (scatter + sampling) / len(logs))

    def _unbiased(self, floor: float) -> list[float]:
        """Of each variance, or the floor, an estimate of log sigma^2."""
        both = zip((max(value, floor) for value in self._values), self._halves, strict=True)
        return [
            math.log(value) - digamma(half) + math.log(half) if value > 0 else -math.inf
            for value, half in both
        ]


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
    # Where there is hardly a doubt, its inverse would be searched for in vain.
    certain = uncertainty <= trigamma(MOST_PRIOR_DF / 2)
    df = MOST_PRIOR_DF if certain else min(2 * inverse_trigamma(uncertainty), MOST_PRIOR_DF)
    sd = unit * math.exp((others.location + digamma(df / 2) - math.log(df / 2)) / 2)
    return Noise(sd, df, correlation)


@lru_cache(maxsize=1024)  # steps of one session have few numbers of rounds
def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, x > 0 (Abramowitz & Stegun 6.3.5 and 6.3.18)."""
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    square = 1 / x**2
    return shift + math.log(x) - 1 / (2 * x) - square * (1 / 12 - square * (1 / 120 - square / 252))


@lru_cache(maxsize=1024)
def trigamma(x: float) -> float:
    """The derivative of digamma, x > 0 (Abramowitz & Stegun 6.4.6 and 6.4.12); 0 at infinity."""
    if math.isinf(x):
        return 0.0
    shift = 0.0
    while x < 10:
        shift += 1 / x**2
        x += 1
    square = 1 / x**2
    return shift + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square / 42))


def inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = value; infinity at 0 and below.

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
    """The derivative of trigamma, x > 0 (Abramowitz & Stegun 6.4.6 and 6.4.13)."""
    shift = 0.0
    while x < 10:
        shift -= 2 / x**3
        x += 1
    square = 1 / x**2
    return shift - square - square / x - square**2 * (1 / 2 - square * (1 / 6 - square / 6))
