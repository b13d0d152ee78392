"""Simulated ranges of commits with known changes, and a search on such a range."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.simulation.rounds import DEVIATION, Array, gaussian, heavy_tailed, stalling
from runners.bisect.inference.search import Observation, Rules, Search, SearchVerdict

MAX_OBSERVATIONS = 2_000
"""Number of rounds that are drawn for one search: more than the rules allow."""

STILL = np.zeros(MAX_OBSERVATIONS)

BUILD_ROUNDS = 2.5
"""Duration of a build in rounds, which the search and the figures assume."""

FALLS = (30, 151)
"""The rounds, at least and less than, in which a side falls that changes while the search goes on."""

Noise = Callable[[np.random.Generator, float], Array]
"""Function from a generator and a standard deviation to log ratios (MAX_OBSERVATIONS,) without a change."""


@dataclass(frozen=True)
class SimulatedRange:
    """Commits from good (0) to bad (the last), with the ratios of the metric to good, without noise."""

    levels: Array
    """(length + 1,) log ratios."""

    culprits: tuple[int, ...] = ()
    """Positions at which the level changes; none for a slope."""

    broken: frozenset[int] = frozenset()
    """Positions that do not compile."""

    moves: Mapping[int, Array] = field(default_factory=dict)
    """Position -> by how much its log ratio has moved when a round is measured, (MAX_OBSERVATIONS,)."""

    @property
    def length(self) -> int:
        """Number of candidates, including bad."""
        return len(self.levels) - 1

    def right(self, verdict: SearchVerdict) -> bool:
        """Return whether the verdict names the culprit, or the smallest range around it that compiles."""
        if len(self.culprits) != 1:
            raise AssertionError("only one culprit can be named")
        culprit = self.culprits[0]
        low = max(position for position in range(culprit) if position not in self.broken)
        high = min(position for position in range(culprit, self.length + 1) if position not in self.broken)
        kind = "culprit" if high - low == 1 else "range"
        return (verdict.kind, verdict.low, verdict.high) == (kind, low, high)


@dataclass(frozen=True)
class SearchOutcome:
    """The verdict of a search, and its cost."""

    verdict: SearchVerdict
    rounds: int
    builds: int
    """Number of builds, including good, bad and failed ones."""


def normal(rng: np.random.Generator, deviation: float) -> Array:
    """Gaussian rounds."""
    return np.asarray(gaussian(rng, (1, 1, MAX_OBSERVATIONS))[0, 0] * deviation / DEVIATION)


def heavy(rng: np.random.Generator, deviation: float) -> Array:
    """Student's t with three degrees of freedom."""
    return np.asarray(heavy_tailed(rng, (1, 1, MAX_OBSERVATIONS))[0, 0] * deviation / DEVIATION)


def stalls(rng: np.random.Generator, deviation: float) -> Array:
    """Gaussian rounds, in 2 % of which one of the versions loses 20 to 60 % of its throughput."""
    shape = (1, 1, MAX_OBSERVATIONS)
    rounds = stalling(rng, shape, lambda rng, shape: gaussian(rng, shape) * deviation / DEVIATION)
    return np.asarray(rounds[0, 0])


def one_step(rng: np.random.Generator, length: int, size: float, broken: float = 0.0) -> SimulatedRange:
    """A loss of `size` at a random commit; a share of the others does not compile."""
    culprit = int(rng.integers(1, length + 1))
    levels = np.zeros(length + 1)
    levels[culprit:] = math.log1p(-size)
    failing = np.flatnonzero(rng.random(length + 1) < broken)
    return SimulatedRange(levels, (culprit,), frozenset(failing.tolist()) - {0, length})


def no_step(length: int) -> SimulatedRange:
    """Nothing changes."""
    return SimulatedRange(np.zeros(length + 1))


def falling(rng: np.random.Generator, length: int, size: float, *, only_bad: bool) -> SimulatedRange:
    """Nothing changes, but bad, or every commit but good, loses `size` in the course of the search.

    The loss is a straight line during FALLS rounds from the first one on, and lasts.
    """
    way = np.minimum(np.arange(MAX_OBSERVATIONS) / rng.integers(*FALLS), 1.0) * math.log1p(-size)
    positions = (length,) if only_bad else range(1, length + 1)
    return SimulatedRange(np.zeros(length + 1), moves=dict.fromkeys(positions, way))


def two_steps(rng: np.random.Generator, length: int, sizes: tuple[float, float]) -> SimulatedRange:
    """Two losses, at least a tenth of the range apart."""
    while True:
        first, second = sorted(rng.integers(1, length + 1, 2).tolist())
        if second - first >= length / 10:
            break
    levels = np.zeros(length + 1)
    levels[first:] += math.log1p(-sizes[0])
    levels[second:] += math.log1p(-sizes[1])
    return SimulatedRange(levels, (first, second))


def slope(rng: np.random.Generator, length: int, size: float) -> SimulatedRange:
    """A loss of `size` by as many small losses, of random sizes, as there are commits."""
    parts = rng.exponential(1.0, length)
    return SimulatedRange(np.concatenate([[0.0], np.cumsum(parts) / parts.sum()]) * math.log1p(-size))


def drifting(rng: np.random.Generator, commits: SimulatedRange, deviation: float) -> SimulatedRange:
    """Return the range with a random walk of levels, whose standard deviation at bad is `deviation`."""
    parts = rng.normal(0, deviation / math.sqrt(commits.length), commits.length)
    offsets = np.concatenate([[0.0], np.cumsum(parts)])
    return SimulatedRange(commits.levels + offsets, commits.culprits, commits.broken)


def wobbling(rng: np.random.Generator, commits: SimulatedRange, deviation: float) -> SimulatedRange:
    """Return the range with a random offset of every commit, good included, as caused by code layout."""
    offsets = rng.normal(0, deviation, len(commits.levels))
    return SimulatedRange(commits.levels + offsets - offsets[0], commits.culprits, commits.broken)


def search(commits: SimulatedRange, rounds: Array, rules: Rules | None = None) -> SearchOutcome:
    """Run a search until it has a verdict; `rounds` is the noise of the rounds, in order."""
    running = Search(commits.length, rules or Rules(), BUILD_ROUNDS)
    spent, tried = 0, {0, commits.length}
    while not isinstance(probe := running.next(), SearchVerdict):
        for position in probe.positions:
            tried.add(position)
            if position in commits.broken:
                running.exclude(position)
                continue
            moves = commits.moves.get(position, STILL)
            for noise in (rounds + moves)[spent : spent + probe.rounds]:
                running.observe(Observation(position, float(commits.levels[position] + noise)))
            spent += probe.rounds
    return SearchOutcome(probe, spent, len(tried))


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return float(np.mean(values))
