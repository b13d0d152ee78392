"""Steps that series of a box made together have one range of nights, which holds neighbouring steps."""

import numpy as np
import pytest

from history.stats.courses.dating import StepLevels, dated

NIGHTS, STEP, SIGMA = 90, 60, 0.015


@pytest.mark.parametrize(("first", "second"), [(0.04, 0.04), (0.03, 0.05)])
def test_two_steps_on_neighbouring_nights_are_in_the_range(first: float, second: float) -> None:
    """Each series alone says either night; some said the one, some the other."""
    rng, night = np.random.default_rng(3), np.arange(NIGHTS)
    exact = 0
    for _ in range(50):
        level = -first * (night >= STEP) - second * (night > STEP)
        logs = level + rng.normal(0, SIGMA, (6, NIGHTS))
        steps = [
            StepLevels(row, 0.0, -first - second, STEP - 1 + row % 2, STEP + row % 2) for row in range(6)
        ]
        found = dated(logs, steps, 0, NIGHTS - 1)
        assert found is not None
        assert found[0] <= STEP - 1 < STEP + 1 <= found[1]
        exact += found == (STEP - 1, STEP + 1)
    assert exact >= 45


def test_one_step_has_the_night_that_all_series_say() -> None:
    """A series that alone says another night is dated with the others."""
    rng, night = np.random.default_rng(4), np.arange(NIGHTS)
    exact = 0
    for _ in range(50):
        logs = -0.08 * (night >= STEP) + rng.normal(0, SIGMA, (6, NIGHTS))
        steps = [StepLevels(row, 0.0, -0.08, STEP - 1 - row % 2, STEP) for row in range(6)]
        found = dated(logs, steps, 0, NIGHTS - 1)
        assert found is not None
        assert found[0] <= STEP - 1 < STEP <= found[1]
        exact += found == (STEP - 1, STEP)
    assert exact >= 45


def test_too_few_nights_date_nothing() -> None:
    steps = [StepLevels(0, 0.0, -0.08, 4, 5)]
    assert dated(np.zeros((1, 7)), steps, 0, 6) is None
