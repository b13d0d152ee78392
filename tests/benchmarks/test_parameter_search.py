"""The numbers of the change point search: all of them count, and the search for them keeps its limits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.detection_series import KINDS, NIGHTS, SIGMA
from benchmarks.simulation.odd_noise import TUNED_ON
from benchmarks.tuning import parameter_search
from benchmarks.tuning.parameter_search import JUDGED_SHARE, choose, rewritten, watch_excess, watch_loss
from history.stats.change_points import find_changes_many, watch_many
from history.stats.change_points.parameters import (
    PARTITION,
    SEEDS,
    TABLE,
    WATCH,
    WatchParameters,
)

SEED = 31


def years(series: int) -> np.ndarray:
    """Years of many kinds of noise, half of them with steps."""
    kinds = [*KINDS.values(), *TUNED_ON.values()]
    values = np.concatenate(
        [kind(np.random.default_rng((SEED, number)), (series, NIGHTS)) for number, kind in enumerate(kinds)]
    )
    for night, size in ((90, 1.5), (150, -2.0), (220, 3.0), (300, 1.3)):
        values[::2, night:] += SIGMA * size
    return values


@pytest.mark.deep("the numbers of the watch are each of use, which only many simulated series show")
def test_no_number_of_the_watch_is_idle() -> None:
    values = years(6)
    usual = watch_many(values, JUDGED_SHARE)
    for name, value in vars(WATCH).items():
        found = (
            watch_many(values, JUDGED_SHARE, parameters=replace(WATCH, **{name: other}))
            for other in others_of(value)
        )
        assert any(changes != usual for changes in found), name


def others_of(value: Any) -> list[Any]:
    if isinstance(value, Sequence):
        return [[4 * element for element in value]]
    return [type(value)(0.25 * value), 4 * value]


def test_no_number_of_finished_series_is_idle() -> None:
    values = years(6)
    usual = find_changes_many(values)
    for name, value in vars(PARTITION).items():
        found = (find_changes_many(values, replace(PARTITION, **{name: other})) for other in others_of(value))
        assert any(changes != usual for changes in found), name


def test_nothing_is_chosen_on_the_series_of_a_test() -> None:
    assert len(set(SEEDS.values())) == len(SEEDS)
    assert min(SEEDS.values()) > len(KINDS) + len(TUNED_ON), "the part own begins with the kind"


def test_the_search_goes_to_the_least_loss_within_the_limits() -> None:
    def loss(tried: WatchParameters) -> float:
        return abs(tried.threshold - 7.0) + abs(tried.lag - 15) + abs(tried.handicaps[1] - 0.5)

    def excess(tried: WatchParameters) -> float:
        return max(8.0 - tried.threshold, 0.0)

    found = choose(WATCH, loss, excess)
    assert 8.0 <= found.threshold < 8.2
    assert found.lag == 15
    assert found.handicaps[1] == pytest.approx(0.5, abs=0.02)
    unchanged = {
        name: value for name, value in vars(WATCH).items() if name not in ("threshold", "lag", "handicaps")
    }
    assert unchanged.items() <= vars(found).items()


def test_a_table_beyond_its_limits_comes_back_to_them_first() -> None:
    found = choose(PARTITION, lambda tried: tried.required, lambda tried: max(4.0 - tried.required, 0.0))
    assert 4.0 <= found.required < 4.2


def test_a_gain_that_may_be_chance_changes_nothing() -> None:
    slight = 0.01 * parameter_search.MIN_GAIN
    assert choose(PARTITION, lambda tried: slight * tried.required, lambda _: 0.0) == PARTITION


def test_the_table_keeps_its_comments() -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert rewritten(rewritten(text, WATCH), PARTITION) == text
    lines = rewritten(text, replace(WATCH, lag=13)).splitlines()
    assert [line for line in lines if line not in text.splitlines()] == ["lag = 13"]


@pytest.mark.deep("the numbers of the watch are each of use, which only many simulated series show")
def test_a_lower_threshold_is_sooner_and_has_more_false_changes() -> None:
    low = replace(WATCH, threshold=6.0)
    assert watch_loss(low, series=20) < watch_loss(WATCH, series=20)
    assert watch_excess(low, series=100) > max(watch_excess(WATCH, series=100), 1.0)
