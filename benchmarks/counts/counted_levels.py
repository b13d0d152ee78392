"""Simulated counts of equal builds that take levels by chance, and how often a step has a false verdict.

What real builds do is recorded (benchmarks/counts/passes.json); no recording has two levels in one
session, so these kinds are made up. The rule was chosen by counts of two and of three levels that each pass
takes by itself; the other kinds are ones that it was not chosen by.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.output.figures import Figure
from build.version import Engine
from history.comparison.exact import MAX_PASSES, MIN_PASSES, ExactRule, exact_interval, exact_rule
from history.comparison.options import EXACT_THRESHOLD
from history.comparison.verdict import Verdict, judge, needs_more_passes
from suites.metric_names import INSTRUCTIONS
from suites.metrics import METRICS

STEPS = 20_000
SEED = 20261125
COUNT = 50_000.0
MAX_FALSE_PERCENT = 1.0
APART = (0.5, 1.0, 3.0)
"""Percent by which levels are apart."""

FALSE = {Verdict.REGRESSION, Verdict.IMPROVEMENT}

Pairs = Iterator[tuple[float, float]]
Draw = Callable[[random.Random, float], Pairs]
"""Yields the log counts of base and contender, pass by pass; levels are so many per cent apart."""


def carried_out(pairs: Iterable[tuple[float, float]], rule: ExactRule) -> Verdict | None:
    """Return the verdict on a step whose passes are counted as a session counts them; None without one.

    `pairs` are the counts of base and contender, pass by pass; at most MAX_PASSES are used.
    """
    base: list[float] = []
    contender: list[float] = []
    for old, new in pairs:
        base.append(old)
        contender.append(new)
        enough = len(base) >= MIN_PASSES
        if enough and not needs_more_passes(base, contender, rule, EXACT_THRESHOLD / 100):
            break
    interval = exact_interval(base, contender, rule)
    better = METRICS[INSTRUCTIONS].better
    return None if interval is None else judge(interval, better, EXACT_THRESHOLD / 100)


def two_levels(share: float) -> Draw:
    """Each pass of each side takes the upper of two levels with this probability."""

    def draw(rng: random.Random, apart: float) -> Pairs:
        while True:
            yield apart * (rng.random() < share), apart * (rng.random() < share)

    return draw


def three_levels(rng: random.Random, apart: float) -> Pairs:
    """Each pass takes one of three levels, neighbours of which are half as far apart."""
    while True:
        yield apart * rng.randrange(3) / 2, apart * rng.randrange(3) / 2


def uneven_levels(rng: random.Random, apart: float) -> Pairs:
    """Each pass takes one of four unequally likely levels, unequally far apart, and scatters by 0.05 %."""
    while True:
        old, new = rng.choices((0.0, 0.3, 0.5, 1.0), (5, 3, 1, 2), k=2)
        yield apart * old + rng.gauss(0, 0.05), apart * new + rng.gauss(0, 0.05)


def drifting(rng: random.Random, apart: float) -> Pairs:
    """Both sides move alike from pass to pass, by chance; apart from that they scatter by 0.02 %."""
    level = 0.0
    while True:
        yield level + rng.gauss(0, 0.02), level + rng.gauss(0, 0.02)
        level += rng.gauss(0, apart)


def scattering(rng: random.Random, apart: float) -> Pairs:
    """Passes have no levels, but a standard deviation of a third of `apart`."""
    while True:
        yield rng.gauss(0, apart / 3), rng.gauss(0, apart / 3)


def sticky(rng: random.Random, apart: float) -> Pairs:
    """A side keeps the level of its last pass in two of three passes, and else takes another by chance."""
    base, contender = rng.random() < 0.5, rng.random() < 0.5
    while True:
        yield apart * base, apart * contender
        base = base if rng.random() < 2 / 3 else rng.random() < 0.5
        contender = contender if rng.random() < 2 / 3 else rng.random() < 0.5


def by_load(rng: random.Random, apart: float) -> Pairs:
    """All passes of a side have the level that its loaded data took by chance."""
    base, contender = rng.random() < 0.5, rng.random() < 0.5
    while True:
        yield apart * base, apart * contender


@dataclass(frozen=True)
class LevelKind:
    """A kind of counts of equal builds."""

    draw: Draw
    is_chosen_for: bool = False
    """Whether the rule was chosen for it."""
    hint: str = ""
    """Why it has no target; empty with one."""


KINDS: Mapping[str, LevelKind] = {
    "two levels, one half": LevelKind(two_levels(0.5), is_chosen_for=True),
    "two levels, one in four": LevelKind(two_levels(0.25), is_chosen_for=True),
    "two levels, one in ten": LevelKind(two_levels(0.1), is_chosen_for=True),
    "three levels": LevelKind(three_levels, is_chosen_for=True),
    "four uneven levels": LevelKind(uneven_levels),
    "both drift alike": LevelKind(drifting),
    "scatter without levels": LevelKind(scattering),
    "a level that stays": LevelKind(sticky, hint="further passes of one session repeat the first"),
    "a level by load": LevelKind(by_load, hint="no pass of the session tells it from a change"),
}


def share_of(
    draw: Draw, apart: float, change: float = 0.0, steps: int = STEPS, rng: random.Random | None = None
) -> Mapping[Verdict | None, float]:
    """Return the share of steps by verdict, of a contender that executes `change` per cent more.

    The rule is that of the engine with the smallest allowance, which takes most levels for changes.
    """
    rng = rng or random.Random(SEED)
    rule = min((exact_rule(INSTRUCTIONS, [engine]) for engine in Engine), key=lambda rule: rule.allowance)
    counts: dict[Verdict | None, int] = {}
    for _ in range(steps):
        pairs = draw(rng, apart)
        drawn = [next(pairs) for _ in range(MAX_PASSES)]
        verdict = carried_out(
            ((_count(old), _count(new + 100 * math.log1p(change / 100))) for old, new in drawn), rule
        )
        counts[verdict] = counts.get(verdict, 0) + 1
    return {verdict: count / steps for verdict, count in counts.items()}


def _count(percent: float) -> float:
    return COUNT * math.exp(percent / 100)


def level_figures(steps: int = STEPS, apart: Sequence[float] = APART) -> Iterator[Figure]:
    """Yield the false verdicts of equal builds, by kind and by how far levels are apart."""
    for name, kind in KINDS.items():
        for percent in apart:
            shares = share_of(kind.draw, percent, steps=steps)
            false = 100 * sum(share for verdict, share in shares.items() if verdict in FALSE)
            said = [] if kind.is_chosen_for else ["not tuned on"]
            said += [kind.hint] if kind.hint else []
            said += [f"{100 * shares.get(Verdict.UNCHANGED, 0):.0f} % unchanged"]
            yield Figure(
                f"{name}, {percent:g} %: steps of equal builds with a false verdict",
                false,
                "%",
                at_most=None if kind.hint else MAX_FALSE_PERCENT,
                note="; ".join(said),
            )
