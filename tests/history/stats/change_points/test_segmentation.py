"""Changes in finished series, the partition behind them, and how heavy tails are measured."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.stats.change_points import find_changes, find_changes_many
from history.stats.change_points.optimal_partition import (
    MIN_LEVEL,
    best_partition,
    gain,
    levels,
    moved,
    sums_of,
)
from history.stats.change_points.segmentation import BLOCK, SHORTEST
from history.stats.change_points.tails import geary_ratio, inverse_degrees, mean_absolute, scale_of

SIGMA = 0.02


def noise(seed: int, series: int, nights: int) -> np.ndarray:
    return SIGMA * np.random.default_rng(seed).standard_normal((series, nights))


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(st.tuples(st.integers(0, 149), st.floats(-8, 8)), max_size=4),
    gaps=st.floats(0, 0.9),
)
def test_many_series_are_as_each_alone(seed: int, steps: list[tuple[int, float]], gaps: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = SIGMA * rng.standard_t(3, (3, 150))
    for night, size in steps:
        matrix[0, night:] += SIGMA * size
    matrix[1:][rng.random((2, 150)) < gaps] = np.nan
    for changes, among in zip(map(find_changes, matrix), find_changes_many(matrix), strict=True):
        assert [change.index for change in changes] == [change.index for change in among]
        assert [change.size for change in changes] == pytest.approx([change.size for change in among])


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), gaps=st.floats(0, 0.4))
def test_a_change_is_described_consistently(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    values = noise(seed, 1, 200)[0]
    values[80:] += 3 * SIGMA
    values[rng.random(200) < gaps] = np.nan
    for change in find_changes(values):
        assert 0 <= change.first < change.index <= change.last < 200
        assert np.isfinite(values[[change.first, change.index, change.last]]).all()
        assert change.low < change.size < change.high
        assert 0 <= change.confidence <= 1
        assert change.raised is None


@pytest.mark.parametrize("factor", [-1.0, 64.0])
def test_units_and_direction_do_not_matter(factor: float) -> None:
    matrix = noise(1, 50, 200)
    matrix[:, 120:] += 2 * SIGMA
    for changes, other in zip(find_changes_many(matrix), find_changes_many(factor * matrix), strict=True):
        assert [change.index for change in changes] == [change.index for change in other]
        assert [factor * change.size for change in changes] == pytest.approx(
            [change.size for change in other]
        )


def test_steps_of_a_standard_deviation_are_found_and_little_else() -> None:
    matrix = noise(2, 300, 365)
    matrix[:, 150:] += 1.2 * SIGMA
    matrix[:, 250:] -= 2 * SIGMA
    found = [[change.index for change in changes] for changes in find_changes_many(matrix)]
    assert np.mean([len(position) == 2 for position in found]) > 0.95
    assert np.mean([abs(position[0] - 150) <= 10 for position in found if position]) > 0.9


@pytest.mark.parametrize("tails", [3.0, 1000.0])
def test_few_quiet_years_hold_a_change(tails: float) -> None:
    rng = np.random.default_rng(3)
    assert sum(map(bool, find_changes_many(rng.standard_t(tails, (1000, 365))))) <= 22


def test_drift_is_no_step_but_a_step_in_it_is() -> None:
    drift = noise(4, 200, 365) + SIGMA * np.linspace(0, 2, 365)
    assert sum(map(bool, find_changes_many(drift))) <= 6
    drift[:, 200:] += 4 * SIGMA
    assert (
        np.mean([any(abs(change.index - 200) <= 2 for change in all_) for all_ in find_changes_many(drift)])
        > 0.95
    )


def test_outliers_are_no_steps() -> None:
    matrix = noise(5, 200, 365)
    matrix[:, 100] += 100 * SIGMA
    matrix[:, 200:202] -= 100 * SIGMA
    assert sum(map(bool, find_changes_many(matrix))) <= 10


def test_ranges_and_intervals_hold_the_truth() -> None:
    matrix = noise(6, 500, 200)
    matrix[:, 100:] += 1.5 * SIGMA
    found = [change for changes in find_changes_many(matrix) for change in changes]
    assert np.mean([position.first < 100 <= position.last for position in found]) == pytest.approx(
        0.96, abs=0.03
    )
    assert np.mean([position.low < 1.5 * SIGMA < position.high for position in found]) > 0.9


def test_positions_count_gaps() -> None:
    values = noise(7, 1, 200)[0]
    values[120:] += 6 * SIGMA
    values[10:40] = np.nan
    (change,) = find_changes(values)
    assert change.index == 120


def test_short_empty_and_equal_series() -> None:
    short = np.repeat([0.0, 1.0], [SHORTEST // 2, SHORTEST // 2 - 1]) + noise(8, 1, SHORTEST - 1)[0]
    assert find_changes(short) == ()
    padded = np.concatenate([short, np.full(30, np.nan)])
    assert find_changes(padded) == ()
    assert find_changes(np.full(50, np.nan)) == ()
    assert find_changes(np.zeros(50)) == ()
    assert find_changes_many(np.zeros((0, 50))) == []
    (change,) = find_changes(np.repeat([0.0, 1.0], 50))
    assert (change.index, change.size) == (50, 1.0)


def test_blocks_come_back_in_order() -> None:
    matrix = noise(9, BLOCK + 2, 100)
    matrix[[1, BLOCK], 50:] += 8 * SIGMA
    assert [row for row, changes in enumerate(find_changes_many(matrix)) if changes] == [1, BLOCK]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), penalty=st.floats(0.1, 30))
def test_the_partition_is_the_best_of_all(seed: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(40) + np.repeat(rng.normal(0, 2, 4), 10)
    positions = np.sort(rng.choice(np.arange(1, 40), 6, replace=False))
    sums = sums_of(values[None], np.array([40]))

    def cost(chosen: tuple[int, ...]) -> float:
        ends = (0, *chosen, 40)
        parts = [values[a:b] for a, b in pairwise(ends)]
        if min(map(len, parts)) < MIN_LEVEL:
            return float("inf")
        return sum(float(((part - part.mean()) ** 2).sum()) for part in parts) + penalty * len(chosen)

    every = [tuple(map(int, combination)) for n in range(7) for combination in combinations(positions, n)]
    found = best_partition(positions[None], sums, np.array([penalty]))[0]
    assert tuple(int(position) for position in found if position < 40) == min(every, key=cost)


def test_a_change_is_moved_to_where_it_fits_best() -> None:
    values = np.repeat([0.0, 1.0, 3.0], [20, 20, 20])[None]
    sums = sums_of(values, np.array([60]))
    assert moved(np.array([[17, 45, 60]]), sums).tolist() == [[20, 40, 60]]
    means, index = levels(np.array([[20, 40, 60]]), sums)
    assert means[0, :3].tolist() == [0, 1, 3]
    assert np.take_along_axis(means, index, 1).tolist() == values.tolist()


def test_the_gain_is_what_squares_lose() -> None:
    values = np.array([[0.0, 0, 0, 1, 1, 1]])
    got = gain(np.array([[0]]), np.array([[3]]), np.array([[6]]), sums_of(values, np.array([6])))
    assert got[0, 0] == pytest.approx(1.5)


@given(st.floats(3.5, 50))
def test_tails_are_recovered(degrees: float) -> None:
    inverse = inverse_degrees(np.array([geary_ratio(degrees)]))
    assert 1 / inverse[0] == pytest.approx(degrees, rel=0.02)
    assert scale_of(np.array([2 * mean_absolute(degrees)]), inverse)[0] == pytest.approx(2, rel=0.01)


def test_geary_ratio_of_known_distributions() -> None:
    assert geary_ratio(1e4) == pytest.approx((2 / np.pi) ** 0.5, rel=1e-3)
    assert geary_ratio(3.0) == pytest.approx(2 / np.pi)


def test_correlated_nights_are_no_steps() -> None:
    values = np.random.default_rng(10).standard_normal((300, 365))
    for night in range(1, 365):
        values[:, night] = 0.4 * values[:, night - 1] + (1 - 0.4**2) ** 0.5 * values[:, night]
    assert sum(map(bool, find_changes_many(values))) <= 6


@pytest.mark.parametrize(("nights", "gap"), [(1500, 60), (5000, 60), (5000, 23)])
def test_a_long_series_keeps_all_of_its_steps(nights: int, gap: int) -> None:
    """With 64 candidates for a whole series, most of 24 steps were lost, and counted as noise."""
    rng = np.random.default_rng(nights + gap)
    starts = np.arange(gap, nights - gap + 1, gap)
    level = np.cumsum(rng.integers(1, 3, len(starts))) % 3  # one of three levels, in any order
    values = noise(nights, 1, nights)[0]
    for start, number in zip(starts, level, strict=True):
        values[start : start + gap] += 6 * SIGMA * number
    changes = find_changes(values)
    found = {int(start) for start in starts if any(abs(change.index - start) <= 2 for change in changes)}
    assert len(found) >= 0.98 * len(starts)
    assert len(changes) <= len(starts) + 3
    assert all(change.low > 0 or change.high < 0 for change in changes)
