"""Means of few rounds: intervals cover as they say, and three rounds that agree by luck do not decide."""

import numpy as np
import pytest

from history.comparison.findings.memory_growth import PRIOR_ROUNDS, moderated


@pytest.mark.parametrize("rounds", [2, 3, 20])
def test_the_interval_misses_as_often_as_it_says(rounds: int) -> None:
    draw = np.random.default_rng(7)
    sessions, error = 4000, 0.02
    missed = 0
    # The variance of sessions is around the expected one as if that came from so many rounds.
    deviations = 2 * np.sqrt(PRIOR_ROUNDS / draw.chisquare(PRIOR_ROUNDS, sessions))
    for deviation in deviations:
        values = draw.normal(5, deviation, rounds)
        found = moderated(values.tolist(), 2, error)
        missed += not found.low <= 5 <= found.high
    assert missed / sessions == pytest.approx(error, abs=0.007)


def test_rounds_that_are_equal_by_chance_have_the_width_that_is_expected() -> None:
    found = moderated([7.0, 7.0, 7.0], 2, 0.02)
    assert (found.value, found.low < 5, found.high > 9) == (7.0, True, True)


def test_rounds_that_scatter_more_than_expected_widen_it() -> None:
    calm, wild = moderated([4, 5, 6], 1, 0.02), moderated([-400, 5, 410], 1, 0.02)
    assert wild.high - wild.low > 100 * (calm.high - calm.low)


def test_there_is_no_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match="no rounds"):
        moderated([], 1, 0.02)
