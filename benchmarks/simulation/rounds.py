"""Simulated rounds of A/A: log ratios that scatter as real ones do, with a standard deviation of 2 %.

Each kind of noise is a function of a random generator and a shape (suites, steps, rounds). Rounds are in the
order in which they are run. `recorded` resamples rounds of a real machine instead.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, int, int]
Kind = Callable[[np.random.Generator, Shape], Array]

DEVIATION = 0.02
"""Of one round's log ratio, stalls left aside."""

NEIGHBOURS = 0.2
"""Correlation of neighbouring rounds of the kind `autocorrelated`."""

STALLS = 0.02
"""Share of the rounds in which one version stalls."""

STALL_DROP = (0.2, 0.6)
"""By how much of its QPS, evenly in between."""

SPREAD = 0.4
"""Of the kind `unequal`: standard deviation of the logarithm of a step's noise."""

BLOCK = 4.0
"""Mean length of the blocks of recorded rounds."""

LEAST_RECORDED = 6
"""Rounds of a step below which its record is not used."""


def gaussian(rng: np.random.Generator, shape: Shape) -> Array:
    """Independent normal rounds."""
    return np.asarray(rng.normal(0, DEVIATION, shape))


def heavy_tailed(rng: np.random.Generator, shape: Shape) -> Array:
    """Student's t with 3 degrees of freedom, whose variance is 3."""
    return np.asarray(rng.standard_t(3, shape) * DEVIATION / np.sqrt(3))


def autocorrelated(rng: np.random.Generator, shape: Shape, correlation: float = NEIGHBOURS) -> Array:
    """AR(1): what disturbs a round lasts into the next, in spite of interleaving."""
    fresh = rng.normal(0, DEVIATION, shape)
    rounds = fresh.copy()
    for i in range(1, shape[2]):
        rounds[..., i] = correlation * rounds[..., i - 1] + np.sqrt(1 - correlation**2) * fresh[..., i]
    return rounds


def drifting(rng: np.random.Generator, shape: Shape) -> Array:
    """A machine whose speed drifts, wanders and swings, measured in rounds of A B B A.

    Log speed is a slope of its own for each step (1 % a round), a random walk (0.5 % a slot), an AR(1) of 0.9
    and white noise (1 % each), scaled as a whole. All of it hits base and contender alike: what is left in
    the log ratio is what interleaving does not cancel.
    """
    suites, steps, rounds = shape
    slots = (suites, steps, 4 * rounds)
    swing = rng.normal(0, 0.01, slots)
    for i in range(1, slots[2]):
        swing[..., i] += 0.9 * swing[..., i - 1]
    slope = rng.normal(0, 0.01 / 4, (suites, steps, 1)) * np.arange(slots[2])
    speed = slope + rng.normal(0, 0.005, slots).cumsum(axis=2) + swing + rng.normal(0, 0.01, slots)
    first, second, third, fourth = np.moveaxis(speed.reshape(suites, steps, rounds, 4), 3, 0)
    ratios = (second + third - first - fourth) / 2
    return np.asarray(ratios * DEVIATION / ratios.std())


def stalling(rng: np.random.Generator, shape: Shape, noise: Kind = gaussian) -> Array:
    """Now and then one of the versions, either, loses a large share of its QPS for a round."""
    drop = np.log(1 - rng.uniform(*STALL_DROP, shape))
    stalled = rng.random(shape) < STALLS
    return np.asarray(noise(rng, shape) + stalled * drop * rng.choice((-1, 1), shape))


def contender_stalling(rng: np.random.Generator, shape: Shape) -> Array:
    """The same, always in the contender: the noise is skewed."""
    drop = np.log(1 - rng.uniform(*STALL_DROP, shape))
    return np.asarray(gaussian(rng, shape) + (rng.random(shape) < STALLS) * drop)


def unequal(rng: np.random.Generator, shape: Shape) -> Array:
    """Steps of which some are noisier than others; 2 % is the root mean square over the steps of a suite."""
    factor = np.exp(rng.normal(0, SPREAD, (*shape[:2], 1)))
    return np.asarray(gaussian(rng, shape) * factor / np.sqrt((factor**2).mean(axis=1, keepdims=True)))


def everything(rng: np.random.Generator, shape: Shape) -> Array:
    """Heavy tails and stalls, in steps of unequal noise."""
    factor = np.exp(rng.normal(0, SPREAD / 2, (*shape[:2], 1)))
    factor /= np.sqrt((factor**2).mean(axis=1, keepdims=True))
    return stalling(rng, shape, lambda rng, shape: heavy_tailed(rng, shape) * factor)


SYNTHETIC: Mapping[str, Kind] = {
    "gaussian": gaussian,
    "heavy tails (t3)": heavy_tailed,
    f"AR(1) of {NEIGHBOURS}": autocorrelated,
    "drifting machine": drifting,
    "stalls": stalling,
    "contender stalls": contender_stalling,
    "unequal steps": unequal,
    "t3, stalls, unequal": everything,
}


WITHOUT_STALLS: Mapping[str, Kind] = {
    "stalls": gaussian,
    "contender stalls": gaussian,
    "t3, stalls, unequal": heavy_tailed,
}
"""The same noise on a machine that never stalls, for what has no defence against stalls."""


@dataclass(frozen=True)
class RecordedRounds:
    """Rounds of A/A as one machine ran them."""

    machine: str
    recorded: str
    """When."""

    steps: tuple[tuple[float, ...], ...]
    """Log ratios of each step, in the order of the rounds."""


def load_recording(path: Path) -> RecordedRounds | None:
    """What was recorded on a real machine; None when there is no such file.

    The file is JSON: {"machine": text, "recorded": text, "steps": {step: [log ratio, ...]}}. Raises
    ValueError when it is something else, or no step has LEAST_RECORDED rounds that differ.
    """
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    try:
        steps = tuple(tuple(map(float, logs)) for logs in content["steps"].values())
        machine, recorded = str(content["machine"]), str(content["recorded"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} is no recording of rounds: {error!r}") from error
    usable = tuple(logs for logs in steps if len(logs) >= LEAST_RECORDED and np.ptp(logs) > 0)
    if not usable or not all(np.isfinite(logs).all() for logs in usable):
        raise ValueError(f"{path.name} has no step with {LEAST_RECORDED} rounds")
    return RecordedRounds(machine, recorded, usable)


def resampled(recording: RecordedRounds) -> Kind:
    """The recorded rounds as a kind of noise; steps of a suite take the recorded steps in turns.

    Centred, scaled to 2 %, and resampled in blocks of random length around the circle, so that what
    neighbouring rounds have in common stays: the stationary bootstrap (Politis & Romano, JASA 89, 1994).
    """

    def kind(rng: np.random.Generator, shape: Shape) -> Array:
        rounds = np.empty(shape)
        for step in range(shape[1]):
            logs = np.array(recording.steps[step % len(recording.steps)])
            logs = (logs - logs.mean()) * DEVIATION / logs.std(ddof=1)
            rounds[:, step] = logs[_stationary_blocks(rng, len(logs), (shape[0], shape[2]))]
        return rounds

    return kind


def _stationary_blocks(rng: np.random.Generator, length: int, shape: tuple[int, int]) -> Array:
    """Places in a record of `length`: each follows the one before, or with 1 / BLOCK starts anew."""
    places = rng.integers(0, length, shape)
    goes_on = rng.random(shape) >= 1 / BLOCK
    for i in range(1, shape[1]):
        places[:, i] = np.where(goes_on[:, i], (places[:, i - 1] + 1) % length, places[:, i])
    return np.asarray(places)
