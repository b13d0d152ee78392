"""Simulated counts of equal builds that take levels by chance: few steps have a false verdict.

No recorded session of equal builds has two levels, so these kinds are made up. The rule was chosen by counts
of two and of three levels that each pass takes by itself; the other kinds are ones that it was not chosen by.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest

from build.version import Engine
from history.comparison.exact import MAX_PASSES, MIN_PASSES, ExactRule, exact_interval, exact_rule
from history.comparison.options import EXACT_THRESHOLD
from history.comparison.verdict import Verdict, judge, needs_more_passes
from suites.metrics import INSTRUCTIONS, METRICS

STEPS = 4_000
SEED = 20261125
COUNT = 50_000.0
MAX_FALSE = 0.01

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


KINDS: Mapping[str, Draw] = {
    "two levels, one half": two_levels(0.5),
    "two levels, one in four": two_levels(0.25),
    "two levels, one in ten": two_levels(0.1),
    "three levels": three_levels,
    "four uneven levels": uneven_levels,
    "both drift alike": drifting,
    "scatter without levels": scattering,
}
UNTOLD: Mapping[str, Draw] = {"a level that stays": sticky, "a level by load": by_load}
"""Kinds that no pass of a session tells from a change: the next pass has the level of the last one."""


def share_of(
    draw: Draw, apart: float, change: float = 0.0, steps: int = STEPS
) -> Mapping[Verdict | None, float]:
    """Return the share of steps by verdict, of a contender that executes `change` per cent more.

    The rule is that of the engine with the smallest allowance, which takes most levels for changes.
    """
    rng = random.Random(SEED)
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


@pytest.mark.parametrize("apart", [0.5, 1.0, 3.0], ids="levels {} % apart".format)
@pytest.mark.parametrize("kind", KINDS)
def test_equal_builds_have_few_false_verdicts(kind: str, apart: float) -> None:
    shares = share_of(KINDS[kind], apart)
    assert sum(shares.get(verdict, 0) for verdict in FALSE) <= MAX_FALSE


@pytest.mark.parametrize("kind", UNTOLD)
def test_levels_that_last_are_taken_for_changes(kind: str) -> None:
    """What the rule cannot do, so that the figures above are known to be able to miss."""
    shares = share_of(UNTOLD[kind], 1.0, steps=500)
    assert sum(shares.get(verdict, 0) for verdict in FALSE) > 10 * MAX_FALSE


def test_a_change_beyond_the_threshold_is_found() -> None:
    assert share_of(two_levels(0), 1.0, change=0.6, steps=10) == {Verdict.REGRESSION: 1.0}
