"""Intervals over layouts: all rounds of a layout share its luck, which more rounds do not average out."""

import math
import random

import pytest
from scipy.stats import t as student

from history.comparison.verdict import Verdict, judge
from history.stats.estimators import variance
from history.stats.layouts import layout_interval, layout_of
from history.stats.repeated_intervals import Design, pooled_noise, sequential_interval
from suites.metric import Better

STEPS, SESSIONS = 10, 300
LUCK, ROUND = 0.02, 0.005
"""The deviations of a layout's log ratio, and of a round's beside it."""


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
    assert math.log(interval.high) - 0.02 == pytest.approx(student.ppf(0.95, 2) * error, rel=1e-6)
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


def sessions(layouts: int, rounds: int, common: float, change: float = 0.0) -> tuple[float, float, float]:
    """Return the shares of sessions with a false regression by rounds and by layouts, and of steps seen.

    `common` is the share of a layout's variance that all steps of the session have alike.
    """
    rng = random.Random(f"{layouts} {rounds} {common} {change}")
    design, order = Design(steps=STEPS, least=rounds, cap=rounds), range(1, rounds + 1)
    turns = [layout_of(number, layouts) for number in order]
    by_rounds = by_layouts = steps_seen = 0
    for _ in range(SESSIONS):
        alike = [rng.gauss(0, math.sqrt(common)) for _ in range(layouts)]
        logs = []
        for _ in range(STEPS):
            luck = [LUCK * (each + rng.gauss(0, math.sqrt(1 - common))) for each in alike]
            logs.append([change + luck[turn - 1] + rng.gauss(0, ROUND) for turn in turns])
        priors = pooled_noise(logs)
        plain = [sequential_interval(its, design, prior) for its, prior in zip(logs, priors, strict=True)]
        over = [layout_interval(its, turns, design, prior) for its, prior in zip(logs, priors, strict=True)]
        seen = [judge(each, Better.HIGHER, 0.02) is Verdict.REGRESSION for each in over if each is not None]
        by_rounds += any(judge(each, Better.HIGHER, 0.02) is Verdict.REGRESSION for each in plain if each)
        by_layouts += any(seen)
        steps_seen += sum(seen)
    return by_rounds / SESSIONS, by_layouts / SESSIONS, steps_seen / SESSIONS / STEPS


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_luck_of_layouts_is_no_regression(common: float) -> None:
    naive, honest, _ = sessions(layouts=3, rounds=9, common=common)
    assert honest <= 0.01
    assert common or naive > 0.1, "rounds of three layouts are not nine independent ones"


def test_a_change_of_the_code_is_seen() -> None:
    assert sessions(layouts=12, rounds=12, common=0.0, change=math.log(0.95))[2] > 0.8
