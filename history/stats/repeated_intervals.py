"""Repeated confidence intervals: a verdict after every round, with intervals that hold at all looks together.

A step is measured until its interval decides, so that the interval is looked at repeatedly; an ordinary one
would sooner or later miss the true ratio by chance. The critical values are therefore such that the intervals
of all looks up to the cap, and of all steps of the suite, hold together with the requested confidence.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from history.stats.contrary_evidence import objections
from history.stats.distributions import normal_below, normal_quantile, student_quantile
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, variance
from history.stats.noise_model import MIN_VARIANCE, OWN_WANDER_CAUTION, Noise, wander_of, without_stalls

NODES_TO_GAIN = 1.2
"""Nodes of the numerical integration per standard deviation of one round's gain; errors are below 1e-7."""

MIN_NODES = 16
"""The nodes of the numerical integration at least, however narrow the range."""

NOTHING = 8.5
"""The standard deviations beyond which a normal density is negligible."""

USUAL_LOOKS = tuple(range(3, 21))
USUAL_SHAPE = 0.2
USUAL_ERROR = 0.02
USUAL_CONSTANTS = (
    2.5423978599,
    2.7699869693,
    2.896313028,
    2.9832557041,
    3.0492712681,
    3.1023372231,
    3.1466175104,
    3.184555698,
    3.2177060957,
    3.2471175205,
    3.2735304491,
    3.2974867308,
    3.3193945673,
    3.3395689762,
    3.3582580477,
    3.3756605797,
)
"""The constant C of the boundary that nearly all sessions use, with the error shared by 1, 2, 3... steps.

They are stored to save a tenth of the time of a comparison; a test recomputes them."""

Rule = tuple[list[float], list[float]]
"""The points and the weights of a numerical integration."""


@lru_cache(maxsize=64)
def power_boundary(error: float, looks: tuple[int, ...], shape: float) -> tuple[float, ...]:
    """Return the two-sided critical value of |Z_n| at each look n; `looks` are rising sample sizes.

    It is the power family c_n = C (n / last look)^(shape - 1/2) of Wang & Tsiatis (Biometrics 43, 1987):
    shape 0 is the boundary of O'Brien & Fleming (1979), 1/2 that of Pocock (1977). C is such that, when there
    is no difference, |Z_n| >= c_n at any look with probability `error` (0 to 1, both excluded).
    Raises ValueError for an error out of range, and for looks that are empty or do not rise from 1 or more.
    """
    if not 0 < error < 1:
        raise ValueError(f"an error must lie between 0 and 1, not {error}")
    if not looks or looks[0] < 1 or any(later <= look for look, later in pairwise(looks)):
        raise ValueError(f"looks must be rising numbers above zero, not {looks}")
    weights = [(look / looks[-1]) ** (shape - 0.5) for look in looks]
    steps = USUAL_ERROR / error
    usual = (looks, shape) == (USUAL_LOOKS, USUAL_SHAPE) and math.isclose(steps, round(steps))
    if usual and 1 <= round(steps) <= len(USUAL_CONSTANTS):
        constant = USUAL_CONSTANTS[round(steps) - 1]
    else:
        constant = searched_constant(error, looks, weights)
    return tuple(constant * weight for weight in weights)


def searched_constant(error: float, looks: tuple[int, ...], weights: Sequence[float]) -> float:
    """Return the C with which boundaries of these weights are crossed with probability `error`."""

    def excess(constant: float) -> float:
        return math.log(crossing_probability([constant * weight for weight in weights], looks) / error)

    # A single look gives the lower bound of C, Bonferroni's inequality over all looks the upper bound.
    low = -normal_quantile(error / 2) / max(weights)
    high = -normal_quantile(error / 2 / len(looks)) / min(weights)
    return low if len(looks) == 1 else _root(excess, low, high)


def crossing_probability(boundary: Sequence[float], looks: Sequence[int]) -> float:
    """Return the probability of |Z_n| >= boundary at any of the looks when there is no difference.

    Armitage, McPherson & Rowe (JRSS A 132, 1969): the density of sqrt(n) Z_n among the paths that have not
    crossed yet is propagated from look to look by numerical integration (Jennison & Turnbull, Group
    Sequential Methods, 2000, chapter 19). The Gauss-Legendre rule needs only a few dozen points, because the
    density is smooth between two boundaries. The density is even, so that one half of it suffices.
    """
    first = looks[0] ** 0.5
    edge = boundary[0] * first
    points, weights = _scaled(edge)
    mass = [
        weight * math.exp(-point * point / 2 / looks[0]) / first / math.sqrt(2 * math.pi)
        for point, weight in zip(points, weights, strict=True)
    ]
    crossed = 2 * normal_below(-boundary[0])
    for before, look, critical in zip(looks, looks[1:], boundary[1:], strict=False):
        gain = (look - before) ** 0.5
        edge = critical * look**0.5
        crossed += 2 * math.fsum(
            density * (normal_below((point - edge) / gain) + normal_below((-point - edge) / gain))
            for point, density in zip(points, mass, strict=True)
        )
        following, weights = _scaled(edge)
        mass = [
            weight * _propagated(point, points, mass, gain)
            for point, weight in zip(following, weights, strict=True)
        ]
        points = following
    return crossed


def _propagated(to: float, points: Sequence[float], mass: Sequence[float], gain: float) -> float:
    """Return the density at `to` after a gain, from an even density with this mass at points from 0 up."""
    exp, reach, total = math.exp, NOTHING * gain, 0.0
    half = -0.5 / gain**2
    for point, density in zip(points, mass, strict=True):
        apart = to - point
        if -reach < apart < reach:
            total += density * exp(half * apart * apart)
            beyond = to + point
            if beyond < reach:
                total += density * exp(half * beyond * beyond)
    return total / gain / math.sqrt(2 * math.pi)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of a falling function between `low` and `high`, by the bracketed secant method.

    The secants are taken over squares, because the logarithm of a tail is nearly linear in them.
    """
    before, x = high**2, ((low + 2 * high) / 3) ** 2
    old, value = falling(math.sqrt(before)), falling(math.sqrt(x))
    for _ in range(100):
        if abs(value) < 1e-7 or value == old:
            break
        following = min(max(x - value * (x - before) / (value - old), low**2), high**2)
        before, old = x, value
        x, value = following, falling(math.sqrt(following))
    return math.sqrt(x)


def _scaled(edge: float) -> Rule:
    """Return the Gauss-Legendre rule for the integral from 0 to `edge`."""
    points, weights = _legendre(max(MIN_NODES, math.ceil(8 + NODES_TO_GAIN * edge)))
    return [edge * (1 + node) / 2 for node in points], [edge * weight / 2 for weight in weights]


@lru_cache(maxsize=256)
def _legendre(count: int) -> Rule:
    """Return the Gauss-Legendre rule from -1 to 1: zeros of a Legendre polynomial, by Newton's method.

    The initial values are Abramowitz & Stegun 22.16.6, the weights 25.4.29.
    """
    points, weights = [], []
    for index in range(count):
        x = -math.cos(math.pi * (index + 0.75) / (count + 0.5))
        for _ in range(10):
            before, value = 1.0, x
            for degree in range(2, count + 1):
                before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
            slope = count * (x * value - before) / (x * x - 1)
            x -= value / slope
            if abs(value / slope) < 1e-15:
                break
        points.append(x)
        weights.append(2 / ((1 - x * x) * slope * slope))
    return points, weights


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
