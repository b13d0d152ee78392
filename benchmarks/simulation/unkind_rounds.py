"""Simulated rounds of equal builds that are not what an interval takes them for.

Steps unlike each other, rounds of which the mean is not steady, and kinds that no part of the method was
tuned on. Functions are as in benchmarks/simulation/rounds.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.simulation.rounds import (
    DEVIATION,
    NEIGHBOURS,
    Array,
    Kind,
    Shape,
    autocorrelated,
    gaussian,
    heavy_tailed,
    load_recording,
    resampled,
    stalling,
)

RECORDING = Path(__file__).parent / "noise.json"

CORRELATION = 0.3
"""Of neighbouring rounds: the largest for which the rate of false regressions is promised."""

UNLIKE = 3.0
"""The factor by which the noise of steps differs at most for which the rate is promised."""


def deviating(noise: Kind, deviations: Sequence[float]) -> Kind:
    """Return noise of which step j has the standard deviation `deviations[j]`, in turn for more steps."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        own = np.resize(deviations, shape[1]) / DEVIATION
        return noise(rng, shape) * own[None, :, None]

    return kind


def correlated(correlation: float) -> Kind:
    """AR(1) of this correlation."""
    return lambda rng, shape: autocorrelated(rng, shape, correlation)


def quantised(grid: float) -> Kind:
    """Gaussian rounds, rounded to multiples of so many standard deviations."""
    width = grid * DEVIATION
    return lambda rng, shape: np.asarray(np.round(gaussian(rng, shape) / width) * width)


def blocked(size: float, first: int, last: int) -> Kind:
    """Gaussian rounds; rounds `first` to `last` of the first step are lower by `size`."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        rounds = gaussian(rng, shape)
        rounds[:, 0, first - 1 : last] -= size
        return rounds

    return kind


def settling(size: float, rounds: float, steps: int | None = None) -> Kind:
    """Gaussian rounds of a ratio that begins lower by `size` and settles within so many rounds (1 / e)."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        values = gaussian(rng, shape)
        values[:, :steps] -= size * np.exp(-np.arange(shape[2]) / rounds)
        return values

    return kind


def wandering(size: float, noise: float = DEVIATION) -> Kind:
    """Gaussian rounds around a ratio that begins at 1 and is a random walk of so much a round."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        return np.asarray(
            noise / DEVIATION * gaussian(rng, shape) + rng.normal(0, size, shape).cumsum(axis=2)
        )

    return kind


def end_slots(loss: float, is_fixed: bool) -> Kind:
    """Gaussian blocks A B B A whose first and last slices are slower by `loss`.

    In a fixed order they are always the base's; otherwise the order is drawn for every two blocks, of which
    the second has it the other way round.
    """

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        first = rng.choice((-1.0, 1.0), (*shape[:2], (shape[2] + 1) // 2))
        drawn = np.stack([first, -first], axis=3).reshape(*shape[:2], -1)[:, :, : shape[2]]
        return np.asarray(gaussian(rng, shape) + loss * (1.0 if is_fixed else drawn))

    return kind


def switching(size: float, stays: float, noise: float) -> Kind:
    """Two modes, `size` above and below, each kept with probability `stays`; Gaussian noise around them."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        mode, same = rng.choice((-1.0, 1.0), shape), rng.random(shape) < stays
        for i in range(1, shape[2]):
            mode[..., i] = np.where(same[..., i], mode[..., i - 1], mode[..., i])
        return np.asarray(noise / DEVIATION * gaussian(rng, shape) + size * mode)

    return kind


def slow_rounds(share: float, sign: int) -> Kind:
    """Gaussian rounds; one version loses 5 to 15 % in a share of them, and on average the other as much."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        loss = (rng.random(shape) < share) * rng.uniform(0.05, 0.15, shape) - share * 0.1
        return np.asarray(gaussian(rng, shape) + sign * loss)

    return kind


def scattering(factor: float) -> Kind:
    """One version scatters so many times as much as the other, skewed to the slow side (gamma noise)."""
    base = DEVIATION / np.sqrt(1 + factor**2)

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        skewed = (2 - rng.gamma(2.0, size=shape)) / np.sqrt(2)
        return np.asarray(base * (factor * skewed - rng.normal(size=shape)))

    return kind


def laid_out(luck: float) -> Kind:
    """Gaussian rounds of equal sources: each step has the luck of one layout a side, deviating by `luck`."""

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        return np.asarray(gaussian(rng, shape) + rng.normal(0, luck * np.sqrt(2), (*shape[:2], 1)))

    return kind


def bursts(rng: np.random.Generator, shape: Shape) -> Array:
    """Noise whose size is log-normal (0.5) by round, the same for all steps, and follows itself (0.7)."""
    size = rng.normal(0, 0.5, (shape[0], 1, shape[2]))
    for i in range(1, shape[2]):
        size[..., i] = 0.7 * size[..., i - 1] + np.sqrt(1 - 0.7**2) * size[..., i]
    return np.asarray(gaussian(rng, shape) * np.exp(size - 0.25))


def second_order(rng: np.random.Generator, shape: Shape) -> Array:
    """AR(2) of 0.15 and 0.15."""
    rounds = gaussian(rng, (*shape[:2], shape[2] + 20))
    for i in range(2, rounds.shape[2]):
        rounds[..., i] += 0.15 * rounds[..., i - 1] + 0.15 * rounds[..., i - 2]
    return np.asarray(rounds[..., 20:] * DEVIATION / rounds[..., 20:].std())


def mixed(rng: np.random.Generator, shape: Shape) -> Array:
    """A mixture: 15 % of the rounds scatter by 4 %, the others by 1.4 %."""
    return np.asarray(gaussian(rng, shape) * np.where(rng.random(shape) < 0.15, 2.0, 0.7))


def laplacian(rng: np.random.Generator, shape: Shape) -> Array:
    """Laplace's distribution."""
    return np.asarray(rng.laplace(0, DEVIATION / np.sqrt(2), shape))


