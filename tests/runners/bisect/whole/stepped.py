"""Ranges with several steps, and searches of them that go on until nothing is left."""

import math

import numpy as np

from benchmarks.simulation.bisects.bisect_ranges import SimulatedRange, normal
from runners.bisect.domain.rules import Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.whole.search import WholeSearch
from tests.runners.bisect.stand import a_question

COUNTED = a_question("good", "bad", metric="instructions_per_op", direction="either").rules()
EXACT = 0.0002
"""How much passes of one commit differ: hardly."""


def stepped(length: int, *steps: tuple[int, float]) -> SimulatedRange:
    """From each position on the metric is so many times what it was before."""
    levels = np.zeros(length + 1)
    for place, size in steps:
        levels[place:] += math.log(size)
    return SimulatedRange(levels, tuple(place for place, _ in steps))


def whole_search(
    commits: SimulatedRange,
    rules: Rules,
    seed: int,
    noise: float,
    search: WholeSearch | None = None,
    *,
    is_whole: bool = True,
) -> tuple[SearchVerdict, dict[int, int]]:
    """Search until nothing is left: the verdict, and the rounds of each position."""
    running = search or WholeSearch(commits.length, rules, 2.5)
    rounds: dict[int, int] = {}
    drawn = iter(normal(np.random.default_rng((61, seed)), noise))
    while True:
        wanted = running.next()
        if isinstance(wanted, Measure):
            for place in wanted.positions:
                if place in commits.broken:
                    running.exclude(place)
                    continue
                for _ in range(wanted.rounds):
                    running.observe(Observation(place, float(commits.levels[place] + next(drawn))))
                    rounds[place] = rounds.get(place, 0) + 1
        elif is_whole and running.has_more:
            running.go_on()
        else:
            return wanted, rounds


def adds_up(verdict: SearchVerdict) -> bool:
    """Whether the ratios of the steps and of what is not explained multiply to the whole difference."""
    assert verdict.whole is not None
    product = math.prod(step.size for step in verdict.steps) * verdict.whole.unexplained
    return math.isclose(product, verdict.whole.size, rel_tol=1e-9)
