"""What is known of a step's noise: Smyth's moments by hand, stalls, correlation, calibrations."""

import math
from statistics import fmean, median, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.estimators import variance as sample_variance
from history.stats.noise_model import (
    MAX_CORRELATION,
    MAX_PRIOR_DF,
    MIN_VARIANCE,
    SCATTER_CAUTION,
    STALL_DEVIATIONS,
    UNCHECKED_DF,
    UNCHECKED_INFLATION,
    Noise,
    digamma,
    inverse_trigamma,
    pooled_correlation,
    pooled_noise,
    robust_deviation,
    trigamma,
    wander_of,
    without_stalls,
)
from history.stats.repeated_intervals import Design, sequential_interval

logs = st.floats(-0.1, 0.1).map(lambda value: round(value, 6))
suites = st.lists(st.lists(logs, min_size=0, max_size=8), min_size=2, max_size=6)


def normal_rounds(seed: int, sds: list[float], rounds: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [list(map(float, rng.normal(0, sd, rounds))) for sd in sds]


@given(st.floats(0.3, 1e6))
def test_trigamma_is_inverted(x: float) -> None:
    assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_ends_of_the_gamma_functions() -> None:
    assert inverse_trigamma(0.0) == math.inf
    assert trigamma(math.inf) == 0.0


def test_smyth_by_hand() -> None:
    """Three other steps of three rounds, so d = 2: digamma(1) - log(1) = -0.5772157, trigamma(1) = pi^2/6.

    Variances 1, e^4 and e^8 (in 1e-4) have e = log s^2 + 0.5772157 with mean 4 + 0.5772157 and variance 16.
    """
    spreads = [1.0, math.exp(2), math.exp(4)]
    others = [[0.01 * s * factor for factor in (-1.0, 0.0, 1.0)] for s in spreads]
    prior = pooled_noise([[0.0, 0.1], *others])[0]
    assert prior is not None
    sampling = math.pi**2 / 6
    scatter = 16 - sampling
    scatter += SCATTER_CAUTION * 16  # the standard error of a variance of three values is the variance
    uncertainty = scatter + (scatter + sampling) / 3
    assert trigamma(prior.df / 2) == pytest.approx(uncertainty, rel=1e-6)
    location = math.log(1e-4) + 4 + 0.57721566
    half = prior.df / 2
    assert math.log(prior.sd**2) == pytest.approx(location + digamma(half) - math.log(half), abs=1e-6)


def test_equal_steps_are_pooled_to_the_truth() -> None:
    """Nine others of 10 rounds: the deviation is known to a few percent, with more than twice its own."""
    priors = [pooled_noise(normal_rounds(seed, [0.02] * 10, 10))[0] for seed in range(200)]
    assert fmean(prior.sd for prior in priors if prior) == pytest.approx(0.02, rel=0.04)
    assert fmean(prior.df for prior in priors if prior) > 2 * 9


def test_unlike_steps_are_worth_few_degrees_of_freedom() -> None:
    unlike = [0.005, 0.01, 0.02, 0.04, 0.08] * 2
    prior = pooled_noise(normal_rounds(1, unlike, 20))[0]
    assert prior is not None
    assert prior.df < 6


@given(suites)
def test_a_prior_is_what_the_others_alone_come_to(rounds: list[list[float]]) -> None:
    """As the definition has it: for each step from the rounds of the others, one by one."""
    told = [logs for logs in rounds if len(logs) > 1]
    typical = median(map(robust_deviation, told)) if told else 0.0
    kept = [without_stalls(logs, typical) if len(logs) > 1 else [] for logs in rounds]
    for step, prior in enumerate(pooled_noise(rounds)):
        others = [logs for place, logs in enumerate(kept) if place != step and logs]
        varied = [logs for logs in others if sample_variance(logs) > MIN_VARIANCE]
        if not varied or 2 * len(varied) < len(others):
            assert prior is None
            continue
        halves = [(len(logs) - 1) / 2 for logs in varied]
        logarithms = [
            math.log(sample_variance(logs)) - digamma(half) + math.log(half)
            for logs, half in zip(varied, halves, strict=True)
        ]
        sampling = fmean(map(trigamma, halves))
        found = variance(logarithms) if len(varied) > 1 else sampling
        error = math.sqrt(2 / max(1, len(varied) - 1)) * max(found, sampling)
        scatter = max(0.0, found - sampling) + SCATTER_CAUTION * error
        df = min(2 * inverse_trigamma(scatter + (scatter + sampling) / len(varied)), MAX_PRIOR_DF)
        log_square = fmean(logarithms) + digamma(df / 2) - math.log(df / 2)
        assert prior is not None
        assert prior.df == pytest.approx(df)
        assert prior.sd == pytest.approx(math.exp(log_square / 2))


@given(suites)
def test_a_prior_uses_nothing_of_its_own_step_but_the_correlation(rounds: list[list[float]]) -> None:
    """With one round a step tells nothing; the others' priors are then what the first one's is."""
    changed = [[log * 3 + 0.01 for log in rounds[0]], *rounds[1:]]
    first, other = pooled_noise(rounds)[0], pooled_noise(changed)[0]
    if _has_no_outliers(rounds):
        assert (first is None) == (other is None)
    if first is not None and other is not None and _has_no_outliers(rounds):
        assert first.sd == pytest.approx(other.sd)
        assert first.df == pytest.approx(other.df)


def _has_no_outliers(rounds: list[list[float]]) -> bool:
    """Whether no round of the others is set aside, whatever deviation their rounds are held against."""
    return all(
        abs(log - median(logs)) <= STALL_DEVIATIONS * robust_deviation(logs)
        for logs in rounds[1:]
        for log in logs
    )


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@given(suites, st.randoms(use_true_random=False))
def test_order_of_steps_is_irrelevant(rounds: list[list[float]], random: object) -> None:
    order = list(range(len(rounds)))
    random.shuffle(order)  # type: ignore[attr-defined]
    straight, shuffled = pooled_noise(rounds), pooled_noise([rounds[i] for i in order])
    for place, i in enumerate(order):
        first, other = straight[i], shuffled[place]
        assert (first is None) == (other is None)
        if first is not None and other is not None:
            assert first.sd == pytest.approx(other.sd)
            assert first.df == pytest.approx(other.df)


def test_calibration_says_how_steps_differ_and_the_session_how_noisy_today_is() -> None:
    sds = [0.005, 0.01, 0.02, 0.04, 0.08] * 2
    calibrated = [Noise(sd, 30) for sd in sds]
    priors = pooled_noise(normal_rounds(2, [2 * sd for sd in sds], 30), calibrated)
    for prior, sd in zip(priors, sds, strict=True):
        assert prior is not None
        assert prior.sd == pytest.approx(2 * sd, rel=0.1)
        assert prior.df > 15


def test_a_calibration_alone_is_not_trusted() -> None:
    rounds = [0.1, 0.3, 0.1, 0.3]
    own = pooled_correlation([rounds])
    for calibrated, df, correlation in ((Noise(0.01, 30, 0.5), UNCHECKED_DF, 0.5), (Noise(0.01, 2), 2, own)):
        (prior,) = pooled_noise([rounds], [calibrated])
        assert prior is not None
        assert (prior.sd, prior.df, prior.correlation) == (0.01 * UNCHECKED_INFLATION, df, correlation)


def test_nothing_known_is_none() -> None:
    assert pooled_noise([]) == ()
    assert pooled_noise([[0.1, 0.2, 0.3]]) == (None,)
    assert pooled_noise([[0.1, 0.2], [0.0, 0.0], [0.1]])[0] is None
    with pytest.raises(ValueError, match="2 steps have rounds, but 1"):
        pooled_noise([[], []], [None])
    for sd, df, correlation in ((0.0, 1.0, 0.0), (1.0, math.inf, 0.0), (1.0, 1.0, 1.0)):
        with pytest.raises(ValueError, match="must be finite"):
            Noise(sd, df, correlation)


def test_a_stalled_round_is_set_aside_but_a_habit_is_not() -> None:
    usual = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01]
    assert without_stalls([*usual, -0.5], 0.02) == usual
    assert without_stalls([0.01, -0.4, 0.0, 0.0], 0.02) == [0.01, 0.0, 0.0]
    assert without_stalls([0.196, -0.198, -0.193], 0.02) == [0.196, -0.198, -0.193], "which one is odd?"
    often = [*usual[:3], -0.5, -0.4, -0.3]
    assert without_stalls(often, 0.02) == often
    edge = 0.02 * STALL_DEVIATIONS
    assert without_stalls([0.0] * 7 + [edge, 0.01], 0.02) == [0.0] * 7 + [edge, 0.01]
    assert without_stalls([0.0] * 7 + [edge * 1.001, 0.01], 0.02) == [0.0] * 7 + [0.01]


