"""The second in which the ratio of two versions changed within a round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.comparison.rounds.onset import onset_second


@pytest.mark.parametrize("before", [3, 19, 50])
def test_a_step_is_found_where_it_is(before: int) -> None:
    noise = np.random.default_rng(3).normal(0, 0.02, size=60)
    logs = noise + np.where(np.arange(60) < before, 0.0, -0.2)
    assert onset_second(logs.tolist()) == before + 1


def test_a_slow_decline_has_no_second() -> None:
    noise = np.random.default_rng(3).normal(0, 0.02, size=60)
    assert onset_second((noise - np.arange(60) * 0.005).tolist()) is None


@pytest.mark.parametrize("logs", [[], [0.0, 0.0, -1.0], [0.1] * 30])
def test_few_or_equal_seconds_have_no_onset(logs: list[float]) -> None:
    assert onset_second(logs) is None


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=40))
def test_an_onset_is_a_second_of_the_round_that_has_one_before_it(logs: list[float]) -> None:
    second = onset_second(logs)
    assert second is None or 2 <= second <= len(logs)
