"""The interval of a ratio from a number of pairs that is fixed beforehand, for benchmarks and tests."""

import math
from collections.abc import Sequence

from history.stats.distributions import binomial_tail, student_quantile
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, variance


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


def upper_bound(count: int, trials: int, confidence: float) -> float:
    """Return the largest share of trials that `count` of them leave possible with `confidence` (0 to 1).

    It is the one-sided bound of Clopper and Pearson (1934): the share at which as few as `count` have the
    probability 1 - confidence; 1 if all of them count. Raises ValueError unless 0 <= count <= trials, and
    for no trials.
    """
    if trials < 1 or not 0 <= count <= trials:
        raise ValueError(f"{count} of {trials} is no share")
    if count == trials:
        return 1.0
    low, high = count / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if binomial_tail(count + 1, trials - count - 1, middle) < confidence:
            low = middle
        else:
            high = middle
    return high
