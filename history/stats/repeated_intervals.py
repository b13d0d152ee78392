"""Repeated confidence intervals: a verdict after every round, with intervals that hold at all looks together.

A step is measured until its interval decides, so that the interval is looked at repeatedly; an ordinary one
would sooner or later miss the true ratio by chance. The critical values are therefore such that the intervals
of all looks up to the cap, and of all steps of the suite, hold together with the requested confidence.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from history.stats.contrary_evidence import objections
from history.stats.distributions import normal_below, normal_quantile, student_quantile
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, variance
from history.stats.group_sequential import power_boundary
from history.stats.noise_model import (
    MIN_VARIANCE,
    OWN_WANDER_CAUTION,
    Noise,
    wander_of,
    without_stalls,
)

MAX_ROUNDS = 20
"""The default cap: a step that is undecided after so many rounds stays inconclusive."""

FAMILY_CONFIDENCE = 0.98
"""The default confidence: 1 % for a false regression in a suite, and 1 % for a false improvement."""

SHAPE = 0.2
"""The shape of the boundary in Wang & Tsiatis' family; see docs/decisions/0014-sequential-verdicts.md."""

VISIBLE_PROBABILITY = 0.8
"""The probability with which a change that is called visible is flagged."""

SEEMS_WANDERING = 0.04
"""The share of steady steps at most that are not flagged because they seem to wander by themselves."""


@dataclass(frozen=True)
class Design:
    """The looks of a sequential test, and the error of all of them together.

    Raises ValueError for a confidence outside 0 to 1, no steps, or looks that do not fit.
    """

    steps: int = 10
    """The number of steps that are judged together, the family that shares the error."""

    least: int = MINIMUM_REPETITIONS
    """The rounds of the first look."""

    cap: int = MAX_ROUNDS
    """The rounds of the last look; there is a look after each round from `least` on."""

    confidence: float = FAMILY_CONFIDENCE
    """The probability that all intervals of the family hold at all looks; between 0 and 1."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"a confidence must lie between 0 and 1, not {self.confidence}")
        if not (self.steps >= 1 and MINIMUM_REPETITIONS <= self.least <= self.cap):
            raise ValueError(f"a design needs a step and {MINIMUM_REPETITIONS} <= least <= cap: {self}")

    @classmethod
    def fixed(cls, rounds: int, steps: int, confidence: float = FAMILY_CONFIDENCE) -> "Design":
        """Return the design of a session whose number of rounds was fixed in advance: one look after them."""
        return cls(steps=max(1, steps), least=rounds, cap=rounds, confidence=confidence)

    @property
    def step_error(self) -> float:
        """The error of one step over all looks: Bonferroni's share, which holds for dependent steps too."""
        return (1 - self.confidence) / self.steps

    def critical(self, rounds: int) -> float:
        """Return the two-sided standard normal critical value of the look after `rounds` rounds.

        Raises ValueError when there is no such look.
        """
        if not self.least <= rounds <= self.cap:
            raise ValueError(f"there are looks at {self.least} to {self.cap} rounds, not at {rounds}")
        looks = tuple(range(self.least, self.cap + 1))
        return power_boundary(self.step_error, looks, SHAPE)[rounds - self.least]

    def margin(self, rounds: int, df: float) -> float:
        """Return the critical value in standard errors, when the deviation has `df` degrees of freedom.

        It is Student's t at the nominal level of the normal boundary, the significance-level approach
        (Jennison & Turnbull, Group Sequential Methods, 2000, section 4.4; Pocock 1977). Raises as `critical`.
        """
        critical = self.critical(rounds)
        if math.isinf(df):
            return critical
        return -student_quantile(df, normal_below(-critical))


