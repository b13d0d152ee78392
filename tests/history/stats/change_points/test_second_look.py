"""The second look: other noise than the usual is no step, and a step in such noise is still one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.stats.change_points import SeriesWatch, watch_many

SIGMA = 0.02
JUDGED = 0.0125
"""The share of quiet years with a change that the judge asks for with 40 series."""

YEARS = (300, 365)


def gaussian(seed: int) -> np.ndarray:
    return SIGMA * np.random.default_rng(seed).standard_normal(YEARS)


def twice(seed: int) -> np.ndarray:
    values = gaussian(seed)
    values[:, 150:] *= 2
    return values


def bad_nights(seed: int) -> np.ndarray:
    return np.asarray(gaussian(seed) + 8 * SIGMA * (np.random.default_rng(seed + 1).random(YEARS) < 0.15))


def two_values(seed: int) -> np.ndarray:
    return SIGMA * (np.random.default_rng(seed).random(YEARS) < 0.2)


def grid(seed: int) -> np.ndarray:
    return np.round(gaussian(seed) / SIGMA / 2) * 2 * SIGMA


def exponential(seed: int) -> np.ndarray:
    return SIGMA * np.random.default_rng(seed).exponential(size=YEARS)


@pytest.mark.parametrize(
    ("kind", "most"),
    [(twice, 15), (bad_nights, 24), (two_values, 12), (grid, 12), (exponential, 12)],
)
def test_years_of_other_noise_rarely_hold_a_change(kind: type, most: int) -> None:
    """At the rates without a second look there would be about 130, 110, 150, 17 and 23 of them."""
    assert sum(map(bool, watch_many(kind(31), JUDGED))) <= most


@pytest.mark.parametrize("kind", [twice, bad_nights, two_values, exponential])
def test_a_large_step_in_such_noise_is_raised(kind: type) -> None:
    values = kind(32)[:100]
    values[:, 250:] -= 15 * SIGMA
    found = watch_many(values, JUDGED)
    assert np.mean([any(250 <= (change.raised or 0) < 265 for change in changes) for changes in found]) > 0.95


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    noise=st.sampled_from([twice, bad_nights, two_values, grid, exponential]),
    gaps=st.floats(0, 0.3),
)
def test_many_series_get_the_second_look_that_one_gets(seed: int, noise: type, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = noise(seed % 1000)[rng.integers(0, YEARS[0], 6)]
    matrix[0, 200:] += 6 * SIGMA
    matrix[rng.random(matrix.shape) < gaps] = np.nan
    alone = []
    for row in matrix:
        watch = SeriesWatch()
        alone.append(tuple(change for value in row if (change := watch.take(float(value))) is not None))
    assert watch_many(matrix) == alone