def test_stalls_do_not_move_the_prior() -> None:
    rounds = normal_rounds(3, [0.02] * 10, 8)
    stalled = [list(step_logs) for step_logs in rounds]
    stalled[1][2] = stalled[4][5] = -0.6
    before, after = pooled_noise(rounds)[0], pooled_noise(stalled)[0]
    assert before is not None
    assert after is not None
    assert after.sd == pytest.approx(before.sd, rel=0.1)


@pytest.mark.parametrize("n", [3, 4, 5, 8, 12])
def test_robust_deviation_is_unbiased(n: int) -> None:
    """Croux & Rousseeuw's factors hold to about 1 %."""
    samples = np.random.default_rng(n).normal(size=(20_000, n))
    assert fmean(robust_deviation(list(row)) for row in samples) == pytest.approx(1, abs=0.02)


def _correlated(seed: int, correlation: float, steps: int, rounds: int) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(steps, rounds))
    for i in range(1, rounds):
        values[:, i] = correlation * values[:, i - 1] + math.sqrt(1 - correlation**2) * values[:, i]
    return [list(map(float, row)) for row in values]


@pytest.mark.parametrize(("rounds", "least"), [(3, 0.15), (6, 0.2), (12, 0.25)])
def test_correlation_is_found(rounds: int, least: float) -> None:
    """Of 0.3 the more, the more rounds there are; of independent rounds none, but for 2,000 steps' error."""
    assert least < pooled_correlation(_correlated(5, 0.3, 2000, rounds)) < 0.31
    assert pooled_correlation(_correlated(5, 0.0, 2000, rounds)) < 0.11


