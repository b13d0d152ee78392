"""Numbers as people read them."""

import pytest

from history.numbers import change_text, percent_bounds
from history.stats.estimators import Interval


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.969, 1.12, "-3.1 to +12.0 %"),
        (0.99996, 1.02, "±0.0 to +2.0 %"),
        (0.2, 5.38, "-80.0 to +438.0 %"),
        (0.02, 2.01, "very wide"),
    ],
)
def test_an_interval_is_a_range_of_changes_unless_it_says_nothing(low: float, high: float, text: str) -> None:
    assert percent_bounds(Interval(1.0, low, high, 3)) == text


@pytest.mark.parametrize(
    ("ratio", "low", "high", "text"),
    [
        (0.909, 0.902, 0.917, "-9.1 % (-9.8 to -8.3)"),
        (9.99, 8.0, 12.0, "+899.0 % (+700.0 to +1100.0)"),
        (12.34, 9.0, 15.0, "12.3 times (9 to 15)"),
        (2543.26, 1874.8, 3450.1, "2,543 times (1,875 to 3,450)"),
    ],
)
def test_another_size_is_told_as_times(ratio: float, low: float, high: float, text: str) -> None:
    assert change_text(ratio, low, high) == text
