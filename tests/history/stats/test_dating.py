"""Steps that series of a box made together have one range of nights, which holds neighbouring steps."""

import numpy as np
import pytest

from history.changes.courses import StepLevels, dated

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
        assert found.first <= STEP - 1 < STEP + 1 <= found.last
        exact += (found.first, found.last) == (STEP - 1, STEP + 1)
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
        assert found.first <= STEP - 1 < STEP <= found.last
        exact += (found.first, found.last, len(found.steps)) == (STEP - 1, STEP, 6)
    assert exact >= 45


def test_a_step_that_is_certainly_later_has_its_own_date() -> None:
    """A commit of the next night, in a series that hardly scatters."""
    logs = np.random.default_rng(5).normal(0, SIGMA, (21, NIGHTS))
    logs[:20, STEP:] -= 0.06
    logs[20, STEP + 1 :] -= 0.06
    steps = [StepLevels(row, 0.0, -0.06, STEP - 1 + row // 20, STEP + row // 20) for row in range(21)]
    found = dated(logs, steps, 0, NIGHTS - 1)
    assert found is not None
    assert (found.first, found.last, found.steps) == (STEP - 1, STEP, tuple(steps[:20]))


def test_too_few_nights_date_nothing() -> None:
    steps = [StepLevels(0, 0.0, -0.08, 4, 5)]
    assert dated(np.zeros((1, 7)), steps, 0, 6) is None
