"""The interval of counts: pairs of passes, of which a change needs four."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from history.comparison.exact import PROOF_RULE, ExactRule, exact_interval, exact_rule
from history.comparison.verdict import Verdict, judge
from suites.metrics import INSTRUCTIONS, WAL_RECORDS, Better

RULE = ExactRule(agreement=0.002, allowance=0.002)


def test_the_interval_is_from_the_least_pair_to_the_largest_with_the_allowance_beyond() -> None:
    interval = exact_interval([1000.0, 1001.0], [1049.0, 1049.0], RULE)
    assert interval is not None
    assert interval.estimate == pytest.approx(1049 / math.sqrt(1000 * 1001))
    assert interval.high == pytest.approx(1.049 * 1.002)
    assert interval.low == pytest.approx(1049 / 1001 / 1.002)


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
    interval = exact_interval([5e4] * 4, [5e4 * change] * 4, RULE)
    assert interval is not None
    assert judge(interval, Better.LOWER, 0.005) is verdict


def test_what_moves_both_sides_alike_is_no_difference() -> None:
    """Recorded: the first pass of a session counted 0.4 % more, whichever build it was."""
    interval = exact_interval([71378.1, 71122.6, 71120.3], [71362.5, 71105.1, 71104.8], RULE)
    assert interval is not None
    assert interval.estimate == pytest.approx(0.99977, abs=1e-5)
    assert judge(interval, Better.LOWER, 0.005) is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("contender", "low", "verdict"),
    [
        ([100.0, 101.0], None, None),
        ([101.0, 101.0], 1.008, Verdict.INCONCLUSIVE),
        ([101.0, 101.0, 101.0], 1.008, Verdict.INCONCLUSIVE),
        ([101.0, 101.0, 100.0, 101.0], None, None),
        ([101.0, 101.0, 101.0, 101.0], 1.008, Verdict.REGRESSION),
        ([105.0, 105.5, 105.0, 105.0], 1.048, Verdict.REGRESSION),
        ([100.0, 100.1], 0.998, Verdict.UNCHANGED),
    ],
)
def test_a_count_of_two_levels_is_no_change(
    contender: list[float], low: float | None, verdict: Verdict | None
) -> None:
    interval = exact_interval([100.0] * len(contender), contender, RULE)
    assert (interval and round(interval.low, 3)) == low
    assert (interval and judge(interval, Better.LOWER, 0.005)) is verdict


@given(st.floats(1, 1e9), st.floats(0.5, 2), st.permutations([0.0, 0.0005, 0.001]))
def test_neither_order_nor_scale_matters(level: float, change: float, wobble: list[float]) -> None:
    base = [level * (1 + value) for value in wobble]
    contender = [level * change * (1 + value) for value in sorted(wobble)]
    interval = exact_interval(base, contender, RULE)
    reverse = exact_interval(base[::-1], contender[::-1], RULE)
    assert interval is not None
    assert reverse is not None
    assert interval.low == pytest.approx(reverse.low)
    assert interval.low < interval.estimate < interval.high
    assert interval.estimate == pytest.approx(change)


def test_versions_of_two_engines_are_judged_as_the_one_that_agrees_less() -> None:
    both, postgres = exact_rule(INSTRUCTIONS, list(Engine)), exact_rule(INSTRUCTIONS, [Engine.POSTGRES])
    assert both.allowance > postgres.allowance
    assert exact_interval([0.0, 1.0], [1.0, 1.0], postgres) is None, "nothing has no ratio"


@pytest.mark.parametrize(
    ("base", "contender", "verdict", "has_doubt"),
    [
        ([184.0], [184.1], Verdict.UNCHANGED, False),
        ([184.0], [312.0], Verdict.INCONCLUSIVE, True),
        ([184.0, 184.2], [312.0, 312.1], Verdict.REGRESSION, False),
        ([312.0, 312.0], [184.0, 184.0], Verdict.IMPROVEMENT, False),
        ([184.0] * 2, [185.2] * 2, Verdict.UNCHANGED, False),
    ],
)
def test_bytes_of_fixed_work_are_the_same_by_one_pair_and_changed_by_two(
    base: list[float], contender: list[float], verdict: Verdict, has_doubt: bool
) -> None:
    assert exact_rule(WAL_RECORDS, [Engine.POSTGRES]) == PROOF_RULE
    interval = exact_interval(base, contender, PROOF_RULE)
    assert interval is not None
    assert judge(interval, Better.LOWER, 0.01) is verdict
    assert bool(interval.objections) is has_doubt or len(base) == 1


def test_pairs_of_fixed_work_that_disagree_show_no_size() -> None:
    assert exact_interval([184.0] * 2, [184.0, 230.0], PROOF_RULE) is None