ONE_NOISY = (UNLIKE * DEVIATION, *[DEVIATION] * 9)
HALF_NOISY = (*[UNLIKE * DEVIATION] * 5, *[DEVIATION] * 5)

PROMISED: Mapping[str, Kind] = {
    f"AR(1) of {CORRELATION}": correlated(CORRELATION),
    "one step with three times the noise": deviating(gaussian, ONE_NOISY),
    "half the steps with three times the noise": deviating(gaussian, HALF_NOISY),
    "quantised to 1 deviation": quantised(1.0),
    "quantised to 2 deviations": quantised(2.0),
}
"""Beside rounds.SYNTHETIC: at most 1 % of suites with a false regression."""

BEYOND: Mapping[str, Kind] = {
    "AR(1) of 0.5": correlated(0.5),
    "AR(1) of 0.3, one step with three times the noise": deviating(correlated(0.3), ONE_NOISY),
}
"""Kinds for which nothing is promised."""

CONTRARY: Mapping[str, Kind] = {
    "rounds 1 to 5 of a step 3 % lower": blocked(0.03, 1, 5),
    "rounds 1 to 5 of a step 5 % lower": blocked(0.05, 1, 5),
    "rounds 1 to 5 of a step 8 % lower": blocked(0.08, 1, 5),
    "all settle from -5 % in 3 rounds": settling(0.05, 3),
    "all settle from -5 % in 6 rounds": settling(0.05, 6),
    "a step settles from -5 % in 3 rounds": settling(0.05, 3, steps=1),
    "modes of 1.5 % up and down, 5 rounds": switching(0.015, 0.8, 0.014),
    "modes of 2 % up and down, 5 rounds": switching(0.02, 0.8, 0.014),
    "contender slow in 15 % of rounds": slow_rounds(0.15, -1),
    "base slow in 15 % of rounds": slow_rounds(0.15, 1),
    "contender scatters 3 times as much": scattering(3.0),
    "luck of layout of 0.5 % a side": laid_out(0.005),
    "luck of layout of 1 % a side": laid_out(0.01),
    "wanders by 0.4 % a round": wandering(0.004),
    "wanders by 0.4 % a round, noise of 1 %": wandering(0.004, 0.01),
    "wanders by 0.2 % a round, noise of 1 %": wandering(0.002, 0.01),
    "end slots of a block 2 % slower, the base's": end_slots(0.02, is_fixed=True),
    "end slots of a block 2 % slower, drawn": end_slots(0.02, is_fixed=False),
    "correlation of 0.65 at distance three": correlated(0.65 ** (1 / 3)),
}
"""Kinds of which the mean is not steady, or of which few rounds do not show it."""

NOT_TUNED_ON: Mapping[str, Kind] = {
    "bursts of log-normal size": bursts,
    "AR(2) of 0.15 and 0.15": second_order,
    "mixture of 1.4 and 4 %": mixed,
    "Laplace": laplacian,
    "two steps with 2.5 times the noise": deviating(gaussian, (0.05, 0.05, *[0.02] * 8)),
    "quantised to 1.5 deviations": quantised(1.5),
    "modes of 1 % up and down, 2.5 rounds": switching(0.01, 0.6, 0.017),
    "all settle from -4 % in 2 rounds": settling(0.04, 2),
    "rounds 3 to 6 of a step 6 % lower": blocked(0.06, 3, 6),
}
"""No part of the method was chosen on them: they were first looked at when all of it was."""


def recorded_kinds() -> Mapping[str, Kind]:
    """Return kinds in which every step has its own recorded deviation; none without a recording."""
    recording = load_recording(RECORDING)
    if recording is None:
        return {}
    own = [float(np.std(logs, ddof=1)) for logs in recording.steps]
    return {
        "recorded rounds": deviating(resampled(recording), own),
        "gaussian, recorded deviations": deviating(gaussian, own),
        "t3, recorded deviations": deviating(heavy_tailed, own),
        f"AR(1) of {NEIGHBOURS}, recorded deviations": deviating(correlated(NEIGHBOURS), own),
        f"AR(1) of {CORRELATION}, recorded deviations": deviating(correlated(CORRELATION), own),
        "stalls, recorded deviations": deviating(stalling, own),
    }
