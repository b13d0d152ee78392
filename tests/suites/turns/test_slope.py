"""The slope: exact on a line, and not moved by one point far from it."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.turns.held_connections import CONFIDENCE, inversions, omitted, theil_sen

levels = st.lists(st.integers(0, 1000), min_size=2, max_size=8, unique=True).map(sorted)
numbers = st.integers(-10_000, 10_000)


@given(levels, numbers, numbers)
def test_a_line_has_its_own_slope_and_no_width(x: list[int], slope: int, start: int) -> None:
    found = theil_sen(x, [start + slope * place for place in x])
    assert (found.value, found.low, found.high) == (slope, slope, slope)


@given(st.lists(st.integers(0, 1000), min_size=5, max_size=9, unique=True).map(sorted), numbers, st.data())
def test_one_outlier_does_not_move_the_slope(x: list[int], slope: int, data: st.DataObject) -> None:
    y = [7 + slope * place for place in x]
    y[data.draw(st.integers(0, len(x) - 1))] += data.draw(st.integers(-(10**7), 10**7))
    found = theil_sen(x, y)
    # Of n points n - 1 pairs have the outlier, and less than half of all pairs from n = 5 on.
    assert found.value == slope
    assert found.low <= slope <= found.high


@given(levels.flatmap(lambda x: st.tuples(st.just(x), st.lists(numbers, min_size=len(x), max_size=len(x)))))
def test_the_interval_holds_the_slope_and_does_not_depend_on_the_order(
    points: tuple[list[int], list[int]],
) -> None:
    x, y = points
    found = theil_sen(x, y)
    assert found.low <= found.value <= found.high
    assert theil_sen(x[::-1], y[::-1]) == found


def test_equal_levels_have_a_slope_of_zero() -> None:
    """As much memory at two levels, and one level twice: where nothing is opened, nothing grows."""
    for x, y in (([0, 50], [4000, 4000]), ([50, 50], [4000, 4000]), ([50, 50], [4000, 4007]), ([50], [1])):
        found = theil_sen(x, y)
        assert (found.value, found.low, found.high) == (0, 0, 0)


def test_inversions_are_those_of_permutations() -> None:
    counts = [0] * 7
    for order in permutations(range(4)):
        counts[sum(order[i] > order[j] for i in range(4) for j in range(i + 1, 4))] += 1
    assert inversions(4) == counts


@pytest.mark.parametrize(("points", "most"), [(2, 0), (3, 0), (4, 0), (5, 1), (6, 2), (7, 4), (8, 6)])
def test_the_interval_leaves_out_what_its_confidence_allows(points: int, most: int) -> None:
    """From n = 5 on as in tables of Kendall's statistic, such as those of Hollander and Wolfe."""
    assert omitted(points) == most
    outside = sum(inversions(points)[: most + 1]) / sum(inversions(points))
    assert points < 4 or 1 - 2 * outside >= CONFIDENCE
