"""Simulated rounds of A/A: log ratios with realistic noise and a standard deviation of 2 %.

Each kind of noise is a function of a random generator and a shape (suites, steps, rounds). Rounds are in the
order in which they are run. `resampled` uses recorded rounds of a real machine instead.
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
"""Standard deviation of the log ratio of one round, without stalls."""

NEIGHBOURS = 0.2
"""Correlation of neighbouring rounds of the kind `autocorrelated`."""

STALLS = 0.02
"""Share of the rounds in which one version stalls."""

STALL_DROP = (0.2, 0.6)
"""Bounds of the share of QPS that is lost in a stall, uniformly distributed."""

SPREAD = 0.4
"""Standard deviation of the logarithm of a step's noise in the kind `unequal`."""

BLOCK = 4.0
"""Mean length of the blocks of recorded rounds."""

MIN_RECORDED = 6
"""Minimum number of recorded rounds of a step; steps with fewer are not used."""


def gaussian(rng: np.random.Generator, shape: Shape) -> Array:
    """Independent normal rounds."""
    return np.asarray(rng.normal(0, DEVIATION, shape))


def heavy_tailed(rng: np.random.Generator, shape: Shape) -> Array:
    """Student's t with 3 degrees of freedom, whose variance is 3."""
    return np.asarray(rng.standard_t(3, shape) * DEVIATION / np.sqrt(3))


def autocorrelated(rng: np.random.Generator, shape: Shape, correlation: float = NEIGHBOURS) -> Array:
    """AR(1): a disturbance of a round affects the next one, in spite of interleaving."""
    fresh = rng.normal(0, DEVIATION, shape)
    rounds = fresh.copy()
    for i in range(1, shape[2]):
        rounds[..., i] = correlation * rounds[..., i - 1] + np.sqrt(1 - correlation**2) * fresh[..., i]
    return rounds


def drifting(rng: np.random.Generator, shape: Shape) -> Array:
    """A machine whose speed varies slowly, measured in rounds of A B B A.

    Log speed is the sum of a slope per step (1 % per round), a random walk (0.5 % per slot), an AR(1) of 0.9
    and white noise (1 % each), which is then scaled. It affects base and contender alike, so that the log
    ratio contains only what interleaving does not cancel out.
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
    """Noise with stalls: either version occasionally loses a large share of its QPS for one round."""
    drop = np.log(1 - rng.uniform(*STALL_DROP, shape))
    stalled = rng.random(shape) < STALLS
    return np.asarray(noise(rng, shape) + stalled * drop * rng.choice((-1, 1), shape))


def contender_stalling(rng: np.random.Generator, shape: Shape) -> Array:
    """Noise with stalls of the contender only, which is skewed."""
    drop = np.log(1 - rng.uniform(*STALL_DROP, shape))
    return np.asarray(gaussian(rng, shape) + (rng.random(shape) < STALLS) * drop)


def unequal(rng: np.random.Generator, shape: Shape) -> Array:
    """Steps with different noise; 2 % is the root mean square over the steps of a suite."""
    factor = np.exp(rng.normal(0, SPREAD, (*shape[:2], 1)))
    return np.asarray(gaussian(rng, shape) * factor / np.sqrt((factor**2).mean(axis=1, keepdims=True)))


def everything(rng: np.random.Generator, shape: Shape) -> Array:
    """Heavy tails and stalls, in steps with different noise."""
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
"""The same noise without stalls, for methods that cannot handle stalls."""


@dataclass(frozen=True)
class RecordedRounds:
    """Rounds of A/A recorded on one machine."""

    machine: str
    recorded: str
    """The date of the recording."""

    steps: tuple[tuple[float, ...], ...]
    """Log ratios of each step, in the order of the rounds."""


def load_recording(path: Path) -> RecordedRounds | None:
    """Read the rounds recorded on a real machine; return None if the file does not exist.

    The file is JSON: {"machine": text, "recorded": text, "steps": {step: [log ratio, ...]}}. Raises
    ValueError if it is malformed, or no step has MIN_RECORDED rounds that differ.
    """
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    try:
        steps = tuple(tuple(map(float, logs)) for logs in content["steps"].values())
        machine, recorded = str(content["machine"]), str(content["recorded"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} is no recording of rounds: {error!r}") from error
    usable = tuple(logs for logs in steps if len(logs) >= MIN_RECORDED and np.ptp(logs) > 0)
    if not usable or not all(np.isfinite(logs).all() for logs in usable):
        raise ValueError(f"{path.name} has no step with {MIN_RECORDED} rounds")
    return RecordedRounds(machine, recorded, usable)


def resampled(recording: RecordedRounds) -> Kind:
    """Return the recorded rounds as a kind of noise; the steps of a suite use the recorded steps in turn.

    They are centred, scaled to DEVIATION and resampled in circular blocks of random length, which keeps the
    correlation of neighbouring rounds: the stationary bootstrap (Politis & Romano, JASA 89, 1994).
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
    """Return indexes into a record of `length`: a block ends with probability 1 / BLOCK after each index."""
    places = rng.integers(0, length, shape)
    goes_on = rng.random(shape) >= 1 / BLOCK
    for i in range(1, shape[1]):
        places[:, i] = np.where(goes_on[:, i], (places[:, i - 1] + 1) % length, places[:, i])
    return np.asarray(places)
