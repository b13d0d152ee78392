"""The size of a raised change, from all nights on both sides."""

import numpy as np
import pytest

from benchmarks.simulation.detection_series import gaussian
from benchmarks.simulation.many_series import sizes
from history.stats.change_points import ChangePoint, measured_again


def raised(size: float, at: int, seen: int) -> ChangePoint:
    return ChangePoint(at, at - 1, at, 0.0, size, size / 2, 2 * size, 0.99, seen)


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
def test_sizes_of_late_and_of_early_alerts_are_those_of_the_steps() -> None:
    for share, later, most in ((0.5 / 3000, 0, 0.07), (0.5 / 3000, 10, 0.05), (0.0125, 10, 0.05)):
        ratio, held = sizes(gaussian, (31, 2), 300, 2.0, share, later)
        assert ratio == pytest.approx(1.0, abs=most)
        assert held > 0.9


def test_nights_that_raised_it_do_not_count_once_others_do() -> None:
    values = np.r_[np.tile([-0.01, 0.01], 30), np.full(4, 0.2), np.tile([0.09, 0.11], 10)]
    change = raised(0.2, 60, 63)
    assert measured_again(values[:64], change, 0, 63).size == pytest.approx(0.2)
    again = measured_again(values, change, 0, len(values) - 1)
    assert again.size == pytest.approx(0.1)
    assert again.low < 0.1 < again.high < 0.12
    assert measured_again(values, change, 0, 65).size > 0.15  # where the level ended two nights later
    assert measured_again(values, change, 58, 63) == change  # two nights before it are no level
