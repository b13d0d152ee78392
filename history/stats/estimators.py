"""Estimators for repeated runs: means, medians, variances, and the confidence interval of a ratio."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.stats.contrary_evidence import Objection
from history.stats.distributions import student_quantile

MINIMUM_REPETITIONS = 3
"""The pairs that an interval needs at least: two differences hardly determine their spread."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio, contender over base."""

    estimate: float
    """The geometric mean of the paired ratios."""

    low: float
    high: float
    n: int
    """The number of pairs that it is computed from."""

    error: float = 0.0
    """The standard error of the estimate's logarithm; 0 where it is not known."""

    last_margin: float = 0.0
    """The distance of both ends from the estimate, on the logarithm, that is expected at the last look."""

    objections: tuple[Objection, ...] = ()
    """What the rounds hold against it."""


def ratio_interval(base: Sequence[float], contender: Sequence[float], confidence: float) -> Interval | None:
    """Return the interval that holds contender/base with probability `confidence` (0 to 1, both excluded).

    `base[i]` and `contender[i]` belong to repetition i. Values are paired because the machine drifts between
    repetitions, and both values of a pair drift together. Logarithms treat a ratio and its inverse alike.
    With d_i = ln(contender_i / base_i), mean m, sample standard deviation s and n pairs it is
    exp(m ± t((1 + confidence) / 2, n - 1) * s / sqrt(n)), the one-sample t interval of the paired
    differences (Student 1908; NIST/SEMATECH e-Handbook of Statistical Methods 1.3.5.2 and 7.3.1.1).

    Returns None below MINIMUM_REPETITIONS pairs, and when a value is not above zero and so has no logarithm.
    Raises ValueError when the lengths differ, or for a confidence outside 0 to 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence must lie between 0 and 1, not {confidence}")
    pairs = list(zip(base, contender, strict=True))
    if len(pairs) < MINIMUM_REPETITIONS or any(min(pair) <= 0 for pair in pairs):
        return None
    logs = [math.log(new / old) for old, new in pairs]
    n, middle = len(logs), mean(logs)
    margin = student_quantile(n - 1, (1 + confidence) / 2) * math.sqrt(variance(logs) / n)
    return Interval(math.exp(middle), math.exp(middle - margin), math.exp(middle + margin), n)


def simultaneous_confidence(confidence: float, comparisons: int) -> float:
    """Return the confidence of each of several intervals so that all hold together with `confidence`.

    It is 1 - (1 - confidence) / comparisons by Bonferroni's inequality, which does not require independence;
    the steps of one session are not independent (NIST/SEMATECH e-Handbook 7.4.7.3).
    """
    return 1 - (1 - confidence) / comparisons


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the exponential of the mean logarithm; None without values, or when one is not above zero."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of at least one value."""
    return math.fsum(values) / len(values)


def median(values: Iterable[float]) -> float:
    """Return the median of at least one value; for an even number the mean of the middle two."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of at least two values.

    statistics.variance gives the same, but sums fractions, which costs `compare` a tenth of a second.
    """
    middle = mean(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)
