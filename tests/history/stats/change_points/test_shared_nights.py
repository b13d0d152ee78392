"""Nights on which most series moved together are told from steps, and from what a few series do."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from history.stats.change_points import shared_moves

SIGMA = 0.02


def box(seed: int, series: int = 8, nights: int = 200) -> np.ndarray:
    return SIGMA * np.random.default_rng(seed).standard_normal((series, nights))


def test_a_night_that_all_share_is_told_with_its_size() -> None:
    logs = box(1)
    logs[:, [100, 140]] -= 8 * SIGMA
    logs[1, 140] = np.nan
    moves = shared_moves(logs)
    assert np.flatnonzero(moves).tolist() == [100, 140]
    assert np.allclose(moves[[100, 140]], -8 * SIGMA, atol=1.5 * SIGMA)


def test_a_step_that_all_share_is_not_told() -> None:
    logs = box(2)
    logs[:, 100:] += 8 * SIGMA
    assert not shared_moves(logs).any()
    assert np.flatnonzero(shared_moves(logs[:, :101])).tolist() == [100]  # it may still go away


def test_where_bad_nights_are_usual_longer_runs_are_told() -> None:
    logs = box(3, nights=300)
    usual = np.random.default_rng(4).random(300) < 0.15
    usual[:20] = False
    usual[250:260] = [False, False, True, True, True, False, False, False, False, False]
    logs += 8 * SIGMA * usual
    assert np.flatnonzero(shared_moves(logs)).tolist() == np.flatnonzero(usual).tolist()


def test_what_fewer_than_half_of_the_series_do_is_not_told() -> None:
    logs = box(5)
    logs[:3, 100] += 20 * SIGMA
    assert not shared_moves(logs).any()
    assert not shared_moves(logs[:4]).any()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), bad=st.floats(0, 0.2), nights=st.integers(1, 120))
def test_what_was_told_of_a_night_is_kept_when_its_run_has_ended(seed: int, bad: float, nights: int) -> None:
    rng = np.random.default_rng(seed)
    logs = box(seed, nights=160) + 7 * SIGMA * (rng.random(160) < bad)
    logs[rng.random(logs.shape) < 0.1] = np.nan
    whole, part = shared_moves(logs), shared_moves(logs[:, :nights])
    ended = nights - 1
    while ended >= 0 and part[ended] != 0:
        ended -= 1
    assert np.array_equal(part[: max(ended, 0)], whole[: max(ended, 0)])


def test_bad_nights_do_not_hide_each_other() -> None:
    """The level and the deviation that a night is measured against are not those of bad nights."""
    bad = np.random.default_rng(6).random(300) < 0.2
    told = shared_moves(box(7, series=10, nights=300) + 4.5 * SIGMA * bad) != 0
    assert not told[~bad].any()
    assert told[60:][bad[60:]].mean() >= 0.95


def test_a_step_about_as_large_as_the_limit_is_not_told() -> None:
    """Some of its nights are nearer to the old level than the limit, and it is one step nevertheless."""
    for seed in range(5):
        logs = box(10 + seed)
        logs[:, 100:] += 3.0 * SIGMA
        assert not shared_moves(logs)[100:].any()
