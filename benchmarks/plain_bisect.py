"""Plain bisect with fixed reruns: what a noisy search is compared with.

At each midpoint a fixed number of interleaved rounds; the mean of their log ratios is bad when it lies beyond
half of the whole difference. As strong as it gets: half of the difference is either given to it exactly and
for nothing, or estimated from as many rounds of bad; it never asks whether there is a difference at all.
Noise is Gaussian, so that its accuracy is known without a simulation.
"""

import math

import numpy as np
from scipy.special import ndtr

MOST_RERUNS = 5_000

NODES = 201
"""Points of the integral over the estimate of half of the difference, out to 5 standard errors."""


def accuracy(length: int, size: float, noise: float, reruns: int, told: bool) -> float:
    """The probability that it names the culprit of a loss of `size`, anywhere in `length` commits.

    `length` is a power of two: every culprit then takes as many midpoints, half of which are bad on average.
    `told` says that it knows half of the difference.
    """
    difference = -math.log1p(-size)
    error = noise / math.sqrt(reruns)
    if told:
        return float(ndtr(difference / 2 / error) ** midpoints(length))
    deviates = np.linspace(-5, 5, NODES)
    weights = np.exp(-(deviates**2) / 2)
    half = (difference + error * deviates) / 2
    right = (ndtr(half / error) + ndtr((difference - half) / error)) / 2
    return float(weights @ right ** midpoints(length) / weights.sum())


def reruns_for(wanted: float, length: int, size: float, noise: float, told: bool) -> int:
    """The fewest rounds per midpoint that are right with a probability of `wanted`; at most MOST_RERUNS."""
    low, high = 0, MOST_RERUNS
    while high - low > 1:  # accuracy rises with reruns
        middle = (low + high) // 2
        enough = accuracy(length, size, noise, middle, told) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high


def midpoints(length: int) -> int:
    """That are built and measured."""
    return round(math.log2(length))


def spent(length: int, reruns: int, told: bool) -> tuple[int, int]:
    """Rounds, and builds with good and bad."""
    return (midpoints(length) + (0 if told else 1)) * reruns, midpoints(length) + 2
