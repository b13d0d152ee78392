"""Sizes that are known only because they were large enough, against a simulation of just that."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.selection import size_after_selection

sizes = st.floats(1e-4, 1.0)


@given(sizes, sizes, sizes)
def test_a_size_is_never_enlarged_and_never_less_than_half(size: float, error: float, least: float) -> None:
    corrected = size_after_selection(size, error, least)
    assert size / 2 - 1e-12 <= corrected <= size
    assert size_after_selection(size, error, least * 2) <= corrected + 1e-9, "the rarer, the more is luck"
    assert size_after_selection(2 * size, 2 * error, 2 * least) == pytest.approx(2 * corrected, rel=1e-6)


def test_a_size_far_beyond_the_least_stays_as_it_is() -> None:
    assert size_after_selection(0.1, 0.005, 0.02) == pytest.approx(0.1)
    assert size_after_selection(0.05, 0.0, 0.02) == 0.05, "nothing is known of its error"
    assert size_after_selection(0.02, 0.005, 0.02) < 0.012


@pytest.mark.parametrize("truth", [0.02, 0.025, 0.03, 0.04])
def test_the_mean_of_what_is_called_is_about_the_truth(truth: float) -> None:
    """Of 20,000 estimates with an error of 0.6 % only those beyond 2 % are called."""
    estimates = np.random.default_rng(4).normal(truth, 0.006, 20_000)
    called = [float(estimate) for estimate in estimates if estimate > 0.02]
    corrected = np.mean([size_after_selection(called_size, 0.006, 0.02) for called_size in called[:4000]])
    assert np.mean(called) / truth > corrected / truth
    assert corrected == pytest.approx(truth, rel=0.06)
    assert not math.isnan(corrected)
