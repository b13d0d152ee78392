"""Steps in values that hardly scatter: raised by size as soon as one is repeated, and never by scatter."""

import math

import numpy as np
import pytest

from history.stats.change_points import Known, StepRule, step_probabilities, watch_steps

RULE = StepRule(math.log1p(0.005), 0.001)


def quiet(seed: int, nights: int, series: int = 1, scatter: float = 0.001) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scatter, (series, nights))


@pytest.mark.parametrize("size", [0.008, -0.008, 0.05, 0.3])
def test_a_step_is_raised_when_three_nights_agree(size: float) -> None:
    values = quiet(1, 40)
    values[0, 25:] += size
    ((found,),) = watch_steps(values, RULE)
    assert (found.first, found.index, found.last, found.raised) == (24, 25, 25, 27)
    assert found.size == pytest.approx(size, abs=0.0015)
    assert found.low < size < found.high
    assert found.confidence > 0.9


def test_a_step_of_a_young_series_is_raised_too() -> None:
    ((found,),) = watch_steps(np.array([[0.0, 0.0004, 0.03, 0.0301, 0.0299]]), RULE)
    assert (found.first, found.index, found.raised) == (1, 2, 4)


def test_a_first_night_that_was_wrong_is_no_step() -> None:
    values = quiet(10, 40)
    values[0, 0] += 0.03
    assert watch_steps(values, RULE) == [()]


def test_two_nights_alone_are_no_step_and_nor_are_three_that_disagree() -> None:
    values = quiet(2, 40)
    values[0, 20:22] += 0.02
    values[0, 30:33] += (0.02, 0.03, 0.02)
    assert watch_steps(values, RULE) == [()]


def test_a_gap_ends_nothing() -> None:
    values = quiet(3, 30)
    values[0, 20:] += 0.02
    values[0, [19, 21]] = math.nan
    ((found,),) = watch_steps(values, RULE)
    assert (found.first, found.index, found.raised) == (18, 20, 23)


def test_a_known_level_is_not_raised() -> None:
    values = quiet(4, 30)
    values[0, 20:] += 0.02
    assert watch_steps(values, RULE, [Known(0, 20, 0.02)]) == [()]


def test_the_same_build_for_years_raises_nothing() -> None:
    """A hundred and eighty series-years: Gaussian, with tails, and wrong counts on one night in 50."""
    rng = np.random.default_rng(5)
    shape = (60, 365)
    noises = [
        rng.normal(0, 0.0014, shape),
        0.001 * rng.standard_t(4, shape),
        rng.normal(0, 0.001, shape) + np.where(rng.random(shape) < 0.02, rng.normal(0, 0.013, shape), 0),
    ]
    for number, noise in enumerate(noises):
        raised = sum(map(len, watch_steps(noise, RULE)))
        assert raised == 0, f"noise {number}"


def test_a_toolchain_that_moves_a_level_little_by_little_raises_nothing() -> None:
    drift = np.linspace(0, 0.02, 365)
    assert watch_steps(quiet(6, 365) + drift, RULE) == [()]


def test_a_series_that_scatters_more_than_usual_is_judged_by_its_own_scatter() -> None:
    noise = quiet(7, 365, 20, scatter=0.004)
    raised = [change.raised for changes in watch_steps(noise, RULE) for change in changes]
    assert [night for night in raised if night is not None and night >= 12] == []


def test_the_probability_of_tonight() -> None:
    values = np.vstack([quiet(8, 20), quiet(9, 20)])
    values[1, -1] = 0.02
    near, far = step_probabilities(values, RULE)
    assert near > 0.01 > 1e-3 > far
    assert np.isnan(step_probabilities(np.array([[0.1], [math.nan]]), RULE)).all()
