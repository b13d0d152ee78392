"""The normal distribution, Student's t and the binomial distribution, in plain Python.

scipy and numpy take longer to import than everything else that `compare` does
(docs/decisions/0021-compare-in-a-blink.md), and scipy needs 143 MB.
"""

import math
from functools import lru_cache

TINY = 1e-300
"""Replaces a zero in a continued fraction."""


def normal_below(x: float) -> float:
    """Return the probability of a standard normal value below x."""
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(probability: float) -> float:
    """Return the x with normal_below(x) = probability. Raises ValueError unless it lies between 0 and 1.

    Newton's method on the logarithm of the smaller tail, from Abramowitz & Stegun 26.2.23.
    """
    _require_probability(probability)
    tail = min(probability, 1 - probability)
    if tail == 0.5:
        return 0.0
    r = math.sqrt(-2 * math.log(tail))
    x = r - (2.515517 + r * (0.802853 + r * 0.010328)) / (1 + r * (1.432788 + r * (0.189269 + r * 0.001308)))
    for _ in range(20):
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        miss = (normal_below(-x) - tail) / density
        change = miss / (1 + x * miss / 2)
        x += change
        if abs(change) <= 1e-14 * abs(x):
            break
    return x if probability > 0.5 else -x


def student_tail(t: float, df: float) -> float:
    """Return the probability that a value of Student's t with `df` > 0 degrees of freedom exceeds t."""
    square = t * t
    beyond = _beta_ratio(df / 2, 0.5, df / (df + square), square / (df + square)) / 2
    return beyond if t >= 0 else 1 - beyond


@lru_cache(maxsize=4096)  # steps of one session share most of their degrees of freedom
def student_quantile(df: float, probability: float) -> float:
    """Return the t below which Student's t with `df` degrees of freedom lies with this probability.

    Halley's method on the smaller tail, begun from Hill's algorithm 396 (Communications of the ACM 13,
    1970). Exact to 1e-11 from 1 degree of freedom up. Raises ValueError for fewer than 1, and for a
    probability that does not lie between 0 and 1.
    """
    _require_probability(probability)
    if not 1 <= df < math.inf:
        raise ValueError(f"degrees of freedom must be 1 or more, not {df}")
    tail = min(probability, 1 - probability)
    if tail == 0.5:
        return 0.0
    t = _near_student(df, 2 * tail)
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    for _ in range(60):
        density = scale * math.exp(-(df + 1) / 2 * math.log1p(t * t / df))
        miss = (student_tail(t, df) - tail) / density
        bend = 1 + miss * (df + 1) * t / (df + t * t) / 2
        # Far from the solution the second-order term is unreliable; a step at most halves or doubles t.
        change = miss / bend if bend > 0.1 else miss
        change = max(-t / 2, min(change, t))
        t += change
        if abs(change) <= 1e-13 * t:
            break
    return t if probability > 0.5 else -t


def binomial_tail(successes: float, failures: float, probability: float) -> float:
    """Return the probability of at least `successes` successes in `successes` + `failures` trials.

    `probability` is that of a success. Numbers between whole ones are interpolated, and 0 successes give 1.
    """
    if successes <= 0:
        return 1.0
    return _beta_ratio(successes, failures + 1, probability, 1 - probability)


def _near_student(df: float, both_tails: float) -> float:
    """Return the t that is exceeded on both sides with this probability, to a few digits (Hill 1970)."""
    if df < 1.5:
        return 1 / math.tan(both_tails * math.pi / 2)
    a = 1 / (df - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * df
    y = (d * both_tails) ** (2 / df)
    if y > 0.05 + a:
        x = normal_quantile(both_tails / 2)
        y = x * x
        if df < 5:
            c += 0.3 * (df - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        return math.sqrt(df * math.expm1(a * y * y))
    y = ((1 / (((df + 6) / (df * y) - 0.089 * d - 0.822) * (df + 2) * 3) + 0.5 / (df + 4)) * y - 1) * (
        df + 1
    ) / (df + 2) + 1 / y
    return math.sqrt(df * y)


def _beta_ratio(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), given rest = 1 - x at full precision."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_ratio(b, a, rest, x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    # Near 1 the logarithm keeps its precision only when computed from the distance to 1.
    powers = a * (math.log(x) if x < 0.5 else math.log1p(-rest)) + b * (
        math.log(rest) if rest < 0.5 else math.log1p(-x)
    )
    return math.exp(front + powers) / a * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz' method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > TINY else TINY)
    value = d
    for m in range(1, 10_000):
        place = a + 2 * m
        even = m * (b - m) * x / ((place - 1) * place)
        odd = -(a + m) * (a + b + m) * x / (place * (place + 1))
        for term in (even, odd):
            d = 1 + term * d
            c = 1 + term / c
            d = 1 / (d if abs(d) > TINY else TINY)
            c = c if abs(c) > TINY else TINY
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def _require_probability(probability: float) -> None:
    if not 0 < probability < 1:
        raise ValueError(f"a probability must lie between 0 and 1, not {probability}")
