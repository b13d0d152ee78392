"""The size of a change that is reported because it was large enough to be called one.

Among sessions with a change of 2 %, those that call it one are those in which noise made it look larger: the
mean of their estimates is up to 1.4 times the truth (the winner's curse). The same holds for rounds that go
on until a change is seen.
"""

import math

from history.stats.distributions import normal_below

HALVINGS = 40
"""The halvings of the range in which a root is sought."""


def size_after_selection(size: float, error: float, least: float) -> float:
    """Return the size of a change, corrected for being known only because it was at least `least`.

    All are above 0 and on the scale of logarithms: `size` is the estimate, `error` its standard error, and
    `least` what a change had to reach, at the last look of a session that goes on. The estimate that makes
    `size` most likely given that it was called is the root of size - x - error h((x - least) / error), h
    being the inverse Mills ratio phi / Phi. It falls to 0 where `size` hardly exceeds `least`; the mean of
    both has the least error (Zhong & Prentice, Biostatistics 9, 2008).
    """

    def excess(x: float) -> float:
        return size - x - error * _inverse_mills((x - least) / error)

    low, high = 0.0, size
    if error <= 0 or excess(low) <= 0:
        return size if error <= 0 else size / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (size + low) / 2


def _inverse_mills(x: float) -> float:
    """Return the density over the distribution function of a standard normal value."""
    return -x if x < -30 else math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / normal_below(x)
