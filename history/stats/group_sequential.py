"""Critical values of group sequential tests, which look at accumulating data repeatedly.

Let Z_n be the standardised mean of the first n rounds. When there is no difference, sqrt(n) Z_n is a random
walk, which gains an independent standard normal with every round. The boundaries c_n are such that |Z_n|
crosses one of them at any look with no more than a given probability.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from history.stats.distributions import normal_below, normal_quantile

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
