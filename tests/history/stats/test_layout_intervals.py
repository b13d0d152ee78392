"""Intervals over layouts: all rounds of a layout share its luck, which more rounds do not average out."""

import math
import random

import pytest

from history.comparison.verdict import Verdict, judge
from history.stats.estimators import variance
from history.stats.layouts import layout_interval, layout_of
from history.stats.noise_model import pooled_noise
from history.stats.repeated_intervals import Design, sequential_interval
from suites.metrics import Better

STEPS, SESSIONS, THRESHOLD = 10, 60, 0.02


def test_rounds_take_layouts_in_turns() -> None:
    assert [layout_of(number, 3) for number in range(1, 8)] == [1, 2, 3, 1, 2, 3, 1]


def test_it_is_the_t_interval_of_the_means_of_layouts() -> None:
    logs, layouts = [0.00, 0.04, 0.02, 0.02, 0.06, -0.02], [1, 2, 3, 1, 2, 3]
    means = [0.01, 0.05, 0.00]
    interval = layout_interval(logs, layouts, Design(steps=1, least=6, cap=6, confidence=0.9), None)
    assert interval is not None
    error = math.sqrt(variance(means) / 3)
    assert math.log(interval.estimate) == pytest.approx(0.02)
    assert interval.error == pytest.approx(error)
    assert math.log(interval.high) - 0.02 == pytest.approx(2.91998558 * error, rel=1e-6)
    assert interval.n == 6


def test_layouts_that_are_alike_by_chance_do_not_hide_the_noise_of_rounds() -> None:
    logs, layouts = [-0.05, -0.05, -0.05, 0.05, 0.05, 0.05], [1, 2, 3, 1, 2, 3]
    design = Design(steps=1, least=6, cap=6)
    interval, plain = layout_interval(logs, layouts, design, None), sequential_interval(logs, design, None)
    assert interval is not None
    assert plain is not None
    assert interval.error == plain.error > 0


def test_two_layouts_have_no_interval_however_many_rounds() -> None:
    assert layout_interval([0.0, 0.01] * 5, [1, 2] * 5, Design(least=10, cap=10), None) is None
    assert layout_interval([0.0, 0.01], [1, 2], Design(), None) is None, "before the first look"


def a_session(
    rng: random.Random, layouts: int, rounds: int, luck: float, noise: float, common: float
) -> list[list[float]]:
    """Return the log ratios of the steps' rounds in equal sources.

    `luck` is the deviation of a layout's log ratio, `noise` that of a round beside it, and `common` the share
    of a layout's variance that all steps have alike.
    """
    alike = [rng.gauss(0, math.sqrt(common)) for _ in range(layouts)]
    logs = []
    for _ in range(STEPS):
        levels = [luck * (level + rng.gauss(0, math.sqrt(1 - common))) for level in alike]
        turns = (layout_of(number, layouts) for number in range(1, rounds + 1))
        logs.append([levels[turn - 1] + rng.gauss(0, noise) for turn in turns])
    return logs


def by_layouts(logs: list[list[float]], layouts: int, rounds: int, design: Design) -> list[Verdict | None]:
    """Return the verdict on each step after so many rounds."""
    seen = [log[:rounds] for log in logs]
    turns = [layout_of(number, layouts) for number in range(1, rounds + 1)]
    intervals = [
        layout_interval(logs_of_step, turns, design, prior)
        for logs_of_step, prior in zip(seen, pooled_noise(seen), strict=True)
    ]
    return [judge(interval, Better.HIGHER, THRESHOLD) if interval else None for interval in intervals]


def by_rounds(logs: list[list[float]], design: Design) -> list[Verdict | None]:
    """Return the verdict on each step that takes its rounds for independent."""
    priors = pooled_noise(logs)
    intervals = [sequential_interval(log, design, prior) for log, prior in zip(logs, priors, strict=True)]
    return [judge(interval, Better.HIGHER, THRESHOLD) if interval else None for interval in intervals]


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@pytest.mark.parametrize("common", [0.0, 1.0])
def test_luck_of_layouts_is_no_regression(common: float) -> None:
    rng, design = random.Random(f"{common}"), Design(steps=STEPS, least=9, cap=9)
    sessions = [a_session(rng, 3, 9, 0.02, 0.005, common) for _ in range(300)]
    wrong = sum(Verdict.REGRESSION in by_layouts(logs, 3, 9, design) for logs in sessions)
    naive = sum(Verdict.REGRESSION in by_rounds(logs, design) for logs in sessions)
    assert wrong <= 3
    assert common or naive > 30, "rounds of three layouts are not nine independent ones"


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@pytest.mark.parametrize(("change", "least"), [(0.0, 0.0), (math.log(0.95), 0.8)])
def test_until_decided(change: float, least: float) -> None:
    """Luck of 1 % a side and rounds of 2 %, as in `bench verdicts`: there 63 % of sessions are wrong."""
    rng, design = random.Random("until decided"), Design(steps=STEPS, least=8, cap=20)
    wrong = seen = 0
    for _ in range(SESSIONS):
        logs = a_session(rng, 8, 20, 0.01 * math.sqrt(2), 0.02, 0.0)
        logs[0] = [log + change for log in logs[0]]
        called: list[Verdict | None] = [None] * STEPS
        for look in range(design.least, design.cap + 1):
            now = by_layouts(logs, 8, look, design)
            open_ = (None, Verdict.INCONCLUSIVE)
            called = [new if old in open_ else old for old, new in zip(called, now, strict=True)]
        seen += called[0] is Verdict.REGRESSION
        wrong += Verdict.REGRESSION in called[1:] or (change == 0 and called[0] is Verdict.REGRESSION)
    assert wrong <= 1
    assert seen >= least * SESSIONS
