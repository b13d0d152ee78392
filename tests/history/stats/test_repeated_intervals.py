"""Intervals after every round: their algebra, and that they hold at all looks and all steps together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.output.intervals import ratio_interval, simultaneous_confidence
from history.comparison.verdict import Verdict, judge
from history.stats.estimators import Interval
from history.stats.noise_model import Noise, without_stalls
from history.stats.repeated_intervals import Design, sequential_interval, smallest_visible
from suites.metrics import Better

DESIGN = Design()
logs = st.lists(st.floats(-0.5, 0.5), min_size=DESIGN.least, max_size=DESIGN.cap)
priors = st.none() | st.builds(Noise, st.floats(1e-3, 0.1), st.floats(1, 60), st.floats(0, 0.8))


def interval_of(rounds: list[float], prior: Noise | None, design: Design = DESIGN) -> Interval:
    interval = sequential_interval(rounds, design, prior)
    assert interval is not None
    return interval


def width(interval: Interval) -> float:
    return math.log(interval.high) - math.log(interval.low)


@given(logs, priors)
def test_estimate_lies_inside(rounds: list[float], prior: Noise | None) -> None:
    interval = interval_of(rounds, prior)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.n <= len(rounds)
    if prior is None:
        assert interval.n == len(rounds)


@given(logs, priors)
def test_swapping_base_and_contender_mirrors(rounds: list[float], prior: Noise | None) -> None:
    there, back = interval_of(rounds, prior), interval_of([-log for log in rounds], prior)
    assert math.log(back.estimate) == pytest.approx(-math.log(there.estimate), abs=1e-9)
    assert math.log(back.low) == pytest.approx(-math.log(there.high), rel=1e-6, abs=1e-9)
    assert math.log(back.high) == pytest.approx(-math.log(there.low), rel=1e-6, abs=1e-9)
    assert back.n == there.n


@given(logs, priors, st.randoms(use_true_random=False))
def test_order_of_rounds_changes_the_width_alone(
    rounds: list[float], prior: Noise | None, random: object
) -> None:
    shuffled = list(rounds)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, other = interval_of(rounds, prior), interval_of(shuffled, prior)
    assert first.n == other.n
    assert math.log(first.estimate) == pytest.approx(math.log(other.estimate), abs=1e-12)
    assert width(interval_of(rounds[::-1], prior)) == pytest.approx(width(first), rel=1e-6, abs=1e-9)


def test_rounds_that_rise_all_the_time_tell_less_than_the_same_in_any_order() -> None:
    rising = [0.002 * place for place in range(20)]
    mixed = rising[::2] + rising[1::2][::-1]
    assert width(interval_of(rising, None)) > 4 * width(
        interval_of(mixed[::3] + mixed[1::3] + mixed[2::3], None)
    )


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@given(logs, priors, st.integers(1, 30), st.integers(1, 30))
def test_more_steps_are_wider(rounds: list[float], prior: Noise | None, steps: int, more: int) -> None:
    narrow = interval_of(rounds, prior, Design(steps=steps))
    assert width(interval_of(rounds, prior, Design(steps=steps + more))) >= width(narrow)


@given(logs)
def test_never_narrower_than_one_look(rounds: list[float]) -> None:
    """Looking again costs: the plain t interval of one look with the same confidence is inside."""
    confidence = simultaneous_confidence(DESIGN.confidence, DESIGN.steps)
    once = ratio_interval([1.0] * len(rounds), [math.exp(log) for log in rounds], confidence)
    assert once is not None
    again = interval_of(rounds, None)
    assert again.low <= once.low * (1 + 1e-9)
    assert min(once.high, 1e300) <= again.high * (1 + 1e-9)


@given(logs, st.floats(1e-3, 0.1), st.floats(1, 60))
def test_correlation_is_wider(rounds: list[float], sd: float, df: float) -> None:
    assert width(interval_of(rounds, Noise(sd, df, 0.3))) >= width(interval_of(rounds, Noise(sd, df)))


def test_one_look_is_the_t_interval() -> None:
    rounds = [0.01, -0.02, 0.03, 0.0]
    once = ratio_interval([1.0] * 4, [math.exp(log) for log in rounds], 0.95)
    assert once is not None
    interval = interval_of(rounds, None, Design(steps=1, least=4, cap=4, confidence=0.95))
    assert interval.low == pytest.approx(once.low, rel=1e-6)
    assert interval.high == pytest.approx(once.high, rel=1e-6)


def test_known_answer() -> None:
    """s0 = 0.02 with 6 degrees of freedom, own 0.01 with 2: s^2 = (6 * 4e-4 + 2 * 1e-4) / 8 = 3.25e-4."""
    design = Design(steps=2, least=3, cap=3, confidence=0.9)
    interval = interval_of([0.0, 0.01, 0.02], Noise(0.02, 6), design)
    margin = 2.306004135 * math.sqrt(3.25e-4 / 3)
    assert math.log(interval.low) == pytest.approx(0.01 - margin, abs=1e-8)
    assert math.log(interval.high) == pytest.approx(0.01 + margin, abs=1e-8)


def test_other_steps_never_make_a_step_quieter_than_it_is() -> None:
    """Ten rounds that scatter five times as much as the prior says: their own variance, better known."""
    rounds = [0.1 * (-1) ** i for i in range(10)]
    design = Design()
    own = math.sqrt(np.var(rounds, ddof=1) / 10)
    assert width(interval_of(rounds, Noise(0.02, 50))) == pytest.approx(2 * design.margin(10, 59) * own)
    assert width(interval_of(rounds, Noise(0.2, 50))) > width(interval_of(rounds, Noise(0.02, 50)))


def test_equal_rounds_know_only_what_others_showed() -> None:
    """Coarse values are equal by chance: that is no certainty."""
    expected = 2 * DESIGN.margin(4, 12) * 0.02 / 2
    assert width(interval_of([-0.03] * 4, Noise(0.02, 12))) == pytest.approx(expected)
    assert width(interval_of([-0.03] * 4, Noise(0.02, 0.3))) == width(
        interval_of([-0.03] * 4, Noise(0.02, 1))
    )
    assert width(interval_of([-0.03] * 4, None)) == 0, "a count that never differs"


def test_a_stalled_round_is_left_out() -> None:
    usual = [0.01, -0.01, 0.02, -0.02]
    interval = interval_of([*usual, -0.6], Noise(0.02, 20))
    assert interval.n == 4
    assert interval.estimate == pytest.approx(1)
    assert without_stalls([*usual, -0.6], 0.02) == usual


def test_no_look_before_the_first_and_after_the_last() -> None:
    assert sequential_interval([0.0, 0.1], DESIGN, None) is None
    with pytest.raises(ValueError, match="3 to 20 rounds, not at 21"):
        sequential_interval([0.0] * 20 + [0.1], DESIGN, None)
    for wrong in ({"steps": 0}, {"least": 2}, {"least": 9, "cap": 8}):
        with pytest.raises(ValueError, match="a design needs"):
            Design(**wrong)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Design(confidence=95)


def test_three_rounds_and_a_stall_do_not_overflow() -> None:
    interval = interval_of([0.0, 0.5, -40.0], None)
    assert 0 <= interval.low < interval.estimate < interval.high < math.inf


@pytest.mark.parametrize("rounds", [5, 8, 12, 20])
def test_smallest_visible_is_flagged_four_times_in_five(rounds: int) -> None:
    """At that look, against simulated steps with exactly known noise: ± 4 deviations of 2,000."""
    noise = Noise(0.02, 60)
    effect = smallest_visible(DESIGN, noise, rounds, 0.02)
    rng = np.random.default_rng(rounds)
    flagged = 0
    for row in rng.normal(math.log1p(-effect), 0.02, (2000, rounds)):
        interval = interval_of(list(map(float, row)), noise)
        flagged += judge(interval, Better.HIGHER, 0.02) is Verdict.REGRESSION
    assert flagged / 2000 == pytest.approx(0.8, abs=0.036)


def test_smallest_visible_falls_to_just_above_the_threshold() -> None:
    noise = Noise(0.02, 20)
    visible = [smallest_visible(DESIGN, noise, n, 0.02) for n in range(3, 21)]
    assert visible == sorted(visible, reverse=True)
    assert visible[-1] > 0.02
    assert smallest_visible(DESIGN, Noise(0.02, 20, 0.4), 9, 0.02) > visible[6]
    z = 0.9674215661 * 0.02 / math.sqrt(20)
    assert visible[-1] == pytest.approx(1 - 0.98 * math.exp(-z))
