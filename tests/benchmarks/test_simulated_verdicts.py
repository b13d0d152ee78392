"""The simulation behind `bench verdicts`: figures that can miss their target, and the fixed design."""

from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import verdicts
from benchmarks.output.figures import Figure
from benchmarks.simulation import simulated_verdicts
from benchmarks.simulation.rounds import gaussian, stalling
from benchmarks.simulation.simulated_verdicts import (
    false_regressions,
    fixed_rounds,
    read_otherwise,
    simulate,
)
from benchmarks.simulation.unkind_rounds import wandering
from benchmarks.simulation.vectorised import REGRESSION, UNCHANGED
from history.comparison.pairs import StepPairs
from history.stats import repeated_intervals


def test_seeds_are_fixed_and_effects_are_seen() -> None:
    first, same = simulate(gaussian, 50, (1, 2), 0.1), simulate(gaussian, 50, (1, 2), 0.1)
    assert (first.verdict == same.verdict).all()
    assert (first.verdict[:, 0] == REGRESSION).all()
    assert (first.verdict[:, 1:] == UNCHANGED).mean() > 0.4


def test_ignoring_the_looks_misses_the_target() -> None:
    """The figure can fail: with a boundary that is none, false regressions are far more than 1 %."""
    with patch.object(repeated_intervals, "power_boundary", lambda error, looks, shape: (1.96,) * len(looks)):
        figure = false_regressions("careless", simulate(gaussian, 200, (1,)))
    assert figure.value > 5
    assert not figure.met
    assert false_regressions("careful", simulate(gaussian, 200, (1,))).met


@pytest.mark.deep("rates of false verdicts, which only hundreds of simulated sessions show")
def test_a_ratio_that_wanders_is_seldom_called_and_a_steady_one_is_called_as_before() -> None:
    """Reckoned as independent, such rounds have a false regression in 14 % of sessions until decided."""
    wandered = false_regressions("wandering", simulate(wandering(0.004, 0.01), 1000, (413, 0)), 7.0)
    assert wandered.met
    slower = simulate(gaussian, 500, (0, 1), 0.03)
    assert (slower.verdict[:, 0] == REGRESSION).mean() >= 0.97
    assert false_regressions("steady", simulate(gaussian, 1000, (0, 0))).met


def test_fixed_design_needs_more_rounds_to_be_right_more_often() -> None:
    with patch.object(simulated_verdicts, "FIXED_SUITES", 500):
        few, many = fixed_rounds(gaussian, 0.8), fixed_rounds(gaussian, 0.95)
        assert 10 < few < many < 30
        assert fixed_rounds(stalling, 0.9) > many


def test_a_missed_figure_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", "simulated")
    missed = Figure("wrong", float(np.float64(2)), "%", at_most=1)
    with patch.object(verdicts, "simulated_figures", lambda: [missed]):
        assert verdicts.main() == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.deep("rates of false verdicts, which only hundreds of simulated sessions show")
def test_a_prior_from_later_rounds_would_change_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure can fail: it does when a step's last round is taken for the last of all."""
    assert read_otherwise(gaussian, 30, (1,), 0.05) == 0
    monkeypatch.setattr(StepPairs, "last_round", lambda step, metric: 20)
    assert read_otherwise(gaussian, 30, (1,), 0.05) > 0
