"""Simulated ranges in which levels vary all along, so that no number of steps fits, and bisects of them.

Seeds are fixed: (7, position of the case, trial). A search is right when it names no commit.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.bisects.bisect_ranges import (
    SimulatedRange,
    drifting,
    mean,
    no_step,
    normal,
    search,
    wobbling,
)
from benchmarks.simulation.bisects.stepped_ranges import LENGTH, MIN_RIGHT, NOISE, TRIALS, kinds

SEED = 7
UNNAMED = ("varying", "slope", "undecided", "none", "swapped")
"""The verdicts that name no commit."""

MIN_LOSS = 0.04
"""The least that bad is below good, as a log ratio: otherwise there is nothing to search for."""

Maker = Callable[[np.random.Generator], SimulatedRange]


@dataclass(frozen=True)
class VaryingCase:
    """A way in which levels vary."""

    name: str
    make: Maker
    is_tuned: bool = True
    """Whether the hypothesis of varying levels was made with this kind in view."""


def random_walk(deviation: float) -> Maker:
    """Return a maker of ranges in which every commit adds a small change."""
    return lambda rng: drifting(rng, no_step(LENGTH), deviation)


def scattered(deviation: float) -> Maker:
    """Return a maker of ranges in which every commit has a level of its own."""
    return lambda rng: wobbling(rng, no_step(LENGTH), deviation)


def waves(rng: np.random.Generator) -> SimulatedRange:
    """Levels that go up and down by 10 % over the range, in 2.3 periods, and fall by 6 % meanwhile."""
    share, phase = np.arange(LENGTH + 1) / LENGTH, rng.uniform(0, 2 * math.pi)
    return SimulatedRange(0.1 * (np.sin(2.3 * 2 * math.pi * share + phase) - math.sin(phase)) - 0.06 * share)


def two_levels(rng: np.random.Generator) -> SimulatedRange:
    """Levels that change between two, 12 % apart, every 12 commits on average, as plans flip."""
    flips = rng.random(LENGTH) < 1 / 12
    return SimulatedRange(np.concatenate([[0.0], -0.12 * (np.cumsum(flips) % 2)]))


def correlated(rng: np.random.Generator) -> SimulatedRange:
    """Levels of an AR(1) of 0.9 from commit to commit, with a deviation of 5 %."""
    levels = np.zeros(LENGTH + 1)
    for place, pushed in enumerate(rng.normal(0, 0.05 * math.sqrt(1 - 0.9**2), LENGTH), 1):
        levels[place] = 0.9 * levels[place - 1] + pushed
    return SimulatedRange(levels)


CASES = (
    VaryingCase("a random walk of 20 %", random_walk(0.2)),
    VaryingCase("levels that scatter by 5 %", scattered(0.05)),
    VaryingCase("levels that scatter by 2 %, as the noise", scattered(0.02), is_tuned=False),
    VaryingCase("waves of 10 %", waves, is_tuned=False),
    VaryingCase("two levels 12 % apart, changed every 12 commits", two_levels, is_tuned=False),
    VaryingCase("an AR(1) of 0.9 and 5 %", correlated, is_tuned=False),
)


def varying_figures(trials: int = TRIALS) -> Iterator[Figure]:
    """Yield how often no commit is named where levels vary all along."""
    for number, case in enumerate(CASES):
        print(f"{case.name}: {trials} searches", flush=True)
        yield varying_figure(case, number, trials)


def varying_figure(case: VaryingCase, number: int, trials: int) -> Figure:
    """Return how often no commit is named in one case."""
    outcomes = []
    for trial in range(trials):
        rng = np.random.default_rng((SEED, number, trial))
        commits = case.make(rng)
        while commits.levels[-1] > -MIN_LOSS:
            commits = case.make(rng)
        outcomes.append(search(commits, normal(rng, NOISE)))
    unnamed = 100 * mean([outcome.verdict.kind in UNNAMED for outcome in outcomes])
    rounds = mean([outcome.rounds for outcome in outcomes])
    builds = mean([outcome.builds for outcome in outcomes])
    least = MIN_RIGHT if case.is_tuned and trials >= TRIALS else None
    note = f"noise {100 * NOISE:.1f} %; {kinds(outcomes)}; {rounds:.0f} rounds, {builds:.1f} builds"
    name = case.name if case.is_tuned else f"not tuned on: {case.name}"
    return Figure(f"{name}: no commit named", unnamed, "%", least, note=note)
