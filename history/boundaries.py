"""Critical values for looking at growing data again and again.

Under no difference the standardised mean of the first n rounds, Z_n, is a random walk over its own length:
sqrt(n) Z_n gains an independent standard normal with every round. Boundaries c_n are wanted that it crosses
at any of the looks with a given probability only.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

GRID_STEP = 0.04
"""Of the numerical integration, in standard deviations of one round's gain: errors below 1e-6."""


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
    from scipy.special import ndtri  # 0.2 s to import: only where intervals are computed

    weights = [(look / looks[-1]) ** (shape - 0.5) for look in looks]
    # One look alone is the least that C can be; Bonferroni's inequality over all looks the most.
    low = float(-ndtri(error / 2)) / max(weights)
    high = float(-ndtri(error / 2 / len(looks))) / min(weights)
    for _ in range(100):
        if high - low < 1e-7:
            break
        middle = (low + high) / 2
        crossed = crossing_probability([middle * weight for weight in weights], looks)
        low, high = (middle, high) if crossed > error else (low, middle)
    return tuple(high * weight for weight in weights)


def crossing_probability(boundary: Sequence[float], looks: Sequence[int]) -> float:
    """How probably |Z_n| >= boundary at any of the looks, when there is no difference.

    Armitage, McPherson & Rowe (JRSS A 132, 1969): the density of sqrt(n) Z_n among the paths that have not
    crossed yet is carried from look to look by numerical integration, here with Simpson's rule (Jennison &
    Turnbull, Group Sequential Methods, 2000, chapter 19). By symmetry one half of the density is enough, but
    the whole is simpler.
    """
    import numpy as np
    from scipy.special import ndtr

    edge = boundary[0] * looks[0] ** 0.5
    points, weights = _simpson(edge, looks[0] ** 0.5)
    density = np.exp(-(points**2) / 2 / looks[0]) / np.sqrt(2 * np.pi * looks[0])
    crossed = 2 * float(ndtr(-boundary[0]))
    for before, look, critical in zip(looks, looks[1:], boundary[1:], strict=False):
        gain = (look - before) ** 0.5
        edge = critical * look**0.5
        mass = density * weights
        crossed += float(mass @ (ndtr((points - edge) / gain) + ndtr((-points - edge) / gain)))
        following, weights = _simpson(edge, gain)
        kernel = np.exp(-((following[:, None] - points[None, :]) ** 2) / 2 / gain**2)
        density = kernel @ mass / np.sqrt(2 * np.pi) / gain
        points = following
    return crossed


def _simpson(edge: float, gain: float) -> "tuple[Array, Array]":
    """Points from -edge to edge and their weights, fine against the gain."""
    import numpy as np

    intervals = 2 * max(20, round(edge / min(gain, 1) / GRID_STEP / 5))
    points = np.linspace(-edge, edge, intervals + 1)
    weights = np.full(intervals + 1, 2.0)
    weights[1::2] = 4
    weights[[0, -1]] = 1
    return points, weights * (2 * edge / intervals / 3)
