"""Generated series of nights: noise of several kinds with a standard deviation of 2 %, and steps in it.

Values stand for logs of relative throughput. The sizes of steps are in standard deviations of the noise,
whose marginal one is SIGMA for every kind, without outliers and drift. Every generator takes numpy's
Generator and the shape (series, nights), and gives an array of that shape, nan for a gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kind = Callable[[np.random.Generator, tuple[int, int]], Array]

SIGMA = 0.02
NIGHTS = 365

CORRELATION = 0.4
"""Of neighbouring nights: in the middle of 0.3 to 0.5, where what disturbs a machine lasts for days."""

BEYOND_CORRELATION = 0.6

TREND = 1.0
"""Standard deviations that a drifting series rises or falls in a year."""

SEASON = 0.15
"""Amplitude of a drifting series' yearly wave, in standard deviations: with the trend 1 to 1.3 in all."""

PACES = (0.15, 0.6)
"""Shares of a series that levels off within which all but 1/e of the way is gone."""

OUTLIER_SHARE = 0.03
OUTLIER_SIZES = (5.0, 10.0)
GAP_SHARE = 0.1
WEEK = 7

FIRST_STEP = 60
SHORT_SPACING = (15, 30)
LONG_SPACING = (40, 110)
SHORT_SHARE = 0.3
STEP_SIZES = (0.75, 5.0)

WATCHED_AFTER = 100
"""First night of the single step whose delay is measured."""

CENSORED = 60
"""Nights after which a step that was not seen counts as seen."""


