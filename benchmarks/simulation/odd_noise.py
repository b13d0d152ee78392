"""Generated years of noise that is not steady, or of no Student's t, without a step.

The kinds that the nightly watch was tuned on, and others of other sizes and shapes that it was not. The
generators are as those of detection_series; SIGMA is the standard deviation of the usual noise.
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.simulation.detection_series import SIGMA, Array, Kind, gaussian

NIGHTS_OF_CHANGE = (60, 300)
"""The noise changes at one of these."""

BURSTS = ((50, 120), (150, 220), (250, 320))
"""Each begins at one of these nights."""

BOX = 10
"""Series of a box that share its bad nights."""


def growing(factor: float) -> Kind:
    """Noise that has become so many times as large at the end, little by little."""
    return lambda rng, shape: gaussian(rng, shape) * np.linspace(1, factor, shape[1])


def from_a_night(factor: float) -> Kind:
    """Noise that is so many times as large from one night on."""

    def kind(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        at = rng.integers(*NIGHTS_OF_CHANGE, (shape[0], 1))
        return gaussian(rng, shape) * np.where(np.arange(shape[1]) >= at, factor, 1.0)

    return kind


def bursts(nights: int, factor: float) -> Kind:
    """Three times a year so many nights of so many times the noise."""

    def kind(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        values, night = gaussian(rng, shape), np.arange(shape[1])
        for first, last in BURSTS:
            at = rng.integers(first, last, (shape[0], 1))
            values = values * np.where((night >= at) & (night < at + nights), factor, 1.0)
        return np.asarray(values)

    return kind


def bad_nights(share: float, size: float) -> Kind:
    """A share of the nights is off by `size` standard deviations, always to the same side."""
    return lambda rng, shape: gaussian(rng, shape) + SIGMA * size * (rng.random(shape) < share)


def shared_bad_nights(share: float, size: float) -> Kind:
    """The same, but every BOX series that follow each other have the same bad nights."""

    def kind(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        off = np.repeat(rng.random((-(-shape[0] // BOX), shape[1])) < share, BOX, axis=0)[: shape[0]]
        return np.asarray(gaussian(rng, shape) + SIGMA * size * off)

    return kind


def some_values(*shares: float) -> Kind:
    """Whole numbers of standard deviations from nought on, each in such a share of the nights."""
    return lambda rng, shape: SIGMA * rng.choice(len(shares), shape, p=shares).astype(np.float64)


def on_a_grid(width: float) -> Kind:
    """Gaussian values rounded to multiples of so many standard deviations, offset differently per series."""

    def kind(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        offset = rng.uniform(-0.5, 0.5, (shape[0], 1))
        return np.asarray(np.round(gaussian(rng, shape) / SIGMA / width + offset) * width * SIGMA)

    return kind


def log_normal(shape_parameter: float) -> Kind:
    """Exponentials of Gaussian values with this standard deviation."""
    return lambda rng, shape: SIGMA * np.exp(shape_parameter * rng.standard_normal(shape))


def gamma(shape_parameter: float) -> Kind:
    """Gamma values; the exponential distribution at 1, less skewed above."""
    return lambda rng, shape: SIGMA * rng.gamma(shape_parameter, size=shape)


TUNED_ON: Mapping[str, Kind] = {
    "noise growing 1.5 times": growing(1.5),
    "noise 1.5 times from a night": from_a_night(1.5),
    "noise twice from a night": from_a_night(2.0),
    "30-night bursts of twice": bursts(30, 2.0),
    "15 % bad nights, +5 sigma": bad_nights(0.15, 5.0),
    "15 % bad nights, +8 sigma": bad_nights(0.15, 8.0),
    "two values, 20 %": some_values(0.8, 0.2),
    "two values, 10 %": some_values(0.9, 0.1),
    "grid of 2 sigma": on_a_grid(2.0),
    "log-normal, 1": log_normal(1.0),
    "exponential": gamma(1.0),
}
"""What the second look of the watch was tuned on."""

NOT_TUNED_ON: Mapping[str, Kind] = {
    "noise growing twice": growing(2.0),
    "noise 1.8 times from a night": from_a_night(1.8),
    "noise 0.6 times from a night": from_a_night(0.6),
    "20-night bursts of 2.5 times": bursts(20, 2.5),
    "10 % bad nights, -6 sigma": bad_nights(0.1, -6.0),
    "two values, 35 %": some_values(0.65, 0.35),
    "three values": some_values(0.6, 0.3, 0.1),
    "grid of 1.5 sigma": on_a_grid(1.5),
    "log-normal, 0.6": log_normal(0.6),
    "gamma, 2": gamma(2.0),
}
"""Other sizes and shapes, first looked at when everything was chosen."""

SHARED: Mapping[str, Kind] = {
    "15 % shared bad nights, +5 sigma": shared_bad_nights(0.15, 5.0),
    "15 % shared bad nights, +8 sigma": shared_bad_nights(0.15, 8.0),
    "10 % shared bad nights, -6 sigma": shared_bad_nights(0.1, -6.0),
}
"""Those of boxes; the judge leaves nights out on which most of their series move together."""
