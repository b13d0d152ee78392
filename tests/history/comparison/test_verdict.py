"""The rules of the verdict, case by case, at a threshold of 2 %."""

import pytest

from history.comparison.verdict import TRAITS, Verdict, judge
from history.stats.estimators import Interval
from suites.metrics import Better

REGRESSION, IMPROVEMENT = Verdict.REGRESSION, Verdict.IMPROVEMENT
UNCHANGED, INCONCLUSIVE = Verdict.UNCHANGED, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("low", "estimate", "high", "higher", "lower"),
    [
        (0.90, 0.95, 0.99, REGRESSION, IMPROVEMENT),
        (1.01, 1.05, 1.10, IMPROVEMENT, REGRESSION),
        (0.99, 1.00, 1.01, UNCHANGED, UNCHANGED),
        (0.98, 0.99, 1.02, UNCHANGED, UNCHANGED),  # the borders belong to it
        (0.985, 0.99, 0.995, UNCHANGED, UNCHANGED),  # certain but small
        (1.005, 1.01, 1.015, UNCHANGED, UNCHANGED),
        (0.90, 0.95, 1.00, INCONCLUSIVE, INCONCLUSIVE),  # 1 itself is not excluded
        (1.00, 1.05, 1.10, INCONCLUSIVE, INCONCLUSIVE),
        (0.90, 0.95, 1.01, INCONCLUSIVE, INCONCLUSIVE),
        (0.975, 0.985, 0.995, INCONCLUSIVE, INCONCLUSIVE),  # below 1, perhaps beyond the threshold
        (1.005, 1.015, 1.025, INCONCLUSIVE, INCONCLUSIVE),
        (0.97, 1.00, 1.03, INCONCLUSIVE, INCONCLUSIVE),
        (0.10, 1.00, 9.00, INCONCLUSIVE, INCONCLUSIVE),
        (0.50, 0.50, 0.50, REGRESSION, IMPROVEMENT),
        (1.00, 1.00, 1.00, UNCHANGED, UNCHANGED),
    ],
)
def test_verdict(low: float, estimate: float, high: float, higher: Verdict, lower: Verdict) -> None:
    interval = Interval(estimate, low, high, 3)
    assert judge(interval, Better.HIGHER, 0.02) is higher
    assert judge(interval, Better.LOWER, 0.02) is lower


def test_no_verdict_without_a_direction() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        judge(Interval(1.0, 1.0, 1.0, 3), Better.NEITHER, 0.02)


def test_every_verdict_has_its_traits() -> None:
    assert list(TRAITS) == list(Verdict)
    assert {traits.exit_code for traits in TRAITS.values()} == {0, 1, 2}
    assert all((traits.exit_code == 2) == traits.is_open for traits in TRAITS.values())
