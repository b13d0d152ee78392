"""What a session that asks whether a change is gone says of its members."""

import pytest

from history.changes.confirmation import ConfirmationRequest, Confirms
from history.changes.confirmation.decide import findings_of
from history.changes.level_shift import Shift
from history.comparison.verdict import MetricChange
from history.series.series import Night
from history.stats.estimators import Interval
from history.store.records import Environment
from tests.history.handmade import NIGHT

GONE = Confirms(ConfirmationRequest.GONE, "postgres@main", "night-1", "night-4", ("insert",), 0.02, "f")
BEFORE, AFTER = (Night(number, NIGHT, f"postgres@git:{number:012}", number) for number in (1, 2))
SURELY_BACK, SURELY_THERE = (0.98, 1.03), (0.59, 0.63)


def member(series_id: int, metric: str, ratio: float) -> Shift:
    place, nights = Environment("db1", "write-heavy", "short relaxed"), (BEFORE, AFTER, AFTER)
    levels = (1.0, ratio, ratio, ratio)
    return Shift(series_id, place, "postgres@main", "insert", metric, *nights, *levels, 0.999)


def found(**intervals: tuple[float, float]) -> dict[str, MetricChange]:
    """QPS fell to 0.6 of what it was, CPU rose to 1.5; of each the interval of now over before the change."""
    members = {1: member(1, "qps", 0.6), 2: member(2, "server_cpu_us_per_op", 1.5)}
    names = {"qps": 1, "cpu": 2}
    measured = {
        names[name]: Interval((low * high) ** 0.5, low, high, 5) for name, (low, high) in intervals.items()
    }
    findings = findings_of(GONE, measured, members, {})
    return {name: findings[number] for name, number in names.items() if number in findings}


def test_each_that_is_surely_back_is_gone() -> None:
    assert found(qps=SURELY_BACK, cpu=(0.97, 1.05)) == {"qps": MetricChange.SAME, "cpu": MetricChange.SAME}
    assert found(qps=SURELY_THERE, cpu=(0.97, 1.05)) == {
        "qps": MetricChange.UNKNOWN,
        "cpu": MetricChange.SAME,
    }


@pytest.mark.parametrize(
    ("qps", "cpu", "cpu_finding"),
    [
        (SURELY_BACK, (0.7, 1.4), MetricChange.SAME),
        (SURELY_BACK, (1.1, 1.6), MetricChange.UNKNOWN),
        (SURELY_BACK, (1.4, 1.6), MetricChange.UNKNOWN),
        ((0.7, 1.2), (0.7, 1.4), MetricChange.UNKNOWN),
    ],
    ids=["open, and about as before", "open, and rather there still", "surely there", "nothing is sure"],
)
def test_a_cost_that_is_open_follows_the_rate(
    qps: tuple[float, float], cpu: tuple[float, float], cpu_finding: MetricChange
) -> None:
    assert found(qps=qps, cpu=cpu)["cpu"] is cpu_finding


def test_without_a_rate_nothing_follows() -> None:
    assert found(cpu=(0.7, 1.4)) == {"cpu": MetricChange.UNKNOWN}


def test_what_is_no_member_says_nothing() -> None:
    interval = Interval(1.0, 0.99, 1.01, 5)
    assert findings_of(GONE, {7: interval}, {1: member(1, "qps", 0.6)}, {}) == {}
