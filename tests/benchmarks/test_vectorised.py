"""The fast twin of the sequential procedure gives what the product gives."""

import math
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.simulation.rounds import DEVIATION, SYNTHETIC, Kind, gaussian
from benchmarks.simulation.unkind_rounds import wandering
from benchmarks.simulation.vectorised import (
    IMPROVEMENT,
    REGRESSION,
    UNCHANGED,
    UNDECIDED,
    Calibration,
    run_suites,
)
from benchmarks.simulation.vectorised import judged as judged_by_twin
from history.comparison.verdict import Verdict, as_reported, change_of, doubts_of, judge, verdict_of
from history.stats import noise_model
from history.stats.estimators import Interval
from history.stats.noise_model import Noise, pooled_noise
from history.stats.repeated_intervals import Design, sequential_interval
from suites.metrics import Better

pytestmark = pytest.mark.deep("intervals hold what they promise in hundreds of simulated sessions")

CODES = {
    Verdict.REGRESSION: REGRESSION,
    Verdict.IMPROVEMENT: IMPROVEMENT,
    Verdict.UNCHANGED: UNCHANGED,
    Verdict.INCONCLUSIVE: UNDECIDED,
}


QUANTISED: Kind = lambda rng, shape: np.round(gaussian(rng, shape) / DEVIATION) * DEVIATION  # noqa: E731
SETTLING: Kind = lambda rng, shape: gaussian(rng, shape) - 0.06 * np.exp(-np.arange(shape[2]) / 4)  # noqa: E731
LESSER: Kind = lambda rng, shape: 3 * gaussian(rng, shape) - 0.25 - 0.2 * (np.arange(shape[2]) < 3)  # noqa: E731
KINDS = {
    **SYNTHETIC,
    "quantised": QUANTISED,
    "settling": SETTLING,
    "less after three rounds": LESSER,
    "wandering": wandering(0.01),
}


def by_product(
    logs: list[list[float]], design: Design, calibrated: list[Noise] | None
) -> tuple[list[int], list[int], list[float], list[bool]]:
    """Codes, rounds, reported sizes and doubts of one suite, round by round as a session does it."""
    used, codes = [design.least] * design.steps, [UNDECIDED] * design.steps
    sizes, doubted = [0.0] * design.steps, [False] * design.steps
    for look in range(design.least, design.cap + 1):
        still = [step for step in range(design.steps) if codes[step] == UNDECIDED]
        for step in still:
            used[step] = look
        rounds = [row[:n] for row, n in zip(logs, used, strict=True)]
        priors = pooled_noise(rounds, calibrated)
        for step in still:
            interval = sequential_interval(rounds[step], design, priors[step])
            assert interval is not None
            change = change_of(interval, 0.02)
            codes[step] = CODES[verdict_of(change, Better.HIGHER)]
            sizes[step] = math.log(as_reported(interval, change, 0.02).estimate)
            doubted[step] |= bool(doubts_of(interval, 0.02))
    return codes, used, sizes, doubted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("steps", "calibrate", "least", "cap"),
    [
        (10, False, 3, 16),
        (10, True, 3, 16),
        (3, False, 3, 16),
        (1, False, 3, 16),
        (1, True, 3, 16),
        (10, False, 5, 5),
        (10, False, 14, 15),
    ],
)
def test_twin_is_the_product(kind: str, steps: int, calibrate: bool, least: int, cap: int) -> None:
    rng = np.random.default_rng(steps)
    suites, design = 6, Design(steps=steps, least=least, cap=cap)
    logs = KINDS[kind](rng, (suites, steps, design.cap)) + rng.choice(
        [0, 0, -0.03, -0.06], (suites, steps, 1)
    )
    sds = rng.uniform(0.01, 0.03, (suites, steps))
    twin = run_suites(logs, design, 0.02, Calibration(sds, 9.0) if calibrate else None)
    for suite in range(suites):
        calibrated = [Noise(float(sd), 9.0) for sd in sds[suite]] if calibrate else None
        rows = [list(map(float, row)) for row in logs[suite]]
        codes, used, sizes, doubted = by_product(rows, design, calibrated)
        assert (list(twin.verdict[suite]), list(twin.rounds[suite])) == (codes, used)
        assert list(twin.doubted[suite]) == doubted
        assert list(twin.size[suite]) == pytest.approx(sizes, abs=1e-6)


def test_twin_judges_as_the_product() -> None:
    rng = np.random.default_rng(5)
    means, margins = rng.normal(0, 0.03, 2000), rng.exponential(0.02, 2000)
    codes = judged_by_twin(means, margins, 0.02)
    assert set(codes) == set(CODES.values())
    for mean, margin, code in zip(means, margins, codes, strict=True):
        interval = Interval(math.exp(mean), math.exp(mean - margin), math.exp(mean + margin), 3)
        assert CODES[judge(interval, Better.HIGHER, 0.02)] == code


def test_missed_truth_is_counted() -> None:
    """Rounds that are all far from what is claimed to be true."""
    logs = np.random.default_rng(1).normal(-0.1, 0.01, (5, 4, 20))
    design = Design(steps=4)
    assert run_suites(logs, design, 0.02, None, 0.1).missed.all()
    assert not run_suites(logs, design, 0.02, None, -0.1).missed.any()


def missed(kind: str, design: Design, suites: int = 3000) -> float:
    """Share of the suites of A/A of which an interval misses 1 in any step at any look.

    With a threshold of 0 nothing is ever unchanged: a step is decided only when its interval misses 1.
    """
    logs = SYNTHETIC[kind](np.random.default_rng(11), (suites, design.steps, design.cap))
    return float(run_suites(logs, design, 0.0, None, 0.0).missed.any(axis=1).mean())


@pytest.mark.parametrize("confidence", [0.8, 0.98])
def test_coverage_of_ten_steps_at_all_looks(confidence: float) -> None:
    """The confidence asked for, less three binomial deviations; most of the rest is caution (decision 53)."""
    error = 1 - confidence
    found = missed("gaussian", Design(confidence=confidence))
    assert error / 8 < found <= error + 3 * math.sqrt(error * confidence / 3000)


@pytest.mark.parametrize("steps", [1, 3])
def test_coverage_of_few_steps(steps: int) -> None:
    """One step has no prior and the plain t interval, of which Pocock's approximation has to hold."""
    found = missed("gaussian", Design(steps=steps, confidence=0.9))
    assert 0.03 < found <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 3000)


@pytest.mark.parametrize("kind", ["stalls", "contender stalls", "heavy tails (t3)", "unequal steps"])
def test_coverage_in_unkind_noise(kind: str) -> None:
    assert missed(kind, Design(confidence=0.95)) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 3000) + 0.02


def test_coverage_with_correlated_rounds_needs_the_correlation() -> None:
    design = Design(confidence=0.95)
    with patch.object(noise_model, "MAX_CORRELATION", 0.0):
        assert missed("AR(1) of 0.2", design) > 0.1
    assert missed("AR(1) of 0.2", design) < 0.05
