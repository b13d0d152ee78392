"""Which way costs went, what explains a change of throughput, and how throughput varied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.comparison.explanation import Explanation, Variation, explained_by, explanation, variation
from history.comparison.intervals import Intervals
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.profile_diff import Cost, FunctionChange
from history.comparison.query_time import QueryTime
from history.comparison.verdict import (
    Gap,
    Judged,
    MetricChange,
    Verdict,
    change_of,
    judge,
    judge_beside,
    judge_step,
    verdict_of,
)
from history.stats.estimators import Interval
from history.store.records import Run, RunStatus
from suites.metrics import METRICS, Better, Role, beside_verdict, of_role

MORE, LESS, SAME, UNKNOWN = MetricChange.MORE, MetricChange.LESS, MetricChange.SAME, MetricChange.UNKNOWN
REGRESSION, IMPROVEMENT = Verdict.REGRESSION, Verdict.IMPROVEMENT
CPU, READ, WAL = "server_cpu_us_per_op", "server_read_kb_per_op", "wal_bytes_per_op"
CV, P1, *_ = of_role(Role.VARIATION)
COSTS = tuple(name for name in beside_verdict() if name in of_role(Role.COST))

ALONE = Intervals([], 0.95, None)
"""What a step gets that no other one lends its noise to."""

changes = st.sampled_from(MetricChange)


def step_of(metric: str, base: list[float], contender: list[float]) -> StepPairs:
    """A step whose runs have one metric; one repetition for each value."""
    runs = [
        Run(0, version, "", "insert", 1, repetition, 0, RunStatus.FINISHED, None, {metric: value})
        for version, values in (("base", base), ("new", contender))
        for repetition, value in enumerate(values, start=1)
    ]
    (step,) = pair_steps(runs, "base", "new")
    return step


def went(metric: str, change: MetricChange) -> Judged:
    """A recorded metric that went somewhere, by numbers that do not matter."""
    return Judged(metric, 1.0, 1.0, 1.0, None, change, 3, 0.02, "round")


def absent(metric: str) -> Judged:
    reason = f"{metric} was not recorded"
    return Judged(metric, None, None, None, None, UNKNOWN, 0, 0.02, "round", gap=Gap.MISSING, reason=reason)


# --- which way a metric went


@pytest.mark.parametrize(
    ("contender", "change"),
    [
        ([11.0, 11.1, 10.9], MORE),
        ([9.0, 9.1, 8.9], LESS),
        ([10.0, 10.01, 9.99], SAME),
        ([10.18, 10.16, 10.2], UNKNOWN),  # above 1 for certain, perhaps beyond the threshold
        ([8.0, 14.0, 9.0], UNKNOWN),
        ([11.0, 11.1], UNKNOWN),  # two pairs have no interval
    ],
)
def test_change(contender: list[float], change: MetricChange) -> None:
    found = judge_beside(step_of(CPU, [10.0] * len(contender), contender), CPU, 0.02, ALONE)
    assert found.change is change
    assert found.pairs == len(contender)


def test_costs_and_verdicts_have_their_intervals_from_one_place() -> None:
    class Elsewhere(Intervals):
        def of(self, step: StepPairs, metric: str) -> Interval | None:
            return Interval(1.5, 1.4, 1.6, 3)

    step, elsewhere = step_of(CPU, [10.0] * 3, [11.0] * 3), Elsewhere([], 0.9, None)
    assert judge_beside(step, CPU, 0.02, elsewhere).interval == Interval(1.5, 1.4, 1.6, 3)
    assert judge_step(step, METRICS[CPU], 0.02, elsewhere).interval == Interval(1.5, 1.4, 1.6, 3)


def test_zeros_have_no_ratio_but_absolute_values() -> None:
    appeared = judge_beside(step_of(READ, [0.0, 0.0, 0.0], [3.0, 6.0, 0.0]), READ, 0.02, ALONE)
    assert (appeared.base, appeared.contender, appeared.value, appeared.interval) == (0.0, 3.0, None, None)
    assert appeared.change is UNKNOWN
    cached = judge_beside(step_of(READ, [0.0] * 3, [0.0] * 3), READ, 0.02, ALONE)
    assert (cached.base, cached.contender, cached.value, cached.change) == (0.0, 0.0, None, SAME)
    twice = judge_beside(step_of(READ, [0.0] * 2, [0.0] * 2), READ, 0.02, ALONE)
    assert twice.change is UNKNOWN, "two pairs are too few to settle anything"


def test_what_was_not_recorded_is_unknown() -> None:
    assert judge_beside(step_of(CPU, [1.0] * 3, [1.0] * 3), WAL, 0.02, ALONE) == absent(WAL)


@given(st.floats(0.2, 5), st.floats(1, 2), st.floats(1, 2), st.floats(0.001, 0.5))
def test_a_verdict_is_the_change_seen_by_its_direction(
    estimate: float, below: float, above: float, threshold: float
) -> None:
    interval = Interval(estimate, estimate / below, estimate * above, 3)
    change = change_of(interval, threshold)
    high, low = (judge(interval, better, threshold) for better in (Better.HIGHER, Better.LOWER))
    assert (change is MORE) == (high is IMPROVEMENT) == (low is REGRESSION)
    assert (change is LESS) == (high is REGRESSION) == (low is IMPROVEMENT)
    assert (change is SAME) == (high is Verdict.UNCHANGED) == (low is Verdict.UNCHANGED)


def test_a_change_means_nothing_without_a_direction() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        verdict_of(MORE, Better.NEITHER)


# --- what explains a change


@given(st.tuples(*[changes] * len(COSTS)))
def test_more_of_a_cost_explains_a_regression_and_less_an_improvement(
    went_to: tuple[MetricChange, ...],
) -> None:
    beside = [went(metric, change) for metric, change in zip(COSTS, went_to, strict=True)]
    assert explained_by("qps", REGRESSION, beside) == tuple(
        cost.metric for cost in beside if cost.change is MORE
    )
    assert explained_by("tps", IMPROVEMENT, beside) == tuple(
        cost.metric for cost in beside if cost.change is LESS
    )


def test_latency_and_variation_explain_nothing() -> None:
    beside = [went(CPU, SAME), went("latency_p99_ms", MORE), went(CV, MORE)]
    assert explained_by("qps", REGRESSION, beside) == ()


def test_where_there_is_nothing_to_explain() -> None:
    beside = [went(CPU, MORE)]
    for verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE, None):
        assert explained_by("qps", verdict, beside) is None
    assert explained_by("latency_p99_ms", REGRESSION, beside) is None


def test_without_any_cost_nothing_is_called_unexplained() -> None:
    assert explained_by("qps", REGRESSION, []) is None
    assert explained_by("qps", REGRESSION, [absent(metric) for metric in COSTS]) is None


def function(own: float, share: float | None, error: float | None) -> FunctionChange:
    bounds = None if error is None else (own - 2 * error, own + 2 * error)
    return FunctionChange("heap_insert", Cost(1, 1), Cost(1 + own, 1 + own), bounds, share, share)


@pytest.mark.parametrize(
    ("costs", "gained", "found"),
    [
        ((SAME, LESS), [], Explanation.NONE),
        ((SAME, UNKNOWN), [], Explanation.UNDECIDED),
        ((MORE, UNKNOWN), [], Explanation.COST),
        ((SAME, SAME), [function(5, 1.2, 1)], Explanation.PROFILE),  # it gained more than the whole change
        ((SAME, UNKNOWN), [function(5, 0.6, None)], Explanation.PROFILE),  # of two rounds
        ((SAME, SAME), [function(5, 1.2, 4)], Explanation.UNDECIDED),  # as large as its error
        ((SAME, SAME), [function(5, 0.2, 1)], Explanation.NONE),
        ((SAME, SAME), [function(5, None, 1)], Explanation.NONE),  # the server's CPU time hardly changed
        ((SAME, SAME), [function(-5, 1.2, 1)], Explanation.NONE),  # of a server that became cheaper
    ],
)
def test_the_profile_is_evidence_and_an_undecided_cost_is_not_the_same(
    costs: tuple[MetricChange, ...], gained: list[FunctionChange], found: Explanation
) -> None:
    beside = [went(metric, change) for metric, change in zip(COSTS, costs, strict=False)]
    assert explanation(explained_by("qps", REGRESSION, beside), beside, gained) is found


@pytest.mark.parametrize(
    ("costs", "part", "gained", "found"),
    [
        ({CPU: MORE}, 0.32, [], Explanation.COST),
        ({CPU: MORE}, 0.03, [], Explanation.PARTLY),
        ({CPU: SAME, WAL: MORE}, 0.0, [], Explanation.PARTLY),  # bytes have no size in time
        ({CPU: UNKNOWN, WAL: MORE}, 0.0, [], Explanation.UNDECIDED),
        ({CPU: MORE, READ: UNKNOWN}, 0.03, [], Explanation.PARTLY),
        ({CPU: SAME}, 0.0, [function(5, 1.2, 1)], Explanation.NONE),  # CPU time stayed the same
        ({CPU: UNKNOWN}, 0.0, [function(5, 1.2, 1)], Explanation.PROFILE),
    ],
)
def test_a_cost_explains_as_far_as_it_goes(
    costs: dict[str, MetricChange], part: float, gained: list[FunctionChange], found: Explanation
) -> None:
    beside = [went(metric, change) for metric, change in costs.items()]
    time = QueryTime(0.41, {CPU: (0.04, part)} if part else {})
    assert explanation(explained_by("qps", REGRESSION, beside), beside, gained, time=time) is found


def test_nothing_to_explain_needs_no_explanation() -> None:
    assert explanation(None, [went(CPU, UNKNOWN)], [function(5, 1.2, 1)]) is None


# --- how throughput varied


@pytest.mark.parametrize(
    ("cv", "p1", "found"),
    [
        (MORE, SAME, Variation.WORSE),
        (SAME, LESS, Variation.WORSE),
        (LESS, LESS, Variation.WORSE),  # one that got worse is enough
        (LESS, UNKNOWN, Variation.BETTER),
        (SAME, MORE, Variation.BETTER),
        (SAME, SAME, Variation.SAME),
        (SAME, UNKNOWN, Variation.UNKNOWN),
        (UNKNOWN, UNKNOWN, Variation.UNKNOWN),
    ],
)
def test_variation(cv: MetricChange, p1: MetricChange, found: Variation) -> None:
    assert variation([went("qps", SAME), went(CV, cv), went(P1, p1), went(CPU, MORE)]) is found


def test_variation_that_was_not_recorded() -> None:
    assert variation([went(CV, SAME), absent(P1)]) is Variation.SAME
    assert variation([absent(CV), absent(P1)]) is Variation.UNKNOWN
    assert variation([]) is Variation.UNKNOWN
