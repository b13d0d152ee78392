"""What the rounds of a session hold against taking their mean for the ratio of two versions.

An interval takes the ratio of a step for one number, which every round shows with noise of the same kind. If
the ratios of a session drift, or if one version has slow rounds that the other has not, the interval may be
far from the truth, however narrow it is. A change that lasts for all rounds of a session is no contrary
evidence: no method can tell a bad block of that length from a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

DRIFT_CRITICAL = 2.3
"""The standard errors of the common trend of a session beyond which its ratios drift: 2 % by chance."""

LEAN_CRITICAL = 2.6
"""The standard errors of the lean of a session beyond which one side has slow rounds: 1 % by chance."""

MAX_TREND = 3.0
"""The standard errors of one step's trend that count at most, so that no step alone is a drift."""

AGREEMENT = 0.75
"""The share of the mean that every round has to show to settle a doubt."""

LEANING_AGREEMENT = 0.4
"""The same for a doubt that comes from slow rounds of all steps together, and not of the step's own."""

LESS, SAME, MORE = -1, 0, 1


class Doubt(StrEnum):
    """Why an interval is not trusted."""

    DRIFTING = "drifting"
    """The ratios of the session's steps move together from round to round."""

    ONE_SIDED = "one-sided"
    """One version has slow rounds that the other has not."""

    FEW_PASSES = "few passes"
    """Fewer passes show a change than rule out that a count has two levels."""

    TWO_LEVELS = "two levels"
    """All passes show a change, but not its size: the count has two levels."""


@dataclass(frozen=True)
class Objection:
    """A doubt, and which changes of a ratio it does not allow to be called."""

    doubt: Doubt
    against: frozenset[int]
    """LESS, SAME or MORE."""


def objections(
    logs: Sequence[float], kept: Sequence[float], trend: float, lean: float
) -> tuple[Objection, ...]:
    """Return what there is against the interval of a step, if anything.

    `logs` are the log ratios of its rounds in order, `kept` those that did not stall. `trend` and `lean` are
    those of the session, in standard errors. A change that every round shows by AGREEMENT of the mean is not
    in doubt because its size is; nor is one that even the rounds show which stalled, whose ratio is less of
    it.
    """
    middle = math.fsum(kept) / len(kept)
    sign = 1 if middle > 0 else -1
    least = min(sign * log for log in kept)
    found = []
    if abs(trend) > DRIFT_CRITICAL:
        is_shown = least >= AGREEMENT * abs(middle)
        found.append(Objection(Doubt.DRIFTING, frozenset({SAME} if is_shown else {LESS, SAME, MORE})))
    sides = {log > middle for log in logs if log not in kept}
    if len(logs) - len(kept) > 1 and len(sides) == 1:
        other = LESS if True in sides else MORE
        is_shown_by_all = min(sign * log for log in logs) > 0
        found.append(Objection(Doubt.ONE_SIDED, frozenset({SAME} if is_shown_by_all else {SAME, other})))
    elif abs(lean) > LEAN_CRITICAL and least < LEANING_AGREEMENT * abs(middle):
        found.append(Objection(Doubt.ONE_SIDED, frozenset({MORE if lean > 0 else LESS})))
    return tuple(found)


def common_trend(steps: Sequence[Sequence[float]], priors: Sequence[tuple[float, float]]) -> float:
    """Return how far the ratios of all steps rise from round to round, in standard errors.

    It is the sum of the t values of the steps' slopes, each at most MAX_TREND, over the root of their
    number (Stouffer). `steps` are the log ratios in order, `priors` the variance of a round of each with its
    degrees of freedom by other steps, or (0, 0). 0 without any slope.
    """
    slopes = []
    for rounds, (expected, df) in zip(steps, priors, strict=True):
        n = len(rounds)
        if n < 3:
            continue
        middle, half = math.fsum(rounds) / n, (n - 1) / 2
        rise = math.fsum([(place - half) * log for place, log in enumerate(rounds)])
        rise /= math.sqrt(n * (n * n - 1) / 12)
        rest = math.fsum([(log - middle) ** 2 for log in rounds]) - rise**2
        variance = (df * expected + max(0.0, rest)) / (df + n - 2)
        if variance > 0:
            slopes.append(max(-MAX_TREND, min(rise / math.sqrt(variance), MAX_TREND)))
    return math.fsum(slopes) / math.sqrt(len(slopes)) if slopes else 0.0


def common_lean(steps: Sequence[Sequence[float]], kept: Sequence[Sequence[float]]) -> float:
    """Return how many more rounds lie above the mean of their step than below, in standard errors.

    Above 0 a few rounds are far below, below 0 a few are far above. `kept` are the rounds that did not stall,
    whose mean it is. The number above minus that below the mean of n normal rounds has about the variance
    n (1 - 2 / pi).
    """
    excess = number = 0
    for rounds, its_kept in zip(steps, kept, strict=True):
        if its_kept:
            middle = math.fsum(its_kept) / len(its_kept)
            excess += sum(log > middle for log in rounds) - sum(log < middle for log in rounds)
            number += len(rounds)
    return excess / math.sqrt(number * (1 - 2 / math.pi)) if number else 0.0
