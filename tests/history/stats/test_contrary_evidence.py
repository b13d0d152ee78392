"""Rounds that contradict the one ratio that an interval takes them for: what is seen, and what is not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.contrary_evidence import (
    CHANGING_ERROR,
    DRIFT_CRITICAL,
    LEAN_CRITICAL,
    LESS,
    MAX_TREND,
    MORE,
    SAME,
    Doubt,
    change_of_level,
    common_lean,
    common_trend,
    objections,
    seems_changing,
)
from history.stats.noise_model import pooled_noise

PRIOR = (0.02**2, 10.0)
ALL = frozenset({LESS, SAME, MORE})
logs = st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=20)


def rows(seed: int, steps: int, rounds: int, sd: float = 0.02) -> list[list[float]]:
    return [list(map(float, row)) for row in np.random.default_rng(seed).normal(0, sd, (steps, rounds))]


def against(rounds: list[float], **session: float) -> dict[Doubt, frozenset[int]]:
    trend, lean = session.get("trend", 0.0), session.get("lean", 0.0)
    return {
        objection.doubt: objection.against for objection in objections(rounds, rounds, PRIOR, trend, lean)
    }


def test_a_bad_block_at_the_beginning_is_seen_when_good_rounds_follow() -> None:
    block = [-0.06, -0.055, -0.07, -0.05, -0.06]
    assert not seems_changing(block, PRIOR), "nothing but the block: no method can tell it from a change"
    assert seems_changing([*block, 0.0, 0.01, -0.01, 0.0, 0.005], PRIOR)
    assert against([*block, 0.0, 0.01, -0.01, 0.0, 0.005]) == {Doubt.CHANGING: ALL}


@pytest.mark.parametrize("n", [4, 8, 20])
def test_steady_rounds_hardly_ever_seem_to_change(n: int) -> None:
    found = [seems_changing(row, PRIOR) for row in rows(n, 2000, n)]
    assert np.mean(found) <= CHANGING_ERROR + 3 * math.sqrt(CHANGING_ERROR / 2000)
    shifted = [row[: n // 2] + [log - 0.08 for log in row[n // 2 :]] for row in rows(n, 200, n)]
    assert np.mean([seems_changing(row, PRIOR) for row in shifted]) > 0.3


@given(logs, st.floats(-1, 1))
def test_a_level_is_no_change(rounds: list[float], level: float) -> None:
    """However large a ratio is, only its movement counts."""
    moved = [log + round(level, 3) for log in rounds]
    assert common_trend([moved], [PRIOR]) == pytest.approx(common_trend([rounds], [PRIOR]), abs=1e-6)
    backwards = common_trend([rounds[::-1]], [PRIOR])
    assert backwards == pytest.approx(-common_trend([rounds], [PRIOR]), abs=1e-6)
    assert seems_changing(rounds, PRIOR) == seems_changing(rounds[::-1], PRIOR)


def test_a_session_that_settles_is_seen_although_no_step_shows_it() -> None:
    settling = [
        [log - 0.05 * math.exp(-place / 6) for place, log in enumerate(row)] for row in rows(1, 10, 5)
    ]
    assert sum(seems_changing(row, PRIOR) for row in settling) <= 1
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
    (found,) = objections([*kept, -0.4, -0.5], kept, PRIOR, 0.0, 0.0)
    assert (found.doubt, found.against) == (Doubt.ONE_SIDED, frozenset({SAME, MORE}))
    (found,) = objections([*kept, 0.4, 0.5], kept, PRIOR, 0.0, 0.0)
    assert found.against == {SAME, LESS}
    assert not objections([*kept, 0.4, -0.5], kept, PRIOR, 0.0, 0.0)
    assert not objections([*kept, -0.5], kept, PRIOR, 0.0, 0.0), "one stall is chance"


def test_rounds_set_aside_that_show_the_change_too_do_not_hide_it() -> None:
    """As of MySQL against Postgres with vacuums in two blocks: -32 %, and -15 and -24 % in these."""
    kept = [-0.38, -0.38, -0.4, -0.35, -0.42, -0.39, -0.4, -0.44, -0.4, -0.36, -0.36, -0.41, -0.4]
    (found,) = objections([*kept, -0.16, -0.27], kept, PRIOR, 0.0, 0.0)
    assert (found.doubt, found.against) == (Doubt.ONE_SIDED, frozenset({SAME}))
    (found,) = objections([*kept, 0.01, -0.27], kept, PRIOR, 0.0, 0.0)
    assert found.against == {SAME, LESS}
    mirrored = [-log for log in kept]
    (found,) = objections([*mirrored, 0.16, 0.27], mirrored, PRIOR, 0.0, 0.0)
    assert found.against == {SAME}


def test_a_change_that_every_round_shows_is_beyond_doubt() -> None:
    """Its size may move, and yet it is a change; that it is none is still not certain."""
    clear = [-0.2, -0.21, -0.2, -0.19, -0.17, -0.17, -0.165, -0.17]
    assert seems_changing(clear, PRIOR) or against(clear, trend=5.0)
    assert against(clear, trend=5.0)[Doubt.DRIFTING] == {SAME}
    unclear = [-0.2, -0.21, -0.2, -0.19, -0.1, -0.1, -0.09, -0.1]
    assert against(unclear, trend=-5.0)[Doubt.DRIFTING] == ALL


def test_later_rounds_of_one_level_show_a_change_whose_size_is_in_doubt() -> None:
    """As of MariaDB against Postgres in update-inlist: more in each block, much more in the first three."""
    before = [0.365, 0.588, 0.489]
    after = [0.336, 0.182, 0.262, 0.399, 0.322, 0.285, 0.239, 0.262, 0.278, 0.372, 0.255, 0.351]
    assert change_of_level([*before, *after], PRIOR) == 3
    assert against([*before, *after]) == {Doubt.CHANGING: {SAME}}
    assert against([*before, *after[:7]]) == {Doubt.CHANGING: ALL}, "too few rounds after the change"
    assert against([*before, *after[:-1], -0.01])[Doubt.CHANGING] == ALL, "one round shows the contrary"
    assert against([*before, *[log / 2 for log in after]])[Doubt.CHANGING] == ALL, "much less than before"
    falling = [log - 0.02 * place for place, log in enumerate(after)]
    assert against([*before, *falling])[Doubt.CHANGING] == ALL, "later rounds are not of one level either"
    assert against([*before, *after], trend=3.0)[Doubt.DRIFTING] == ALL, "all steps may end elsewhere"
