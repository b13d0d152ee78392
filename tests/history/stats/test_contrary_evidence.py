"""Rounds that contradict the one ratio that an interval takes them for: what is seen, and what is not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.contrary_evidence import (
    DRIFT_CRITICAL,
    LEAN_CRITICAL,
    LESS,
    MAX_TREND,
    MORE,
    SAME,
    Doubt,
    common_lean,
    common_trend,
    objections,
)
from history.stats.noise_model import pooled_noise

PRIOR = (0.02**2, 10.0)
ALL = frozenset({LESS, SAME, MORE})
logs = st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=20)


def rows(seed: int, steps: int, rounds: int, sd: float = 0.02) -> list[list[float]]:
    return [list(map(float, row)) for row in np.random.default_rng(seed).normal(0, sd, (steps, rounds))]


def against(rounds: list[float], **session: float) -> dict[Doubt, frozenset[int]]:
    trend, lean = session.get("trend", 0.0), session.get("lean", 0.0)
    return {objection.doubt: objection.against for objection in objections(rounds, rounds, trend, lean)}


@given(logs, st.floats(-1, 1))
def test_a_level_is_no_change(rounds: list[float], level: float) -> None:
    """However large a ratio is, only its movement counts."""
    moved = [log + round(level, 3) for log in rounds]
    assert common_trend([moved], [PRIOR]) == pytest.approx(common_trend([rounds], [PRIOR]), abs=1e-6)
    backwards = common_trend([rounds[::-1]], [PRIOR])
    assert backwards == pytest.approx(-common_trend([rounds], [PRIOR]), abs=1e-6)


def test_a_session_that_settles_is_seen() -> None:
    settling = [
        [log - 0.05 * math.exp(-place / 6) for place, log in enumerate(row)] for row in rows(1, 10, 5)
    ]
    (prior, *_) = pooled_noise(settling)
    assert prior is not None
    assert prior.trend > DRIFT_CRITICAL
    trends = [common_trend(rows(seed, 10, 5), [PRIOR] * 10) for seed in range(400)]
    assert np.mean(np.abs(trends) > DRIFT_CRITICAL) < 0.04


def test_one_step_alone_is_no_drift_of_the_session() -> None:
    steps = rows(2, 10, 10)
    before = common_trend(steps, [PRIOR] * 10)
    steps[0] = [0.2 - 0.02 * place for place in range(10)]
    assert abs(common_trend(steps, [PRIOR] * 10) - before) <= 2 * MAX_TREND / math.sqrt(10)
    assert 2 * MAX_TREND / math.sqrt(10) < DRIFT_CRITICAL
    assert common_trend([], []) == common_trend([[0.1, 0.2]], [PRIOR]) == 0


def test_slow_rounds_of_one_version_are_seen_over_a_session() -> None:
    steps = rows(3, 10, 10)
    for place, row in enumerate(steps):
        row[place % 10] -= 0.1
        row[(place + 4) % 10] -= 0.08
    lean = common_lean(steps, steps)
    assert lean > LEAN_CRITICAL
    assert common_lean([[-log for log in row] for row in steps], steps) != lean
    assert common_lean([], []) == 0
    assert against([0.03, 0.01, 0.05, 0.02], lean=lean) == {Doubt.ONE_SIDED: frozenset({MORE})}
    assert against([-0.03, -0.01, -0.05, -0.02], lean=lean)[Doubt.ONE_SIDED] == frozenset({MORE})


def test_slow_rounds_of_other_steps_do_not_hide_a_change_of_all_rounds() -> None:
    """As of update-index between MySQL and Postgres: half the throughput in every block, in one 0.59."""
    shown = [-0.75, -0.8, -0.8, -0.71, -0.7, -0.72, -0.78, -0.77, -0.77, -0.66, -0.52, -0.7]
    assert Doubt.ONE_SIDED not in against(shown, lean=-3.0)
    assert against([*shown, -0.1], lean=-3.0)[Doubt.ONE_SIDED] == {LESS}


def test_rounds_set_aside_on_one_side_allow_no_other_verdict() -> None:
    kept = [0.0, 0.004, -0.003, 0.002, 0.0, 0.001, -0.002, 0.003]
    (found,) = objections([*kept, -0.4, -0.5], kept, 0.0, 0.0)
    assert (found.doubt, found.against) == (Doubt.ONE_SIDED, frozenset({SAME, MORE}))
    (found,) = objections([*kept, 0.4, 0.5], kept, 0.0, 0.0)
    assert found.against == {SAME, LESS}
    assert not objections([*kept, 0.4, -0.5], kept, 0.0, 0.0)
    assert not objections([*kept, -0.5], kept, 0.0, 0.0), "one stall is chance"


def test_rounds_set_aside_that_show_the_change_too_do_not_hide_it() -> None:
    """As of MySQL against Postgres with vacuums in two blocks: -32 %, and -15 and -24 % in these."""
    kept = [-0.38, -0.38, -0.4, -0.35, -0.42, -0.39, -0.4, -0.44, -0.4, -0.36, -0.36, -0.41, -0.4]
    (found,) = objections([*kept, -0.16, -0.27], kept, 0.0, 0.0)
    assert (found.doubt, found.against) == (Doubt.ONE_SIDED, frozenset({SAME}))
    (found,) = objections([*kept, 0.01, -0.27], kept, 0.0, 0.0)
    assert found.against == {SAME, LESS}
    mirrored = [-log for log in kept]
    (found,) = objections([*mirrored, 0.16, 0.27], mirrored, 0.0, 0.0)
    assert found.against == {SAME}


def test_a_change_that_every_round_shows_is_beyond_doubt() -> None:
    """Its size may move, and yet it is a change; that it is none is still not certain."""
    clear = [-0.2, -0.21, -0.2, -0.19, -0.17, -0.17, -0.165, -0.17]
    assert against(clear, trend=5.0)[Doubt.DRIFTING] == {SAME}
    unclear = [-0.2, -0.21, -0.2, -0.19, -0.1, -0.1, -0.09, -0.1]
    assert against(unclear, trend=-5.0)[Doubt.DRIFTING] == ALL
