"""Simulated ranges with several steps, of which some cancel, and bisects of them.

Seeds are fixed: (6, position of the case, trial); those with a 5 in front chose the priors. The target is 18
of 20, in shares. Kinds without a target were not looked at while the search was made.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.bisects.bisect_ranges import (
    Noise,
    SearchOutcome,
    SimulatedRange,
    heavy,
    mean,
    normal,
    search,
)

LENGTH = 256
TRIALS = 40
MIN_RIGHT = 90.0
"""18 of 20."""

NOISE = 0.02
SEED = 6


@dataclass(frozen=True)
class SteppedCase:
    """Steps at random places, and which of them make bad differ from good."""

    name: str
    changes: tuple[float, ...]
    """The ratio of the metric after each step to that before it, in order."""

    net: tuple[int, ...]
    """The places, in `changes`, of the steps that make the difference."""

    noise: Noise = normal
    deviation: float = NOISE
    is_unbuildable: bool = False
    """Whether the commits around the last step that makes the difference do not compile."""

    is_tuned: bool = True
    """Whether the search was made with this kind in view; others have no target and are marked."""

    places: tuple[float, ...] = ()
    """Shares of the range at which the steps lie; random places when empty."""

    def make(self, rng: np.random.Generator) -> SimulatedRange:
        """Return a range; steps at random places are at least 2 commits apart."""
        count = len(self.changes)
        at = [round(share * LENGTH) for share in self.places]
        while not at or min(np.diff([0, *at])) < 2:
            at = sorted(rng.integers(1, LENGTH + 1, count).tolist())
        levels = np.zeros(LENGTH + 1)
        for place, change in zip(at, self.changes, strict=True):
            levels[place:] += math.log(change)
        broken = frozenset[int]()
        if self.is_unbuildable:
            last = at[self.net[-1]]
            broken = frozenset(range(max(last - 3, 1), min(last + 3, LENGTH))) - set(at[: self.net[-1]])
        return SimulatedRange(levels, tuple(at[which] for which in self.net), broken)


def named(commits: SimulatedRange, outcome: SearchOutcome) -> bool:
    """Return whether the steps that make the difference are named, as exactly as commits compile."""
    kind = {1: ("culprit", "range"), 2: ("two-steps",)}.get(len(commits.culprits), ("several-steps",))
    places = [(step.low, step.high) for step in outcome.verdict.steps]
    return outcome.verdict.kind in kind and places == [_closest(commits, at) for at in commits.culprits]


def _closest(commits: SimulatedRange, culprit: int) -> tuple[int, int]:
    """Return the positions that compile around a step."""
    low = max(place for place in range(culprit) if place not in commits.broken)
    high = min(place for place in range(culprit, commits.length + 1) if place not in commits.broken)
    return low, high


DIP = (0.85, 1 / 0.85, 0.95)
REVERTED = (1.15, 1 / 1.15, 0.95)

CASES = (
    SteppedCase("a dip, its fix, -5 %", DIP, (2,)),
    SteppedCase("a dip, its fix, -5 %, at 25, 50 and 75 %", DIP, (2,), places=(0.25, 0.5, 0.75)),
    SteppedCase("a dip, its fix, -5 %, noise 3.5 %", DIP, (2,), deviation=0.035),
    SteppedCase("a reverted improvement, -5 %", REVERTED, (2,)),
    SteppedCase("-5 %, then an improvement and its revert", (0.95, 1.15, 1 / 1.15), (0,)),
    SteppedCase("two culprits of 5 %", (0.95, 0.95), (0, 1)),
    SteppedCase("two culprits of 10 %, noise 3.5 %", (0.9, 0.9), (0, 1), deviation=0.035),
    SteppedCase("three culprits of 8 %", (0.92, 0.92, 0.92), (0, 1, 2), is_tuned=False),
    SteppedCase("two dips with fixes, -5 %", (0.85, 1 / 0.85, 0.9, 1 / 0.9, 0.95), (4,), is_tuned=False),
    SteppedCase("a dip, heavy tails", DIP, (2,), heavy, is_tuned=False),
    SteppedCase("a dip, the culprit does not compile", DIP, (2,), is_unbuildable=True, is_tuned=False),
    SteppedCase("a dip of 30 %, culprits of 5 and 8 %", (0.7, 1 / 0.7, 0.95, 0.92), (2, 3), is_tuned=False),
)


def stepped_figures(trials: int = TRIALS) -> Iterator[Figure]:
    """Yield how often the steps that make bad differ from good are named, and no others."""
    for number, case in enumerate(CASES):
        print(f"{case.name}: {trials} searches", flush=True)
        yield stepped_figure(case, number, trials)


def stepped_figure(case: SteppedCase, number: int, trials: int) -> Figure:
    """Return how often the answer of one case is right, with rounds and builds beside plain bisect's."""
    right, outcomes = 0, []
    for trial in range(trials):
        rng = np.random.default_rng((SEED, number, trial))
        commits = case.make(rng)
        outcomes.append(search(commits, case.noise(rng, case.deviation)))
        right += named(commits, outcomes[-1])
    rounds, builds = (
        mean([outcome.rounds for outcome in outcomes]),
        mean([outcome.builds for outcome in outcomes]),
    )
    note = f"noise {100 * case.deviation:.1f} %; {kinds(outcomes)}; {rounds:.0f} rounds, {builds:.1f} builds"
    least = MIN_RIGHT if case.is_tuned and trials >= TRIALS else None
    kind = "" if case.is_tuned else "not tuned on: "
    return Figure(f"{kind}{case.name}: named", 100 * right / trials, "%", least, note=note)


def kinds(outcomes: list[SearchOutcome]) -> str:
    """Return how many outcomes have each kind of verdict."""
    found: dict[str, int] = {}
    for outcome in outcomes:
        found[outcome.verdict.kind] = found.get(outcome.verdict.kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in sorted(found.items(), key=lambda item: -item[1]))
