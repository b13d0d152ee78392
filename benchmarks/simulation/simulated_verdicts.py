"""The sequential procedure on simulated suites of ten steps, with noise of 2 % per round.

A suite of A/A is wrong if any of its ten steps is called a regression at any look. In the other suites, one
step is slower by 3, 5 or 10 % and the others are unchanged. Seeds are fixed.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from benchmarks.figures import Figure
from benchmarks.simulation.rounds import (
    DEVIATION,
    SYNTHETIC,
    WITHOUT_STALLS,
    Array,
    Kind,
    autocorrelated,
    load_recording,
    resampled,
)
from benchmarks.simulation.vectorised import (
    REGRESSION,
    UNCHANGED,
    Calibration,
    SimulatedOutcome,
    judged,
    run_suites,
)
from history.stats.repeated_intervals import Design

RECORDING = Path(__file__).parent / "noise.json"

THRESHOLD = 0.02
EQUAL_SUITES = 4_000
"""Suites of A/A per kind of noise: the standard error of a rate of 1 % is 0.16 %."""

SLOWED_SUITES = 1_000
SLOW_DOWNS = (0.03, 0.05, 0.10)
MIX = (0.0, *SLOW_DOWNS)
"""The effects, with equal weights, over which the number of rounds is averaged."""

MOST_FALSE = 1.0
"""Percent of the suites of A/A."""

LONG_CORRELATION = 0.5
"""Correlation of neighbouring rounds for which nothing is promised: shown without a target."""

FIXED_SUITES = 5_000
MOST_FIXED = 100


def simulated_figures() -> list[Figure]:
    """Return all figures with their targets."""
    kinds = dict(SYNTHETIC)
    recording = load_recording(RECORDING)
    if recording:
        kinds[f"recorded {recording.recorded}"] = resampled(recording)
    figures: list[Figure] = []
    for seed, (name, kind) in enumerate(kinds.items()):
        print(f"{name}: {EQUAL_SUITES} suites of A/A, {SLOWED_SUITES} of each slow-down", flush=True)
        figures += _figures_of(name, kind, seed)
    return [*figures, *_calibrated_figures(), _beyond()]


def simulate(
    kind: Kind,
    suites: int,
    seed: Sequence[int],
    slow_down: float = 0.0,
    design: Design | None = None,
    calibration: Calibration | None = None,
    scale: float = 1.0,
) -> SimulatedOutcome:
    """Simulate suites whose first step is slower by `slow_down` (a fraction), with noise times `scale`."""
    design = design or Design()
    truth = np.zeros((suites, design.steps))
    truth[:, 0] = math.log1p(-slow_down)
    noise = kind(np.random.default_rng(seed), (suites, design.steps, design.cap)) * scale
    return run_suites(noise + truth[:, :, None], design, THRESHOLD, calibration, truth)


def _figures_of(name: str, kind: Kind, seed: int) -> list[Figure]:
    equal = simulate(kind, EQUAL_SUITES, (seed, 0))
    slowed = {slow_down: simulate(kind, SLOWED_SUITES, (seed, 1), slow_down) for slow_down in SLOW_DOWNS}
    correct = [float((equal.verdict == UNCHANGED).mean())]
    correct += [float((outcome.verdict[:, 0] == REGRESSION).mean()) for outcome in slowed.values()]
    rounds = [float(equal.rounds.mean())] + [
        float(outcome.rounds[:, 0].mean()) for outcome in slowed.values()
    ]
    fixed = fixed_rounds(WITHOUT_STALLS.get(name, kind), float(np.mean(correct)))
    outcome = ", ".join(
        f"{effect:.0%}: {rate:.1%} in {mean:.1f}"
        for effect, rate, mean in zip(MIX, correct, rounds, strict=True)
    )
    return [
        false_regressions(name, equal),
        _power(name, slowed[0.05], "5 %", 12, 90),
        _power(name, slowed[0.03], "3 %", 20, 80),
        Figure(
            f"{name}: rounds / fixed design",
            float(np.mean(rounds)) / fixed,
            "",
            at_most=0.5,
            note=f"{np.mean(rounds):.1f} of {fixed}; right verdicts and rounds of {outcome}",
        ),
    ]


def false_regressions(name: str, equal: SimulatedOutcome, at_most: float | None = MOST_FALSE) -> Figure:
    """Percent of the suites of A/A with a regression in any step; of the steps in the note."""
    wrong = equal.verdict == REGRESSION
    missed = 100 * float(equal.missed.any(axis=1).mean())
    return Figure(
        f"{name}: suites with a false regression",
        100 * float(wrong.any(axis=1).mean()),
        "%",
        at_most=at_most,
        note=f"{100 * float(wrong.mean()):.3f} % of steps; an interval missed in {missed:.1f} % of suites",
    )


def _power(name: str, slowed: SimulatedOutcome, effect: str, rounds: int, at_least: float) -> Figure:
    seen = (slowed.verdict[:, 0] == REGRESSION) & (slowed.rounds[:, 0] <= rounds)
    return Figure(
        f"{name}: {effect} seen within {rounds} rounds", 100 * float(seen.mean()), "%", at_least=at_least
    )


def _calibrated_figures() -> list[Figure]:
    """Nights as noisy as the calibration, and twice as noisy; of a suite, and of one step measured alone."""
    figures = []
    for steps in (10, 1):
        design = Design(steps=steps)
        suites = EQUAL_SUITES if steps > 1 else 10 * EQUAL_SUITES
        calibration = _calibration(suites, steps)
        for scale in (1.0, 2.0):
            kind = SYNTHETIC["gaussian"]
            outcome = simulate(kind, suites, (100, steps), 0.0, design, calibration, scale)
            night = "as calibrated" if scale == 1 else "twice the calibrated noise"
            named = f"{'one step' if steps == 1 else 'ten steps'}, {night}"
            figures.append(false_regressions(named, outcome))
    return figures


def _calibration(suites: int, steps: int, rounds: int = 10) -> Calibration:
    """Noise as a calibration of `rounds` rounds would have it."""
    rng = np.random.default_rng((101, steps))
    return Calibration(
        DEVIATION * np.sqrt(rng.chisquare(rounds - 1, (suites, steps)) / (rounds - 1)), rounds - 1
    )


def _beyond() -> Figure:
    def kind(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
        return autocorrelated(rng, shape, LONG_CORRELATION)

    outcome = simulate(kind, EQUAL_SUITES, (102,))
    return false_regressions(f"beyond the promise, AR(1) of {LONG_CORRELATION}", outcome, None)


def fixed_rounds(kind: Kind, correct: float) -> int:
    """Rounds of the fixed design to compare with: the fewest that are right as often over the MIX.

    In the same noise every step gets n rounds and one look: the plain t interval of its own rounds, with
    Bonferroni's share of the same confidence for the same number of steps; widened where that noise makes it
    miss more often than its share, so that its error rate is the same. Right is `unchanged` of no change and
    `regression` of a slow-down; `correct` is the rate to reach, the mean over the effects of MIX in equal
    parts. The sequential procedure's average is over the same MIX: the rounds of a step with that effect, of
    no change those of the steps of a suite of A/A. Where rounds stall the fixed design, which has no defence,
    is spared the stalls (WITHOUT_STALLS). MOST_FIXED where even that many do not reach the rate.
    """
    shape = (FIXED_SUITES, Design().steps, MOST_FIXED)
    noise = kind(np.random.default_rng(103), shape).reshape(-1, MOST_FIXED)
    low, high = 1, MOST_FIXED
    while high - low > 1:  # the rate rises with n
        middle = (low + high) // 2
        low, high = (low, middle) if _right_of_fixed(noise[:, :middle]) >= correct else (middle, high)
    return high


def _right_of_fixed(noise: Array) -> float:
    n = noise.shape[1]
    mean, error = noise.mean(axis=1), noise.std(axis=1, ddof=1) / math.sqrt(n)
    holds = float(np.quantile(np.abs(mean) / error, 1 - Design().step_error))
    margin = max(-float(stdtrit(n - 1, Design().step_error / 2)), holds) * error
    verdicts = [judged(mean + math.log1p(-effect), margin, THRESHOLD) for effect in MIX]
    wanted = [UNCHANGED, *[REGRESSION] * len(SLOW_DOWNS)]
    return float(np.mean([(got == want).mean() for got, want in zip(verdicts, wanted, strict=True)]))