def gaussian(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Independent nights."""
    return SIGMA * rng.standard_normal(shape)


def heavy_tails(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Student's t with 3 degrees of freedom, scaled to the standard deviation SIGMA."""
    return np.asarray(SIGMA / math.sqrt(3) * rng.standard_t(3, shape))


def autocorrelated(rng: np.random.Generator, shape: tuple[int, int], rho: float = CORRELATION) -> Array:
    """AR(1) with a marginal standard deviation of SIGMA."""
    noise: Array = rng.standard_normal(shape)
    innovation = math.sqrt(1 - rho * rho)
    for night in range(1, shape[1]):
        noise[:, night] = rho * noise[:, night - 1] + innovation * noise[:, night]
    return np.asarray(SIGMA * noise)


def drifting(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """A straight trend and a yearly wave of random phase under Gaussian noise."""
    years = np.arange(shape[1]) / NIGHTS
    trend = TREND * rng.choice([-1.0, 1.0], (shape[0], 1)) * years
    wave = SEASON * np.sin(2 * np.pi * (years + rng.random((shape[0], 1))))
    return np.asarray(gaussian(rng, shape) + SIGMA * (trend + wave))


def drifting_by(strength: float, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Drift of the same shape by `strength` standard deviations over the series, however long it is."""
    part = np.arange(shape[1]) / shape[1]
    trend = rng.choice([-1.0, 1.0], (shape[0], 1)) * part
    wave = SEASON * np.sin(2 * np.pi * (part + rng.random((shape[0], 1))))
    return np.asarray(gaussian(rng, shape) + SIGMA * strength * (trend + wave))


def levelling_off(strength: float, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """A series that approaches another level by `strength` standard deviations, ever more slowly."""
    part = np.arange(shape[1]) / shape[1]
    pace = rng.uniform(*PACES, (shape[0], 1))
    way = rng.choice([-1.0, 1.0], (shape[0], 1)) * (1 - np.exp(-part / pace))
    return np.asarray(gaussian(rng, shape) + SIGMA * strength * way)


def with_outliers(values: Array, rng: np.random.Generator) -> Array:
    """The same with OUTLIER_SHARE of nights off by OUTLIER_SIZES standard deviations either way."""
    off = rng.random(values.shape) < OUTLIER_SHARE
    sizes = rng.uniform(*OUTLIER_SIZES, values.shape) * rng.choice([-1.0, 1.0], values.shape)
    return np.asarray(values + SIGMA * off * sizes)


def with_gaps(values: Array, rng: np.random.Generator) -> Array:
    """The same with GAP_SHARE of nights missing, and in every other series a whole week."""
    there = np.where(rng.random(values.shape) < GAP_SHARE, np.nan, values)
    nights = np.arange(values.shape[1])
    start = rng.integers(0, values.shape[1] - WEEK, (len(values), 1))
    week = (nights >= start) & (nights < start + WEEK) & (rng.random((len(values), 1)) < 0.5)
    return np.where(week, np.nan, there)


def outliers_and_gaps(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Gaussian nights, some of them far off, some missing."""
    return with_gaps(with_outliers(gaussian(rng, shape), rng), rng)


KINDS: dict[str, Kind] = {
    "gaussian": gaussian,
    "t3": heavy_tails,
    "AR(1)": autocorrelated,
    "drifting": drifting,
    "outliers, gaps": outliers_and_gaps,
}
"""The kinds with targets."""


def _laplace(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return SIGMA / math.sqrt(2) * rng.laplace(size=shape)


def _everything(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return with_gaps(with_outliers(autocorrelated(rng, shape, 0.2), rng), rng)


def _strongly_autocorrelated(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return autocorrelated(rng, shape, BEYOND_CORRELATION)


OTHER_KINDS: dict[str, Kind] = {
    "Laplace": _laplace,
    "AR(1) of 0.2, outliers, gaps": _everything,
    "AR(1) of 0.6": _strongly_autocorrelated,
}
"""Kinds that nothing was tuned for: shown, without a target."""


UNPROMISED_CORRELATIONS = (0.2, 0.5, 0.6, 0.7)
UNPROMISED_TRENDS = (1.5, 2.0, 4.0)
"""Standard deviations a year."""


def _straight_line(strength: float, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    years = np.arange(shape[1]) / NIGHTS
    return np.asarray(
        gaussian(rng, shape) + SIGMA * strength * rng.choice([-1.0, 1.0], (shape[0], 1)) * years
    )


UNPROMISED: dict[str, Kind] = {
    **{f"AR(1) of {rho:g}": partial(autocorrelated, rho=rho) for rho in UNPROMISED_CORRELATIONS},
    **{f"a line of {trend:g} sigma": partial(_straight_line, trend) for trend in UNPROMISED_TRENDS},
}
"""Kinds of which more quiet years than promised have a change."""


@dataclass(frozen=True)
class Stepped:
    """Series with steps: `values` [series, nights]; `steps`: the first nights of each series' new levels."""

    values: Array
    steps: list[list[int]]


def one_step(kind: Kind, seed: tuple[int, ...], series: int, size: float) -> Stepped:
    """A step of `size` standard deviations up or down, at a night that leaves CENSORED nights to see it."""
    rng = np.random.default_rng(seed)
    values = kind(rng, (series, NIGHTS))
    at = rng.integers(WATCHED_AFTER, NIGHTS - CENSORED, series)
    sizes = SIGMA * size * rng.choice([-1.0, 1.0], series)
    values = values + (np.arange(NIGHTS) >= at[:, None]) * sizes[:, None]
    return Stepped(values, [[int(night)] for night in at])


def step_in_the_middle(kind: Kind, seed: tuple[int, ...], shape: tuple[int, int], size: float) -> Stepped:
    """A step of `size` standard deviations up or down after half of the nights."""
    rng = np.random.default_rng(seed)
    values = kind(rng, shape)
    sizes = SIGMA * size * rng.choice([-1.0, 1.0], (shape[0], 1))
    values[:, shape[1] // 2 :] += sizes
    return Stepped(values, [[shape[1] // 2]] * shape[0])


def several_steps(kind: Kind, seed: tuple[int, ...], series: int) -> Stepped:
    """Steps of STEP_SIZES standard deviations up or down; SHORT_SHARE of them come right after another."""
    rng = np.random.default_rng(seed)
    values = kind(rng, (series, NIGHTS))
    steps: list[list[int]] = []
    for row in values:
        nights = [int(rng.integers(FIRST_STEP, 2 * FIRST_STEP))]
        while True:
            spacing = SHORT_SPACING if rng.random() < SHORT_SHARE else LONG_SPACING
            night = nights[-1] + int(rng.integers(*spacing))
            if night > NIGHTS - SHORT_SPACING[0]:
                break
            nights.append(night)
        for night in nights:
            row[night:] += SIGMA * rng.uniform(*STEP_SIZES) * rng.choice([-1.0, 1.0])
        steps.append(nights)
    return Stepped(values, steps)
