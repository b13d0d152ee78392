"""Generated series are what they say, and scores count as documented."""

import math
from itertools import pairwise

import numpy as np
import pytest

from benchmarks import detection
from benchmarks.simulation.detection_series import (
    CENSORED,
    FIRST_STEP,
    KINDS,
    NIGHTS,
    OTHER_KINDS,
    SIGMA,
    WATCHED_AFTER,
    autocorrelated,
    drifting,
    gaussian,
    one_step,
    outliers_and_gaps,
    several_steps,
)
from benchmarks.simulation.scores import Score, delay_of, false_share, finished_score, nightly_score

SHAPE = (400, NIGHTS)


@pytest.mark.parametrize("kind", ["gaussian", "t3", "AR(1)", "Laplace", "AR(1) of 0.6"])
def test_noise_has_the_deviation_it_says(kind: str) -> None:
    values = (KINDS | OTHER_KINDS)[kind](np.random.default_rng(1), SHAPE)
    assert values.shape == SHAPE
    assert values.std() == pytest.approx(SIGMA, rel=0.05)


def test_kinds_are_what_they_are_called() -> None:
    rng = np.random.default_rng(2)
    values = autocorrelated(rng, SHAPE)
    assert np.mean(values[:, 1:] * values[:, :-1]) / SIGMA**2 == pytest.approx(0.4, abs=0.02)
    rise = drifting(rng, (2000, NIGHTS))
    year = np.abs(rise[:, -30:].mean(axis=1) - rise[:, :30].mean(axis=1)) / SIGMA
    assert 0.7 < np.mean(year) < 1.1
    rough = outliers_and_gaps(rng, (2000, NIGHTS))
    assert np.isnan(rough).mean() == pytest.approx(0.1, abs=0.02)
    assert np.nanmean(np.abs(rough) > 4.5 * SIGMA) == pytest.approx(0.03, abs=0.005)


def test_one_step_is_where_and_as_large_as_it_says() -> None:
    made = one_step(gaussian, (3,), 400, 2.0)
    jumps = []
    for row, (step,) in zip(made.values, made.steps, strict=True):
        assert WATCHED_AFTER <= step < NIGHTS - CENSORED
        jumps.append(abs(row[step:].mean() - row[:step].mean()))
    assert np.mean(jumps) == pytest.approx(2 * SIGMA, rel=0.05)


def test_several_steps_keep_their_distances() -> None:
    made = several_steps(gaussian, (4,), 300)
    spacings = [b - a for steps in made.steps for a, b in pairwise(steps)]
    assert min(steps[0] for steps in made.steps) >= FIRST_STEP
    assert min(spacings) >= 15
    assert max(steps[-1] for steps in made.steps) <= NIGHTS - 15
    assert 0.2 < np.mean([spacing <= 30 for spacing in spacings]) < 0.5
    assert several_steps(gaussian, (4,), 300).steps == made.steps


def test_finished_changes_are_matched_one_to_one() -> None:
    reports = [[(95, 364), (104, 364), (300, 364)], []]
    assert finished_score([[100, 200], [50]], reports) == Score(found=1, false=2, missed=2)
    assert Score(found=1, false=2, missed=2).f1 == pytest.approx(2 / 6)
    assert Score(0, 0, 3).f1 == 0


def test_alerts_are_matched_in_time_and_before_the_next_step() -> None:
    steps = [[100, 120]]
    assert nightly_score(steps, [[(90, 105), (118, 125)]]) == Score(2, 0, 0)
    assert nightly_score(steps, [[(100, 121)]]) == Score(1, 0, 1)
    assert nightly_score(steps, [[(100, 99), (120, 150)]]) == Score(0, 2, 2)


def test_delays_count_the_first_night_as_one_and_leave_early_alarms_out() -> None:
    reports = [[(100, 100)], [(90, 102)], [(50, 60), (100, 101)], []]
    delay = delay_of([[100]] * 4, reports)
    assert (delay.series, delay.median) == (3, 3)
    assert delay.mean == pytest.approx((1 + 3 + CENSORED) / 3)
    assert delay.timely == pytest.approx(100 * 2 / 3)
    assert math.isnan(delay_of([[100]], [[(1, 2)]]).mean)
    assert false_share([[], [(1, 2)], [], []]) == 25


def test_the_bound_is_that_of_the_issue() -> None:
    assert [round(detection.bound(size), 1) for size in (1.5, 2, 3)] == [8.7, 4.9, 2.2]
