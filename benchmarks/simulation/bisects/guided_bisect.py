"""Simulated bisects of throughput among 256 commits, with and without counts that guide them.

Seeds are fixed: (4, position of the case, trial).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.bisects.bisect_ranges import (
    BUILD_ROUNDS,
    SimulatedRange,
    mean,
    normal,
    one_step,
    wobbling,
)
from runners.bisect.domain.question import MAX_CONFIRMING_PASSES, MAX_PASSES
from runners.bisect.domain.rules import Observation, Rules, SearchVerdict
from runners.bisect.inference.guided_search import GuidedSearch
from suites.metrics import COUNTED

LENGTH = 256
TRIALS = 40
PASS_ROUNDS = 0.5
"""Duration of a counted pass, in rounds of the smoke profile."""

TIMED_RULES = Rules()
COUNTED_RULES = Rules(
    higher_is_better=False,
    threshold=0.005,
    wobble=COUNTED.wobble,
    least_scale=COUNTED.least,
    typical_scale=COUNTED.typical,
    scale_spread=COUNTED.spread,
    least_rounds=COUNTED.rounds,
    most_rounds=MAX_PASSES,
    most_confirming=MAX_CONFIRMING_PASSES,
)

Counts = Callable[[np.random.Generator, SimulatedRange], SimulatedRange]


@dataclass(frozen=True)
class GuidedCase:
    """Ranges with one loss of throughput, and what instructions do in them."""

    name: str
    size: float
    """The loss of throughput."""

    noise: float
    counts: Counts
    """Levels of the counts, from those of the throughput."""

    most_rounds: float | None = None
    """The most rounds with counts, of those without, that are accepted; None to only show it."""


@dataclass(frozen=True)
class GuidedOutcome:
    """What one search took."""

    right: bool
    rounds: int
    passes: int
    builds: int
    """The builds, including good and bad."""

    foreseen: int
    """The builds that were likely to come next while a pass before them was counted."""

    @property
    def duration(self) -> float:
        """Machine time, in rounds."""
        return self.rounds + PASS_ROUNDS * self.passes + BUILD_ROUNDS * self.builds


def same_commit(share: float) -> Counts:
    """Instructions rise by `share` of the loss, at the commit with the loss."""
    return lambda rng, commits: SimulatedRange(-share * commits.levels, commits.culprits)


def no_counts(rng: np.random.Generator, commits: SimulatedRange) -> SimulatedRange:
    """Instructions do not change."""
    return SimulatedRange(np.zeros(len(commits.levels)))


def another_commit(rng: np.random.Generator, commits: SimulatedRange) -> SimulatedRange:
    """Instructions rise as much as throughput falls, at a commit of their own."""
    levels = np.zeros(len(commits.levels))
    levels[int(rng.integers(1, len(levels))) :] = -commits.levels[-1]
    return SimulatedRange(levels)


CASES = (
    GuidedCase("3 %, noise 3.5 %", 0.03, 0.035, same_commit(0.7), most_rounds=0.6),
    GuidedCase("5 %, noise 3.5 %", 0.05, 0.035, same_commit(0.7), most_rounds=0.9),
    GuidedCase("10 %, noise 2 %", 0.1, 0.02, same_commit(0.7), most_rounds=0.9),
    GuidedCase("5 %, noise 3.5 %, counts do not differ", 0.05, 0.035, no_counts, most_rounds=1.15),
    GuidedCase("5 %, noise 3.5 %, counts change elsewhere", 0.05, 0.035, another_commit),
)


def guided_search(
    commits: SimulatedRange, counts: SimulatedRange | None, rng: np.random.Generator, noise: float
) -> GuidedOutcome:
    """Search until there is a verdict; `counts` are the levels of the counts, None to count nothing."""
    rules = None if counts is None else COUNTED_RULES
    search = GuidedSearch(commits.length, TIMED_RULES, BUILD_ROUNDS, rules)
    timed, counted = normal(rng, noise), normal(rng, COUNTED.typical)
    rounds = passes = foreseen = 0
    tried, likely = {0, commits.length}, None
    while not isinstance(probe := search.next(), SearchVerdict):
        (position,) = probe.positions
        foreseen += position == likely and position not in tried
        tried.add(position)
        likely = search.foreseen(probe) if probe.counted else None
        for _ in range(probe.rounds):
            if counts is not None and probe.counted:
                level = counts.levels[position] + counted[passes]
                passes += 1
            else:
                level = commits.levels[position] + timed[rounds]
                rounds += 1
            search.observe(Observation(position, float(level), probe.counted))
    return GuidedOutcome(commits.right(probe), rounds, passes, len(tried), foreseen)


def outcomes_of(case: GuidedCase, number: int, trials: int) -> Mapping[bool, list[GuidedOutcome]]:
    """Return the outcomes of searches with (True) and without (False) counts, on the same ranges."""
    found: dict[bool, list[GuidedOutcome]] = {True: [], False: []}
    for trial in range(trials):
        rng = np.random.default_rng((4, number, trial))
        commits = one_step(rng, LENGTH, case.size)
        counts = wobbling(rng, case.counts(rng, commits), COUNTED.wobble / 2)
        for is_guided, levels in ((True, counts), (False, None)):
            of_search = np.random.default_rng((4, number, trial, 1))
            found[is_guided].append(guided_search(commits, levels, of_search, case.noise))
    return found


def guided_figures(trials: int = TRIALS) -> Iterator[Figure]:
    """Yield how often guided searches are right, and their rounds and time by those without counts."""
    for number, case in enumerate(CASES):
        print(f"guided, {case.name}: {trials} searches", flush=True)
        found = outcomes_of(case, number, trials)
        guided, alone = found[True], found[False]
        right = 100 * mean([outcome.right for outcome in guided])
        unguided = 100 * mean([outcome.right for outcome in alone])
        yield Figure(
            f"guided, {case.name}: right", right, "%", at_least=97 if trials >= TRIALS else None,
            note=f"without counts {unguided:.0f} %",
        )  # fmt: skip
        rounds = [mean([outcome.rounds for outcome in outcomes]) for outcomes in (guided, alone)]
        time = [mean([outcome.duration for outcome in outcomes]) for outcomes in (guided, alone)]
        passes, builds, foreseen = (
            mean([outcome.passes for outcome in guided]),
            mean([outcome.builds for outcome in guided]),
            mean([outcome.foreseen for outcome in guided]),
        )
        note = (
            f"{rounds[0]:.0f} of {rounds[1]:.0f} rounds, {passes:.1f} passes, {builds:.1f} builds, of which "
            f"{foreseen:.1f} were foreseen; machine time {time[0] / time[1]:.2f}"
        )
        yield Figure(
            f"guided, {case.name}: rounds / without", rounds[0] / rounds[1], "", at_most=case.most_rounds,
            note=note,
        )  # fmt: skip
