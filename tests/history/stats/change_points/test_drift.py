"""Trends of series: what is taken in night by night is a line of least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.stats.change_points import watch_many
from history.stats.change_points.baseline import TREND_LAG, Baseline, Trend

SIGMA = 0.02


def learnt(values: np.ndarray, there: np.ndarray) -> Trend:
    trend = Trend(values.shape[1])
    for night, counted in zip(values, there, strict=True):
        trend.learn(night, counted)
    return trend


def look(trend: Trend, deviation: float, times: int = TREND_LAG + 1) -> np.ndarray:
    for _ in range(times):
        trend.look(np.array([deviation]))
    return trend.errors


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), nights=st.integers(5, 200), slope=st.floats(-1, 1))
def test_the_line_is_that_of_least_squares(seed: int, nights: int, slope: float) -> None:
    rng = np.random.default_rng(seed)
    values = 7 + rng.standard_normal((nights, 2)) + slope * np.arange(nights)[:, None]
    there = rng.random((nights, 2)) < 0.7
    there[:2] = True
    errors = look(learnt(values, there), 0.5)
    for column in range(2):
        at = np.flatnonzero(there[:, column])
        fitted = np.polyfit(at, values[at, column], 1)[0]
        assert errors[column] == pytest.approx(fitted / (0.5 / np.sqrt(((at - at.mean()) ** 2).sum())))


def test_a_trend_counts_some_looks_later() -> None:
    trend = learnt(np.arange(30.0)[:, None], np.ones((30, 1), dtype=bool))
    assert look(trend, 1.0, TREND_LAG) == 0
    assert look(trend, 1.0, 1) > 10


def test_a_step_ends_a_trend() -> None:
    trend = learnt(np.arange(30.0)[:, None], np.ones((30, 1), dtype=bool))
    look(trend, 1.0)
    trend.restart(0)
    assert trend.errors == 0
    for night in np.full((40, 1), 100.0):
        trend.learn(night, np.array([True]))
    assert look(trend, 1.0) == pytest.approx(0)


def test_one_night_is_no_trend() -> None:
    trend = learnt(np.array([[3.0]]), np.array([[True]]))
    assert look(trend, 1.0) == 0


@pytest.mark.parametrize(("rise", "most"), [(2.0, 16), (4.0, 80)])
def test_lines_are_seldom_steps(rise: float, most: int) -> None:
    rng = np.random.default_rng((17, round(rise)))
    matrix = SIGMA * (rng.standard_normal((600, 365)) + np.linspace(0, rise, 365))
    assert sum(map(bool, watch_many(matrix))) <= most


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
def test_a_step_along_the_drift_is_hardly_seen_sooner_than_one_against_it() -> None:
    rng = np.random.default_rng(18)
    line = np.linspace(0, 1.5, 365)
    delays = []
    for sign in (1, -1):
        matrix = SIGMA * (rng.standard_normal((400, 365)) + line)
        matrix[:, 280:] += sign * 2.5 * SIGMA
        raised = [[change.raised or 0 for change in found] for found in watch_many(matrix)]
        delays.append(np.mean([min([60, *(n - 279 for n in nights if n >= 280)]) for nights in raised]))
    along, against = delays
    # A step against the drift waits longest for the second look: the nights before it lie on the other side.
    assert against - 1.5 < along < against < 6.5


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
def test_a_small_step_is_not_learnt_as_a_trend() -> None:
    matrix = SIGMA * np.random.default_rng(21).standard_normal((1000, 260))
    matrix[:, 180:] += 1.4 * SIGMA
    raised = [[change.raised or 0 for change in found] for found in watch_many(matrix)]
    assert sum(not any(night >= 180 for night in nights) for nights in raised) <= 32


def test_a_new_level_has_no_trend_yet() -> None:
    baseline = Baseline(1)
    values = np.random.default_rng(22).standard_normal((160, 1)) + 0.02 * np.arange(160)[:, None]
    baseline.start(np.array([0]), values[:10])
    for night in values[10:]:
        baseline.absorb(night, np.array([True]))
        baseline.refresh()
        baseline.look_at_trend()
    assert baseline.trend[0] > 3
    baseline.restart(0, 3.2, 3)
    for _ in range(TREND_LAG + 1):
        baseline.look_at_trend()
        assert baseline.trend == 0
