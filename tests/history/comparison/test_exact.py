"""The interval of counts: two passes, a third where they disagree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from history.comparison.exact import ExactRule, agreeing, exact_interval, exact_rule
from history.comparison.verdict import Verdict, judge
from suites.metric import Better

RULE = ExactRule(agreement=0.002, allowance=0.002)


def test_the_margin_is_the_allowance_and_half_of_what_passes_differ_by() -> None:
    interval = exact_interval([1000.0, 1001.0], [1049.0, 1049.0], RULE)
    assert interval is not None
    assert interval.estimate == pytest.approx(1049 / math.sqrt(1000 * 1001))
    assert math.log(interval.high / interval.estimate) == pytest.approx(math.log(1.002) + math.log(1.001) / 2)
    assert judge(interval, Better.LOWER, 0.005) is Verdict.REGRESSION


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (1.0, Verdict.UNCHANGED),
        (1.0025, Verdict.UNCHANGED),
        (1.004, Verdict.INCONCLUSIVE),
        (1.006, Verdict.REGRESSION),
        (0.99, Verdict.IMPROVEMENT),
    ],
)
def test_half_a_per_cent_is_seen(change: float, verdict: Verdict) -> None:
    interval = exact_interval([5e4, 5e4], [5e4 * change] * 2, RULE)
    assert interval is not None
    assert judge(interval, Better.LOWER, 0.005) is verdict


@pytest.mark.parametrize(
    ("values", "agree"),
    [
        ([100.0], 0),
        ([100.0, 100.1], 2),
        ([100.0, 101.0], 0),
        ([100.0, 101.0, 100.1], 2),
        ([100.0, 101.0, 102.0], 0),
        ([100.0, 100.1, 100.15], 3),
    ],
)
def test_passes_that_agree(values: list[float], agree: int) -> None:
    assert len(agreeing(values, 0.002)) == agree


@given(st.floats(1, 1e9), st.floats(0.5, 2), st.permutations([0.0, 0.0005, 0.001]))
def test_neither_order_nor_scale_matters(level: float, change: float, wobble: list[float]) -> None:
    base = [level * (1 + each) for each in wobble]
    one = exact_interval(base, [each * change for each in base], RULE)
    other = exact_interval(sorted(base), [each * change for each in reversed(base)], RULE)
    assert one is not None
    assert other is not None
    assert one.low == pytest.approx(other.low)
    assert one.low < one.estimate < one.high
    assert one.estimate == pytest.approx(change)


def test_versions_of_two_engines_are_judged_as_the_one_that_agrees_less() -> None:
    both, one = exact_rule(list(Engine)), exact_rule([Engine.POSTGRES])
    assert both.allowance > one.allowance
    assert exact_interval([0.0, 1.0], [1.0, 1.0], one) is None, "nothing has no ratio"