def sequential_interval(
    logs: Sequence[float], design: Design, prior: Noise | None, left_out: Collection[int] = ()
) -> Interval | None:
    """Return the interval of contender/base after the rounds so far, which holds at all looks together.

    `logs` are the rounds' ln(contender / base) in order, `prior` is the step's prior by pooled_noise. The
    repeated confidence interval (Jennison & Turnbull, JRSS B 51, 1989) is exp(m ± margin * s / sqrt(n)),
    where m is the mean of the n rounds that did not stall, and s^2 = (d0 s0^2 + d s_own^2) / (d0 + d) the
    moderated variance (Smyth 2004) with d0 + d degrees of freedom, d = n - 1, or s_own^2 if that is larger.
    Without a prior it is the plain t interval with d degrees of freedom.
    The variance is inflated where neighbouring rounds of the session correlate, and where ratios wander, all
    of the session or that of the step (Noise.inflation, wander_of). `left_out` are the places of rounds that
    are known not to count, whatever their ratio.

    The interval's `n` counts neither these nor stalled rounds; without a prior none is taken for stalled.
    Returns None before the first look. Raises ValueError beyond the cap, where the confidence does not hold.
    """
    if len(logs) < design.least:
        return None
    usable = [log for place, log in enumerate(logs) if place not in left_out]
    kept = usable if prior is None else without_stalls(usable, prior.sd)
    n, middle, own = len(kept), mean(kept), variance(kept)
    spread, df = moderated(own, n - 1, prior)
    spread *= max(1 + wander_of([kept], OWN_WANDER_CAUTION), prior.inflation(n) if prior else 1.0)
    error = math.sqrt(spread / n)
    margin = design.margin(len(logs), df) * error
    last_n = design.cap * len(usable) / len(logs)
    last = design.margin(design.cap, df + last_n - len(usable)) * math.sqrt(spread / last_n)
    trend, lean = (prior.trend, prior.lean) if prior else (0.0, 0.0)
    against = objections(usable, kept, trend, lean)
    return Interval(_exp(middle), _exp(middle - margin), _exp(middle + margin), n, error, last, against)


def smallest_visible(design: Design, noise: Noise, rounds: int, threshold: float) -> float:
    """Return the smallest slow-down, as a fraction, that `rounds` rounds flag with VISIBLE_PROBABILITY.

    A step is flagged when, at the look after `rounds` rounds, its whole interval is below 1 and the estimate
    is beyond the `threshold` (a fraction); its rounds scatter by `noise`. Earlier looks add little to the
    probability and are ignored. Raises ValueError when the design has no such look.
    """
    error = noise.sd * math.sqrt(noise.inflation(rounds) / rounds)
    # The interval is as wide as the larger variance, its own or the moderated: the mean of max(0, z) is 0.4.
    own = noise.df / (noise.df + rounds - 1) * math.sqrt(2 / (rounds - 1))
    widened = math.sqrt(1 + own / math.sqrt(2 * math.pi))
    margin = design.margin(rounds, noise.df + rounds - 1) * error * widened
    needed = max(margin, -math.log1p(-threshold))
    return -math.expm1(-(needed + normal_quantile(VISIBLE_PROBABILITY / (1 - SEEMS_WANDERING)) * error))


def _exp(x: float) -> float:
    """Return exp(x) without overflow: three rounds and a stall can give an interval of e^±1000."""
    return math.exp(max(-700.0, min(x, 700.0)))


def moderated(own: float, df: float, prior: Noise | None) -> tuple[float, float]:
    """Return the moderated variance of a step and its degrees of freedom.

    `own` is the step's own variance with `df` degrees of freedom. Other steps can raise it and make it
    better known, but never lower it: a step that is seen to scatter more than they do is not like them. A
    step whose rounds are all equal, as coarse values are by chance, knows only what the others showed.
    """
    if prior is None:
        return own, df
    expected = prior.sd**2
    if own <= MIN_VARIANCE:
        return expected, max(1.0, prior.df)
    return max(own, (prior.df * expected + df * own) / (prior.df + df)), prior.df + df
