"""Critical values for looking at growing data again and again.

Under no difference the standardised mean of the first n rounds, Z_n, is a random walk over its own length:
sqrt(n) Z_n gains an independent standard normal with every round. Boundaries c_n are wanted that it crosses
at any of the looks with a given probability only.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from history.stats.distributions import normal_below, normal_quantile

NODES_TO_GAIN = 1.2
"""Of the numerical integration, to one standard deviation of one round's gain: errors below 1e-7."""

LEAST_NODES = 16
"""The first density is one piece, however narrow."""

NOTHING = 8.5
"""Standard deviations beyond which a normal density adds nothing to a sum."""

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
"""C of the boundary that nearly every session has, with the error shared by 1, 2, 3... steps: a test computes
them anew. They are here because a comparison should not spend a tenth of its time on finding them again."""

Rule = tuple[list[float], list[float]]
"""Points and weights of a numerical integration."""


@lru_cache(maxsize=64)
def power_boundary(error: float, looks: tuple[int, ...], shape: float) -> tuple[float, ...]:
    """The two-sided critical value of |Z_n| at each look n of `looks`, a rising sequence of sample sizes.

    The power family c_n = C (n / last look)^(shape - 1/2) of Wang & Tsiatis (Biometrics 43, 1987): shape 0 is
    the boundary of O'Brien & Fleming (1979), 1/2 that of Pocock (1977). C is such that |Z_n| >= c_n happens
    at any look with probability `error` (0 to 1, both excluded) when there is no difference.
    Raises ValueError when the error or the looks are none.
    """
    if not 0 < error < 1:
        raise ValueError(f"an error lies between 0 and 1, unlike {error}")
    if not looks or looks[0] < 1 or any(later <= look for look, later in pairwise(looks)):
        raise ValueError(f"looks are rising numbers above zero, unlike {looks}")
    weights = [(look / looks[-1]) ** (shape - 0.5) for look in looks]
    steps = USUAL_ERROR / error
    usual = (looks, shape) == (USUAL_LOOKS, USUAL_SHAPE) and math.isclose(steps, round(steps))
    if usual and 1 <= round(steps) <= len(USUAL_CONSTANTS):
        constant = USUAL_CONSTANTS[round(steps) - 1]
    else:
        constant = searched_constant(error, looks, weights)
    return tuple(constant * weight for weight in weights)


def searched_constant(error: float, looks: tuple[int, ...], weights: Sequence[float]) -> float:
    """The C with which boundaries of these weights are crossed with probability `error`."""

    def excess(constant: float) -> float:
        return math.log(crossing_probability([constant * weight for weight in weights], looks) / error)

    # One look alone is the least that C can be; Bonferroni's inequality over all looks the most.
    low = -normal_quantile(error / 2) / max(weights)
    high = -normal_quantile(error / 2 / len(looks)) / min(weights)
    return low if len(looks) == 1 else _root(excess, low, high)


def crossing_probability(boundary: Sequence[float], looks: Sequence[int]) -> float:
    """How probably |Z_n| >= boundary at any of the looks, when there is no difference.

    Armitage, McPherson & Rowe (JRSS A 132, 1969): the density of sqrt(n) Z_n among the paths that have not
    crossed yet is carried from look to look by numerical integration (Jennison & Turnbull, Group Sequential
    Methods, 2000, chapter 19), here by Gauss and Legendre's rule: between two boundaries the density is
    smooth, so that a few dozen points are exact. It is even: one half is enough.
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
            each * (normal_below((point - edge) / gain) + normal_below((-point - edge) / gain))
            for point, each in zip(points, mass, strict=True)
        )
        following, weights = _scaled(edge)
        mass = [
            weight * _carried(point, points, mass, gain)
            for point, weight in zip(following, weights, strict=True)
        ]
        points = following
    return crossed


def _carried(to: float, points: Sequence[float], mass: Sequence[float], gain: float) -> float:
    """The density at `to` after a gain, of an even density with this mass at each point from 0 up."""
    exp, reach, total = math.exp, NOTHING * gain, 0.0
    half = -0.5 / gain**2
    for point, each in zip(points, mass, strict=True):
        apart = to - point
        if -reach < apart < reach:
            total += each * exp(half * apart * apart)
            beyond = to + point
            if beyond < reach:
                total += each * exp(half * beyond * beyond)
    return total / gain / math.sqrt(2 * math.pi)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, between `low` and `high`: the secant method, kept between them.

    In squares, over which the logarithm of a tail is nearly straight, so that a few values are enough.
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
    """A rule for the integral from 0 to `edge`."""
    points, weights = _legendre(max(LEAST_NODES, math.ceil(8 + NODES_TO_GAIN * edge)))
    return [edge * (1 + each) / 2 for each in points], [edge * each / 2 for each in weights]


@lru_cache(maxsize=256)
def _legendre(count: int) -> Rule:
    """Gauss and Legendre's rule from -1 to 1: the zeros of a Legendre polynomial, by Newton's method.

    Begun from Abramowitz & Stegun 22.16.6; the weights are those of 25.4.29.
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
