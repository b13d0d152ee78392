"""Numbers as people read them."""

import pytest

from history.numbers import percent_bounds
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
