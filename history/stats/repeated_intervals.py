"""A verdict after every round: intervals that hold at all looks together.

A step gets rounds until its interval decides, so the interval is looked at again and again, and would sooner
or later miss the truth by chance. The critical values are therefore such that the intervals of all looks up
to the cap, and of all steps of the suite, hold together with the confidence asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from history.stats.distributions import f_above, normal_below, normal_quantile, student_quantile
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, variance
from history.stats.group_sequential import power_boundary
from history.stats.noise_model import Noise, pooled_noise, without_stalls

__all__ = ["Design", "Noise", "pooled_noise", "sequential_interval", "smallest_visible"]

MOST_ROUNDS = 20
"""The default cap: what is undecided after these stays inconclusive."""

FAMILY_CONFIDENCE = 0.98
"""The default: 1 % for a false regression in a suite, and 1 % for a false improvement."""

SHAPE = 0.2
"""Of the boundary in Wang & Tsiatis' power family: docs/decisions/0014-sequential-verdicts.md says why."""

DISAGREEMENT = 0.01
"""A prior is dropped when it would make the step's own larger variance this improbable."""

VISIBLE_PROBABILITY = 0.8
"""With which a change that is called visible is flagged."""


@dataclass(frozen=True)
class Design:
    """How often is looked, and what may go wrong in all looks together.

    Raises ValueError when there can be no such design.
    """

    steps: int = 10
    """Steps that are judged together: the family that shares the error."""

    least: int = MINIMUM_REPETITIONS
    """Rounds before the first look."""

    cap: int = MOST_ROUNDS
    """Rounds of the last look; there is one after each round from `least` on."""

    confidence: float = FAMILY_CONFIDENCE
    """That all intervals of the family hold at all looks; between 0 and 1."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"a confidence lies between 0 and 1, unlike {self.confidence}")
        if not (self.steps >= 1 and MINIMUM_REPETITIONS <= self.least <= self.cap):
            raise ValueError(
                f"a design needs a step and {MINIMUM_REPETITIONS} <= least <= cap, unlike {self}"
            )

    @property
    def step_error(self) -> float:
        """The error of one step in all its looks: Bonferroni's share, which needs no independent steps."""
        return (1 - self.confidence) / self.steps

    def critical(self, rounds: int) -> float:
        """The two-sided standard normal critical value of the look after `rounds` rounds.

        Raises ValueError when there is no such look.
        """
        if not self.least <= rounds <= self.cap:
            raise ValueError(f"looks are at {self.least} to {self.cap} rounds, not at {rounds}")
        looks = tuple(range(self.least, self.cap + 1))
        return power_boundary(self.step_error, looks, SHAPE)[rounds - self.least]

    def margin(self, rounds: int, df: float) -> float:
        """The critical value in standard errors when the standard deviation has `df` degrees of freedom.

        Student's t at the nominal level of the normal boundary: the significance-level approach (Jennison &
        Turnbull, Group Sequential Methods, 2000, section 4.4; Pocock 1977). Raises as `critical` does.
        """
        critical = self.critical(rounds)
        if math.isinf(df):
            return critical
        return -student_quantile(df, normal_below(-critical))


def sequential_interval(logs: Sequence[float], design: Design, prior: Noise | None) -> Interval | None:
    """The interval of contender/base after the rounds so far; holds at every look of the design together.

    `logs` are the rounds' ln(contender / base) in any order, `prior` what pooled_noise says of the step. A
    repeated confidence interval (Jennison & Turnbull, JRSS B 51, 1989): exp(m ± margin * s / sqrt(n)), with m
    the mean of the n rounds that did not stall, and s^2 = (d0 s0^2 + d s_own^2) / (d0 + d) the moderated
    variance (Smyth 2004) with d0 + d degrees of freedom, d = n - 1. Without a prior, and where the rounds
    scatter so much more than the prior that it cannot be theirs, it is the plain t interval with d degrees.
    The variance is inflated where neighbouring rounds of the session correlate (Noise.inflation).

    `n` of the interval counts the rounds it rests on: those set aside as stalled are missing. Without a prior
    none is set aside. None before the design's first look. Raises ValueError beyond its cap, where the
    intervals would hold no more.
    """
    if len(logs) < design.least:
        return None
    kept = list(logs) if prior is None else without_stalls(logs, prior.sd)
    n, middle, own = len(kept), mean(kept), variance(kept)
    spread, df = moderated(own, n - 1, prior)
    spread *= prior.inflation(n) if prior else 1.0
    margin = design.margin(len(logs), df) * math.sqrt(spread / n)
    return Interval(_exp(middle), _exp(middle - margin), _exp(middle + margin), n)


def smallest_visible(design: Design, noise: Noise, rounds: int, threshold: float) -> float:
    """The smallest slow-down, as a fraction, that `rounds` rounds flag with VISIBLE_PROBABILITY.

    Flagged means: at the look after `rounds` rounds the whole interval is below 1 and the estimate beyond the
    `threshold` (a fraction), for a step whose rounds scatter by `noise`. Earlier looks add little to the
    probability and are left out. Raises ValueError when the design has no such look.
    """
    error = noise.sd * math.sqrt(noise.inflation(rounds) / rounds)
    needed = max(design.margin(rounds, noise.df + rounds - 1) * error, -math.log1p(-threshold))
    return -math.expm1(-(needed + normal_quantile(VISIBLE_PROBABILITY) * error))


def _exp(x: float) -> float:
    """exp of what a float can hold: three rounds and a stall leave an interval of e^±1000."""
    return math.exp(max(-700.0, min(x, 700.0)))


def moderated(own: float, df: float, prior: Noise | None) -> tuple[float, float]:
    """Variance and degrees of freedom from a step's own and its prior."""
    if prior is None:
        return own, df
    expected = prior.sd**2
    if own > expected and f_above(df, prior.df, own / expected) < DISAGREEMENT:
        return own, df
    return (prior.df * expected + df * own) / (prior.df + df), prior.df + df
