"""Counts of rare events: the exact test against a direct sum, and how often equal builds differ."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.distributions import binomial_tail
from history.stats.event_counts import Events, chance_of_more, dispersion


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.001, 0.999, allow_nan=False, allow_infinity=False))
def test_the_tail_of_a_binomial_is_the_sum_of_its_terms(successes: int, failures: int, share: float) -> None:
    trials = successes + failures
    terms = (
        math.comb(trials, count) * share**count * (1 - share) ** (trials - count)
        for count in range(successes, trials + 1)
    )
    assert binomial_tail(successes, failures, share) == pytest.approx(sum(terms), rel=1e-9, abs=1e-300)


def events(*counts: float, exposure: float = 1000.0) -> Events:
    return Events(counts, [exposure] * len(counts))


def test_poisson_counts_of_equal_exposure_are_a_biased_coin() -> None:
    """Below the scatter that rounds always have, 12 events against none are 12 throws of one side."""
    scale = dispersion((events(4, 4, 4), events(0, 0, 0)))
    assert scale == pytest.approx(1.16)
    assert chance_of_more(events(4, 4, 4), events(0, 0, 0)) == pytest.approx(0.5 ** (12 / scale))
    assert chance_of_more(events(4, 4, 4), events(0, 0, 0), 3) == pytest.approx(0.75 ** (12 / scale))
    assert chance_of_more(events(0, 0, 0), events(4, 4, 4)) == 1


@given(st.lists(st.integers(0, 200), min_size=3, max_size=8), st.floats(0.1, 10))
def test_more_exposure_makes_a_count_less_remarkable(counts: list[int], factor: float) -> None:
    base = events(*([2] * len(counts)))
    once, more = (chance_of_more(events(*counts, exposure=1000 * size), base) for size in (1.0, 1.0 + factor))
    assert 0 <= once <= more <= 1


def test_events_that_come_together_count_as_few() -> None:
    """A hundred in one round are an accident; 33 in each of three are not."""
    none = events(0, 0, 0)
    assert chance_of_more(events(100, 0, 0), none) > 0.1
    assert chance_of_more(events(33, 33, 34), none) < 1e-5


def test_an_exposure_is_needed() -> None:
    with pytest.raises(ValueError, match="exposure"):
        chance_of_more(events(1), Events((1,), (0,)))


@pytest.mark.parametrize("rate", [0.3, 3.0, 30.0, 1000.0])
@pytest.mark.parametrize("scatter", [0.01, 0.2])
def test_equal_builds_differ_less_often_than_the_level(rate: float, scatter: float) -> None:
    """Also where the rate of each round is another, by 20 %."""
    random, level, found = np.random.default_rng(7), 0.01, 0
    for _ in range(1000):
        rates = rate * random.gamma(scatter**-2, scatter**2, size=(2, 3))
        base, contender = (events(*side) for side in random.poisson(rates).tolist())
        found += chance_of_more(contender, base) <= level
    assert found <= 1000 * level