@pytest.mark.parametrize("rounds", [3, 5, 20])
def test_correlation_of_a_session_is_hardly_ever_understated(rounds: int) -> None:
    """Ten steps tell little, so that the estimate is on the safe side: on average 0.3 or more of 0.3."""
    sessions = [pooled_correlation(_correlated(seed, 0.3, 10, rounds)) for seed in range(300)]
    assert 0.28 < fmean(sessions) < 0.45


def test_correlation_has_bounds() -> None:
    assert pooled_correlation([[0.0, 1.0] * 5] * 5) == 0
    assert pooled_correlation([[float(i) for i in range(10)]] * 5) <= MAX_CORRELATION
    assert pooled_correlation([[1.0, 1.0, 1.0], [1.0], []]) == 0


@pytest.mark.deep("rates of false and missed changes, which only many simulated series show")
@pytest.mark.parametrize("n", [3, 8, 20])
def test_inflation_is_the_ratio_of_true_to_apparent_variance(n: int) -> None:
    samples = np.array(_correlated(6, 0.4, 60_000, n))
    apparent = float(np.mean([variance(row) for row in samples[:20_000]])) / n
    assert Noise(1, 1, 0.4).inflation(n) == pytest.approx(samples.mean(axis=1).var() / apparent, rel=0.03)
    assert Noise(1, 1).inflation(n) == 1


def test_wander_by_hand() -> None:
    """0 to 3 less their mean sum up to -1.5, -2, -1.5, 0: 8.5 over 16 times 5 / 3, independent 15 / 96."""
    expected = 30 * (8.5 / (16 * 5 / 3) - 15 / 96 - 0.5 / math.sqrt(45))
    assert wander_of([[0.0, 1.0, 2.0, 3.0]], 0.5) == pytest.approx(expected)
    assert wander_of([[5.0, 3.0, 1.0, -1.0]], 0.5) == pytest.approx(expected), (
        "its unit and direction do not count"
    )
    assert wander_of([[0.0, 1.0] * 4], 0.0) == 0, "it returns at once"
    assert wander_of([[1.0, 1.0, 1.0], [1.0], []], 0.0) == 0


def test_wander_of_a_session_is_that_of_its_ratios() -> None:
    """Ten steps of twenty rounds whose ratios walk by half of the noise, and independent ones."""
    rng = np.random.default_rng(8)
    steady = rng.normal(size=(200, 10, 20))
    walking = steady + rng.normal(0, 0.5, steady.shape).cumsum(axis=2)
    found, none = (
        fmean(wander_of([list(map(float, row)) for row in session], 1.0) for session in sessions)
        for sessions in (walking, steady)
    )
    assert found > 8
    assert none < 1


def test_ratios_that_wander_widen_the_intervals_of_all_steps_and_most_of_all_their_own() -> None:
    still = normal_rounds(9, [0.01] * 6, 20)
    walked = [[log + 0.004 * place for place, log in enumerate(logs)] for logs in still[:5]]
    quiet, uneasy = pooled_noise(still)[5], pooled_noise([*walked, still[5]])[5]
    assert quiet is not None
    assert uneasy is not None
    assert quiet.inflation(20) < 2 < uneasy.inflation(20)
    design, alone = Design(steps=6), Noise(0.01, 60)
    widths = []
    for rounds in (still[0], walked[0]):
        interval = sequential_interval(rounds, design, alone)
        assert interval is not None
        widths.append(math.log(interval.high / interval.low))
    assert widths[1] > 4 * widths[0]
