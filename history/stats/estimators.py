"""What repeated runs allow to be said about a ratio."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.stats.distributions import student_quantile

MINIMUM_REPETITIONS = 3
"""Pairs below which no interval is given: two differences say next to nothing about their spread."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio, contender over base."""

    estimate: float
    """Geometric mean of the paired ratios."""

    low: float
    high: float
    n: int
    """Pairs it rests on."""


def ratio_interval(base: Sequence[float], contender: Sequence[float], confidence: float) -> Interval | None:
    """The interval that holds contender/base with probability `confidence` (0 to 1, both excluded).

    `base[i]` and `contender[i]` belong to repetition i. Paired, because the machine drifts between
    repetitions and a pair drifts together; on the logarithm, because a ratio and its inverse are then
    treated alike. With d_i = ln(contender_i / base_i), mean m, sample standard deviation s and n pairs:
    exp(m ± t((1 + confidence) / 2, n - 1) * s / sqrt(n)), the one-sample t interval of the paired
    differences (Student 1908; NIST/SEMATECH e-Handbook of Statistical Methods 1.3.5.2 and 7.3.1.1).

    None below MINIMUM_REPETITIONS pairs, and when a value is not above zero and so has no logarithm.
    Raises ValueError when the lengths differ or the confidence is none.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, unlike {confidence}")
    pairs = list(zip(base, contender, strict=True))
    if len(pairs) < MINIMUM_REPETITIONS or any(min(pair) <= 0 for pair in pairs):
        return None
    logs = [math.log(new / old) for old, new in pairs]
    n, middle = len(logs), mean(logs)
    margin = student_quantile(n - 1, (1 + confidence) / 2) * math.sqrt(variance(logs) / n)
    return Interval(math.exp(middle), math.exp(middle - margin), math.exp(middle + margin), n)


def simultaneous_confidence(confidence: float, comparisons: int) -> float:
    """The confidence each of several intervals needs for all of them to hold together with `confidence`.

    Bonferroni's inequality, 1 - (1 - confidence) / comparisons: needs no independence, which steps of one
    session do not have (NIST/SEMATECH e-Handbook 7.4.7.3).
    """
    return 1 - (1 - confidence) / comparisons


def geometric_mean(values: Sequence[float]) -> float | None:
    """exp of the mean logarithm; None of nothing, and when a value is not above zero."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def median(values: Iterable[float]) -> float:
    """The middle of at least one value; of an even number the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def variance(values: Sequence[float]) -> float:
    """The sample variance of at least two values.

    Of Python's own module it differs by speed: that one sums fractions, which is a tenth of a second here.
    """
    middle = mean(values)
    return math.fsum([(each - middle) ** 2 for each in values]) / (len(values) - 1)
