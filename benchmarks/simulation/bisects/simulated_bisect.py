"""The search for a commit on simulated ranges, compared with plain bisect with fixed reruns.

Seeds are fixed: (1, length, 100 * size, 1000 * noise, trial) for ranges with one culprit, (2, 1000 * noise,
trial) without, (3, position of the case, trial) for everything beyond.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.bisects.bisect_ranges import (
    BUILD_ROUNDS,
    Noise,
    SearchOutcome,
    SimulatedRange,
    drifting,
    falling,
    heavy,
    mean,
    no_step,
    normal,
    one_step,
    search,
    slope,
    stalls,
    two_steps,
    wobbling,
)
from benchmarks.simulation.bisects.plain_bisect import PLANNERS, Planner

LENGTHS = (16, 64, 256, 1024, 4096)
SIZES = (0.03, 0.05, 0.10, 0.20)
NOISES = (0.02, 0.035, 0.05)

TRIALS = 30
"""Trials per length, size and noise: 1,800 in total, so that the standard error of 97 % is 0.4 %."""

QUIET_TRIALS = 500
"""Ranges without a culprit per noise: 1,500 in total, so that the standard error of 99 % is 0.26 %."""

BEYOND_TRIALS = 100

ROUND_MINUTES = 1.0
"""Duration of a round of two versions: 60 seconds of slices, including resets."""

ASSUMED_BUILD = BUILD_ROUNDS * ROUND_MINUTES

BUILD_MINUTES = (1.0, ASSUMED_BUILD, 5.0)
"""With a warm ccache; assumed; Postgres on two cores without a cache."""

WOBBLE = 0.005
DRIFT = 0.02
BROKEN = 0.1

MIN_RIGHT = 97.0
MIN_NONE = 99.0
MIN_UNNAMED = 95.0
MAX_TIME = 0.5


@dataclass(frozen=True)
class SearchCell:
    """Searches of one length, size and noise."""

    length: int
    size: float
    noise: float
    right: int
    outcomes: Sequence[SearchOutcome]

    @property
    def rounds(self) -> float:
        """The mean number of rounds."""
        return mean([outcome.rounds for outcome in self.outcomes])

    @property
    def builds(self) -> float:
        """The mean number of builds."""
        return mean([outcome.builds for outcome in self.outcomes])


def cell_of(length: int, size: float, noise: float, trials: int = TRIALS) -> SearchCell:
    """Run the searches of a cell."""
    right, outcomes = 0, []
    for trial in range(trials):
        rng = np.random.default_rng((1, length, round(100 * size), round(1000 * noise), trial))
        commits = one_step(rng, length, size)
        outcomes.append(search(commits, normal(rng, noise)))
        right += commits.right(outcomes[-1].verdict)
    return SearchCell(length, size, noise, right, outcomes)


def simulated_figures() -> list[Figure]:
    """Accuracy and machine time where there is a culprit, and where there is none."""
    cells = []
    for length in LENGTHS:
        print(f"{length} commits: {TRIALS} searches of each size and noise", flush=True)
        cells += [cell_of(length, size, noise) for size in SIZES for noise in NOISES]
    return [*culprit_figures(cells), *_quiet_figures()]


def culprit_figures(cells: Sequence[SearchCell]) -> Iterator[Figure]:
    """Yield the figures of every cell, and those of all cells together with their targets."""
    for cell in cells:
        name = f"{cell.length} commits, {100 * cell.size:.0f} %, noise {100 * cell.noise:.1f} %"
        ours, build = _minutes([cell], ASSUMED_BUILD), ASSUMED_BUILD
        ratios = ", ".join(f"{ours / _plain(cells, [cell], plan, build):.2f}" for plan in PLANNERS.values())
        note = f"{cell.rounds:.0f} rounds, {cell.builds:.1f} builds; time / plain {ratios}"
        yield Figure(f"{name}: right", 100 * cell.right / len(cell.outcomes), "%", note=note)
    trials = sum(len(cell.outcomes) for cell in cells)
    right = 100 * sum(cell.right for cell in cells) / trials
    yield Figure("right where there is a culprit", right, "%", MIN_RIGHT, note=f"{trials} ranges")
    for minutes in BUILD_MINUTES:
        for name, planner in PLANNERS.items():
            ours, plain = _minutes(cells, minutes), _plain(cells, cells, planner, minutes)
            target = MAX_TIME if minutes == ASSUMED_BUILD else None
            note = f"{ours:.0f} of {plain:.0f} minutes over all cells"
            named = f"machine time / {name}, builds of {minutes:g} min"
            yield Figure(named, ours / plain, "", at_most=target, note=note)


def _minutes(cells: Sequence[SearchCell], build_minutes: float) -> float:
    """Return the sum over the cells of the mean duration of a search, in minutes."""
    return sum(cell.rounds * ROUND_MINUTES + cell.builds * build_minutes for cell in cells)


def _plain(
    cells: Sequence[SearchCell], asked: Sequence[SearchCell], planner: Planner, build_minutes: float
) -> float:
    """Return the minutes of plain bisect in the cells `asked`, with the same accuracy as our search.

    Our accuracy is the share over all lengths of that size and noise, as 30 trials are too few. If all trials
    were right, half a trial is subtracted.
    """
    minutes = 0.0
    for cell in asked:
        like = [other for other in cells if (other.size, other.noise) == (cell.size, cell.noise)]
        trials = sum(len(other.outcomes) for other in like)
        wanted = min(sum(other.right for other in like), trials - 0.5) / trials
        rounds, builds = planner(wanted, cell.length, cell.size, cell.noise).spent(cell.length)
        minutes += rounds * ROUND_MINUTES + builds * build_minutes
    return minutes


def _quiet_figures() -> Iterator[Figure]:
    """Yield the figures of ranges without a change."""
    outcomes = []
    for noise in NOISES:
        print(f"no culprit, noise {100 * noise:.1f} %: {QUIET_TRIALS} searches", flush=True)
        quiet = [_quiet(noise, trial) for trial in range(QUIET_TRIALS)]
        rounds = mean([outcome.rounds for outcome in quiet])
        seen = 100 * mean([outcome.verdict.smallest_seen for outcome in quiet])
        note = f"{_counted(quiet)}; {rounds:.0f} rounds; smallest seen {seen:.1f} %"
        yield Figure(f"none, noise {100 * noise:.1f} %", _share(quiet, "none"), "%", note=note)
        outcomes += quiet
    note = f"{len(outcomes)} ranges: {_counted(outcomes)}"
    yield Figure("none where there is no culprit", _share(outcomes, "none"), "%", MIN_NONE, note=note)


def _quiet(noise: float, trial: int) -> SearchOutcome:
    rng = np.random.default_rng((2, round(1000 * noise), trial))
    return search(no_step(256), normal(rng, noise))


def _share(outcomes: Sequence[SearchOutcome], kind: str) -> float:
    return 100 * mean([outcome.verdict.kind == kind for outcome in outcomes])


def _counted(outcomes: Sequence[SearchOutcome]) -> str:
    kinds = Counter(outcome.verdict.kind for outcome in outcomes)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


@dataclass(frozen=True)
class Case:
    """A kind of range or noise other than one step in Gaussian noise."""

    name: str
    make: Callable[[np.random.Generator], SimulatedRange]
    right: Callable[[SimulatedRange, SearchOutcome], bool]
    noise: Noise = normal
    deviation: float = 0.035
    at_least: float | None = None


def _named(commits: SimulatedRange, outcome: SearchOutcome) -> bool:
    return commits.right(outcome.verdict)


def _kind(wanted: str) -> Callable[[SimulatedRange, SearchOutcome], bool]:
    return lambda _, outcome: outcome.verdict.kind == wanted


def _unnamed(_: SimulatedRange, outcome: SearchOutcome) -> bool:
    return not outcome.verdict.blamed


def _both(commits: SimulatedRange, outcome: SearchOutcome) -> bool:
    places = [(step.low, step.high) for step in outcome.verdict.steps]
    return outcome.verdict.kind == "two-steps" and places == [(at - 1, at) for at in commits.culprits]


def _either(commits: SimulatedRange, outcome: SearchOutcome) -> bool:
    verdict = outcome.verdict
    named = verdict.kind == "culprit" and verdict.high in commits.culprits
    return verdict.kind == "two-steps" or named


def _larger(commits: SimulatedRange, outcome: SearchOutcome) -> bool:
    larger = max(commits.culprits, key=lambda at: abs(commits.levels[at] - commits.levels[at - 1]))
    return (outcome.verdict.kind, outcome.verdict.high) == ("culprit", larger)


def _of_sizes(rng: np.random.Generator) -> float:
    return float(rng.choice(SIZES))


CASES = (
    Case("10 % do not compile", lambda rng: one_step(rng, 256, _of_sizes(rng), BROKEN), _named, at_least=95),
    Case("heavy tails (t3)", lambda rng: one_step(rng, 256, _of_sizes(rng)), _named, heavy, at_least=95),
    Case("stalls", lambda rng: one_step(rng, 256, _of_sizes(rng)), _named, stalls, at_least=95),
    Case(
        "layout wobbles by 0.5 %",
        lambda rng: wobbling(rng, one_step(rng, 256, _of_sizes(rng)), WOBBLE),
        _named,
        deviation=0.02,
        at_least=90,
    ),
    Case("none, heavy tails", lambda _: no_step(256), _kind("none"), heavy, at_least=97),
    Case("none, stalls", lambda _: no_step(256), _kind("none"), stalls, at_least=97),
    Case("none, wobble", lambda rng: wobbling(rng, no_step(256), WOBBLE), _kind("none"), deviation=0.02),
    Case(
        "two steps of 10 and 10 %: both named",
        lambda rng: two_steps(rng, 256, (0.1, 0.1)),
        _both,
        at_least=90,
    ),
    Case("two steps of 10 and 10 %: said", lambda rng: two_steps(rng, 256, (0.1, 0.1)), _kind("two-steps")),
    Case("two steps of 5 and 10 %: said", lambda rng: two_steps(rng, 256, (0.05, 0.1)), _kind("two-steps")),
    Case("two steps of 10 and 5 %: said", lambda rng: two_steps(rng, 256, (0.1, 0.05)), _kind("two-steps")),
    Case(
        "two steps of 10 and 5 %: said, or one named", lambda rng: two_steps(rng, 256, (0.1, 0.05)), _either
    ),
    Case(
        "steps of 2.5 and 20 %: the larger named",
        lambda rng: two_steps(rng, 256, (0.025, 0.2)),
        _larger,
        at_least=95,
    ),
    Case(
        "steps of 20 and 2.5 %: the larger named",
        lambda rng: two_steps(rng, 256, (0.2, 0.025)),
        _larger,
        at_least=95,
    ),
    Case(
        "20 % amid a drift of 2 %",
        lambda rng: drifting(rng, one_step(rng, 256, 0.2), DRIFT),
        _named,
        at_least=95,
    ),
    Case("slope of 20 %: said", lambda rng: slope(rng, 256, 0.2), _kind("slope"), at_least=90),
    Case("slope of 10 %: said", lambda rng: slope(rng, 256, 0.1), _kind("slope")),
    Case(
        "bad falls by 4 % while it is searched: none named",
        lambda rng: falling(rng, 256, 0.04, only_bad=True),
        _unnamed,
        at_least=MIN_UNNAMED,
    ),
    Case(
        "all but good fall by 4 % while it is searched: none named",
        lambda rng: falling(rng, 256, 0.04, only_bad=False),
        _unnamed,
        at_least=MIN_UNNAMED,
    ),
)


def beyond_figures() -> Iterator[Figure]:
    """Commits that do not compile, other noise, wobble, two steps and slopes, of 256 commits each."""
    for number, case in enumerate(CASES):
        print(f"{case.name}: {BEYOND_TRIALS} searches", flush=True)
        yield case_figure(case, number)


def case_figure(case: Case, number: int, trials: int = BEYOND_TRIALS) -> Figure:
    """Return how often the verdict of one case is right."""
    right, outcomes = 0, []
    for trial in range(trials):
        rng = np.random.default_rng((3, number, trial))
        commits = case.make(rng)
        outcomes.append(search(commits, case.noise(rng, case.deviation)))
        right += case.right(commits, outcomes[-1])
    rounds, builds = (
        mean([outcome.rounds for outcome in outcomes]),
        mean([outcome.builds for outcome in outcomes]),
    )
    note = (
        f"noise {100 * case.deviation:.1f} %; {_counted(outcomes)}; {rounds:.0f} rounds, {builds:.1f} builds"
    )
    return Figure(case.name, 100 * right / trials, "%", case.at_least, note=note)
