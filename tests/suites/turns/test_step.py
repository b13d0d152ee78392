"""The arithmetic of one step: its work, throughput, and the spread of that. No server."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.definition import load_suite
from suites.generators.load import Load
from suites.keys.step import Step
from suites.metrics import METRICS
from suites.sizing import max_transactions
from suites.turns.turn import load_values, slow_transactions, spread, thirds
from tests.suites.servers import small

LOAD = Load(
    transactions=500,
    queries=1000.0,
    seconds=2.0,
    errors=3,
    per_second=(400.0, 600.0),
    latency_ms={"mean": 4.0, "p50": 3.0, "p99": 9.0},
    watched_queries=800.0,
    watched_seconds=1.6,
)
STEP = Step(name="insert", title="Insert")
NOBODY = 2**22 + 1
"""No process has this id: pid_max is 2**22 at the most (proc(5))."""


# --- work


def test_most_steps_are_bound_by_time_only() -> None:
    assert max_transactions(STEP, small(rows=1000, tables=4)) is None


def test_a_step_that_uses_rows_up_ends_before_they_do() -> None:
    (delete,) = load_suite("write-heavy").select(("delete",))
    assert max_transactions(delete, small(rows=1000, tables=4)) == 2000
    assert max_transactions(delete, small(rows=1)) == 1


# --- values


def test_values_of_a_load() -> None:
    values = load_values(LOAD)
    assert values.keys() <= METRICS.keys()
    assert {name: values[name] for name in ("qps", "tps", "transactions", "seconds", "errors")} == {
        "qps": 500,
        "tps": 250,
        "transactions": 500,
        "seconds": 2,
        "errors": 3,
    }
    assert values["latency_mean_ms"] == 4
    assert values["latency_p50_ms"] == 3
    assert values["latency_p99_ms"] == 9
    assert values["qps_cv"] == pytest.approx(0.28284, abs=1e-5)


def test_transactions_are_counted_beyond_the_limits_that_few_exceed() -> None:
    """Below the lowest limit more than a twentieth is beyond, above the highest none."""
    assert slow_transactions({0.15: 900, 0.3: 60, 0.7: 35, 22.0: 4, 300.0: 1}) == {
        "transactions_beyond_500_us": 40,
        **{f"transactions_beyond_{limit}_ms": 5 for limit in (1, 2, 5, 10, 20)},
        **{f"transactions_beyond_{limit}_ms": 1 for limit in (50, 100, 200)},
        "transactions_beyond_500_ms": 0,
    }
    assert slow_transactions({0.05: 9}) == {"transactions_beyond_100_us": 0}, "known, and none"
    assert slow_transactions({}) == {}
    assert slow_transactions({9000.0: 5}) == {}, "all of them are beyond the highest limit"


def test_the_second_of_the_slowest_transaction() -> None:
    values = load_values(replace(LOAD, longest_ms=(9.0, 262.0, 8.0), histogram={3.0: 499, 262.0: 1}))
    assert values["latency_max_second"] == 2
    assert values["transactions_beyond_200_ms"] == 1
    assert "latency_max_second" not in load_values(LOAD)


def test_thirds_are_the_first_and_the_last_seconds() -> None:
    rates = [10.0, 12.0, 99.0, 99.0, 99.0, 6.0, 8.0]
    assert thirds(rates) == {"qps_first_third": 11, "qps_last_third": 7}
    assert thirds([3.0, 2.0, 1.0]) == {"qps_first_third": 3, "qps_last_third": 1}
    assert thirds([3.0, 2.0]) == {}


def test_spread_of_a_known_run() -> None:
    assert spread([100.0] * 10) == {"qps_cv": 0, "qps_p1_over_median": 1}
    found = spread([0.0, *[100.0] * 100])
    assert found["qps_cv"] == pytest.approx(0.1005, abs=1e-4)
    assert found["qps_p1_over_median"] == pytest.approx(1.0)
    assert spread([0.0, 0.0, 50.0, 100.0, 100.0])["qps_p1_over_median"] == pytest.approx(0.0)


@pytest.mark.parametrize("rates", [[], [5.0], [0.0, 0.0, 0.0]])
def test_too_few_seconds_have_no_spread(rates: list[float]) -> None:
    assert spread(rates) == {}


def test_a_run_that_mostly_stood_still_has_no_median_to_divide_by() -> None:
    assert spread([0.0, 0.0, 9.0]).keys() == {"qps_cv"}


rates = st.lists(st.floats(1, 1e6), min_size=2, max_size=100)


@given(rates, st.floats(0.001, 1000))
def test_spread_does_not_depend_on_the_unit(per_second: list[float], scale: float) -> None:
    scaled = spread([scale * rate for rate in per_second])
    for name, value in spread(per_second).items():
        assert scaled[name] == pytest.approx(value, rel=1e-6, abs=1e-9)


@given(rates)
def test_spread_does_not_depend_on_the_order(per_second: list[float]) -> None:
    assert spread(sorted(per_second)) == pytest.approx(spread(per_second))
    assert spread(per_second)["qps_cv"] >= 0
    assert 0 < spread(per_second)["qps_p1_over_median"] <= 1
