"""Variation around the trend: what is trend, and what is not."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.metrics import DETRENDED, WORST_SECOND
from suites.turns.detrended import MIN_SECONDS, MIN_WORST, TRIMMED_SHARE, detrended, trend

steady = st.floats(1, 1e6)
rates = st.lists(steady, min_size=MIN_SECONDS, max_size=120)


@given(rates, st.booleans())
def test_what_only_rises_or_only_falls_does_not_vary(per_second: list[float], falls: bool) -> None:
    """However unevenly it does so, as a cache does that warms."""
    assert detrended(sorted(per_second, reverse=falls)) == {DETRENDED: 0.0, WORST_SECOND: 1.0}


@given(rates, st.floats(0.001, 1000))
def test_variation_does_not_depend_on_the_unit(per_second: list[float], scale: float) -> None:
    scaled = detrended([scale * rate for rate in per_second])
    assert scaled == pytest.approx(detrended(per_second), rel=1e-6, abs=1e-9)


@given(
    length=st.integers(30, 60),
    stall=st.integers(1, 5),
    place=st.floats(0, 1),
    slope=st.floats(-0.5, 2),
    left=st.floats(0, 0.5),
)
def test_a_stall_is_found_on_any_slope(
    length: int, stall: int, place: float, slope: float, left: float
) -> None:
    """Of as many seconds as are before and after a second in its window, at least so far from both ends."""
    around = length // 6
    line = [1000 * (1 + slope * second / length) for second in range(length)]
    begin = around + round(place * (length - 2 * around - stall))
    per_second = [
        rate * left if begin <= second < begin + stall else rate for second, rate in enumerate(line)
    ]
    usual = trend(per_second)
    for second in range(begin, begin + stall):
        # A window with a stall has its median up to so many seconds further along the line.
        assert usual[second] == pytest.approx(line[second], abs=1.001 * stall * abs(line[1] - line[0]) + 1e-6)
    found = detrended(per_second)
    assert found[WORST_SECOND] < 0.7
    beyond = max(0, stall - math.ceil(TRIMMED_SHARE * length))
    assert found[DETRENDED] >= 0.6 * (1 - left) * (beyond / length) ** 0.5 * min(line) / max(line)


def test_known_runs() -> None:
    stalled = [100.0] * 10 + [20.0] * 3 + [100.0] * 7
    assert detrended(stalled) == pytest.approx({DETRENDED: 80 / 18**0.5 / 88, WORST_SECOND: 0.2})
    one = [100.0] * 10 + [20.0] + [100.0] * 9
    assert detrended(one) == {DETRENDED: 0.0, WORST_SECOND: 0.2}
    assert detrended([100.0] * (MIN_SECONDS - 1)) == {}
    assert detrended([0.0] * 20) == {}
    assert detrended([100.0] * 10 + [0.0] + [100.0] * 10)[WORST_SECOND] == MIN_WORST
