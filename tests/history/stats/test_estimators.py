"""The interval of a ratio: its algebra, and how often it covers the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.output.intervals import ratio_interval, simultaneous_confidence
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, geometric_mean

rates = st.floats(min_value=1e-3, max_value=1e9)
pairs = st.lists(st.tuples(rates, rates), min_size=MINIMUM_REPETITIONS, max_size=12)
confidences = st.floats(min_value=0.5, max_value=0.999)
Pairs = list[tuple[float, float]]


def interval_of(pairs: Pairs, confidence: float = 0.95) -> Interval:
    interval = ratio_interval([a for a, _ in pairs], [b for _, b in pairs], confidence)
    assert interval is not None
    return interval


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


@given(pairs, confidences)
def test_estimate_lies_inside(pairs: Pairs, confidence: float) -> None:
    interval = interval_of(pairs, confidence)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.n == len(pairs)


@given(pairs, st.floats(min_value=1e-3, max_value=1e3))
def test_another_unit_changes_nothing(pairs: Pairs, factor: float) -> None:
    scaled = interval_of([(a * factor, b * factor) for a, b in pairs])
    # Wide intervals magnify the rounding of the logarithms.
    assert math.log(scaled.estimate) == pytest.approx(math.log(interval_of(pairs).estimate), abs=1e-9)
    assert math.log(scaled.high) == pytest.approx(math.log(interval_of(pairs).high), rel=1e-9, abs=1e-6)


@given(pairs)
def test_swapping_base_and_contender_inverts(pairs: Pairs) -> None:
    there, back = interval_of(pairs), interval_of([(b, a) for a, b in pairs])
    assert math.log(back.estimate) == pytest.approx(-math.log(there.estimate), abs=1e-9)
    assert math.log(back.low) == pytest.approx(-math.log(there.high), abs=1e-6)
    assert math.log(back.high) == pytest.approx(-math.log(there.low), abs=1e-6)


@given(rates, st.floats(min_value=0.01, max_value=100), st.integers(min_value=3, max_value=50))
def test_constant_data_has_no_width(base: float, ratio: float, n: int) -> None:
    interval = interval_of([(base, base * ratio)] * n)
    assert (interval.low, interval.high) == (near(ratio), near(ratio))


@given(pairs, st.randoms(use_true_random=False))
def test_order_of_pairs_is_irrelevant(pairs: Pairs, random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert interval_of(shuffled) == interval_of(pairs)


@given(pairs)
def test_more_confidence_is_never_narrower(pairs: Pairs) -> None:
    narrow, wide = interval_of(pairs, 0.8), interval_of(pairs, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_known_answer() -> None:
    """t(0.975, 2) = 4.302653 (NIST 1.3.6.7.2); logs 0.0, 0.1, 0.2 have mean 0.1 and deviation 0.1."""
    interval = interval_of([(1.0, math.exp(log)) for log in (0.0, 0.1, 0.2)])
    margin = 4.302653 * 0.1 / math.sqrt(3)
    assert math.log(interval.low) == pytest.approx(0.1 - margin, abs=1e-6)
    assert math.log(interval.high) == pytest.approx(0.1 + margin, abs=1e-6)


@pytest.mark.parametrize("count", range(MINIMUM_REPETITIONS))
def test_too_few_pairs_give_no_interval(count: int) -> None:
    assert ratio_interval([1.0] * count, [2.0] * count, 0.95) is None


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_values_without_a_logarithm_give_no_interval(bad: float) -> None:
    assert ratio_interval([1.0, 1.0, bad], [1.0, 1.0, 1.0], 0.95) is None
    assert ratio_interval([1.0, 1.0, 1.0], [1.0, 1.0, bad], 0.95) is None


def test_misuse_is_an_error() -> None:
    with pytest.raises(ValueError, match="is shorter than"):
        ratio_interval([1.0, 1.0, 1.0], [1.0], 0.95)
    for confidence in (0.0, 1.0, 95.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            ratio_interval([1.0] * 3, [1.0] * 3, confidence)


def covered(rng: np.random.Generator, confidence: float, steps: int, n: int) -> float:
    """Share of 2000 sessions in which the intervals of all steps cover the true ratio 0.9.

    Repetitions share a drift of 5 % between base and contender, which pairing has to take out.
    """
    sessions, hits = 2000, 0
    of_step = simultaneous_confidence(confidence, steps)
    for _ in range(sessions):
        drift = rng.normal(0, 0.05, (steps, n))
        base = 1000 * np.exp(drift + rng.normal(0, 0.01, (steps, n)))
        contender = 900 * np.exp(drift + rng.normal(0, 0.01, (steps, n)))
        intervals = [
            interval_of(list(zip(*two, strict=True)), of_step) for two in zip(base, contender, strict=True)
        ]
        hits += all(interval.low <= 0.9 <= interval.high for interval in intervals)
    return hits / sessions


@pytest.mark.parametrize("n", [3, 5])
def test_coverage_of_one_step(n: int) -> None:
    """Exact for normal logarithms: 95 % ± 4 binomial deviations, sqrt(.95 * .05 / 2000) = 0.49 %."""
    assert covered(np.random.default_rng(7), 0.95, steps=1, n=n) == pytest.approx(0.95, abs=0.0195)


def test_coverage_of_ten_steps_together() -> None:
    """For independent steps exactly (1 - .05/10)^10 = 95.1 %: the same four deviations around that."""
    assert covered(np.random.default_rng(7), 0.95, steps=10, n=3) == pytest.approx(0.9511, abs=0.0195)


def test_quantile_inverts_the_distribution() -> None:
    """The half-width in deviations, put into the distribution function, is the probability again."""
    interval = interval_of([(1.0, math.exp(log)) for log in (-1.0, 0.0, 1.0)], 0.995)
    quantile = math.log(interval.high) * math.sqrt(3)
    assert (1 + quantile / math.sqrt(2 + quantile**2)) / 2 == pytest.approx(0.9975, abs=1e-12)


@given(st.lists(rates, min_size=1, max_size=20))
def test_geometric_mean_lies_between(values: list[float]) -> None:
    mean = geometric_mean(values)
    assert mean is not None
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)


def test_geometric_mean_of_nothing_and_of_zero() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 0.0]) is None
