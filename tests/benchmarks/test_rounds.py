"""Simulated rounds: their scale, what makes each kind what it is, and the recorded ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.rounds import (
    DEVIATION,
    NEIGHBOURS,
    SYNTHETIC,
    autocorrelated,
    drifting,
    heavy_tailed,
    load_recording,
    resampled,
    stalling,
)

SHAPE = (2000, 10, 20)


def neighbours(rounds: Any) -> float:
    return float((rounds[..., 1:] * rounds[..., :-1]).mean() / (rounds**2).mean())


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_scale_and_centre(kind: str) -> None:
    rounds = SYNTHETIC[kind](np.random.default_rng(1), SHAPE)
    usual = rounds[np.abs(rounds) < 8 * DEVIATION] if "stall" in kind else rounds
    # Heavy tails lose what is taken for a stall here.
    assert usual.std() == pytest.approx(DEVIATION, rel=0.12 if "t3," in kind else 0.06)
    assert abs(usual.mean()) < DEVIATION / 100


def test_what_makes_each_kind() -> None:
    rng = np.random.default_rng(2)
    assert neighbours(autocorrelated(rng, SHAPE)) == pytest.approx(NEIGHBOURS, abs=0.01)
    assert neighbours(drifting(rng, SHAPE)) > -0.1
    tails = np.mean(np.abs(heavy_tailed(rng, SHAPE)) > 4 * DEVIATION)
    assert tails > 0.004
    stalled = stalling(rng, SHAPE)
    assert np.mean(np.abs(stalled) > 0.15) == pytest.approx(0.02, abs=0.001)
    assert np.mean(stalled > 0.15) == pytest.approx(np.mean(stalled < -0.15), abs=0.001)
    assert np.mean(SYNTHETIC["contender stalls"](rng, SHAPE) > 0.15) == 0


def write(path: Path, steps: object) -> Path:
    path.write_text(json.dumps({"machine": "vm, 2 cores", "recorded": "2026-11-21", "steps": steps}))
    return path


def test_recorded_rounds_are_resampled_in_blocks(tmp_path: Path) -> None:
    """A record that swings slowly keeps doing so, centred and scaled; steps are taken in turns."""
    swinging = [0.3 + 0.1 * np.sin(i / 3) for i in range(40)]
    other = [0.001 * (-1) ** i for i in range(30)]
    recording = load_recording(
        write(tmp_path / "noise.json", {"insert": swinging, "delete": other, "few": [1]})
    )
    assert recording is not None
    assert (recording.machine, recording.recorded, len(recording.steps)) == ("vm, 2 cores", "2026-11-21", 2)
    rounds = resampled(recording)(np.random.default_rng(3), (2000, 3, 20))
    for step in range(3):
        assert rounds[:, step].std() == pytest.approx(DEVIATION, rel=0.03)
        assert abs(rounds[:, step].mean()) < DEVIATION / 30
    # Of a block's rounds three in four are followed by their own neighbour.
    assert neighbours(rounds[:, 0]) == pytest.approx(0.75 * np.cos(1 / 3), abs=0.08)
    assert neighbours(rounds[:, 1]) < -0.6
    assert neighbours(rounds[:, 2]) > 0.6


def test_no_recording_and_a_wrong_one(tmp_path: Path) -> None:
    assert load_recording(tmp_path / "noise.json") is None
    for steps in ({}, {"insert": [0.1, 0.2]}, {"insert": [0.1] * 20}):
        with pytest.raises(ValueError, match="no step with 6 rounds"):
            load_recording(write(tmp_path / "noise.json", steps))
    (tmp_path / "noise.json").write_text('{"steps": [1]}')
    with pytest.raises(ValueError, match="no recording"):
        load_recording(tmp_path / "noise.json")
