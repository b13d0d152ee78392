"""Generated series are what they say, scores count as documented, and rivals are asked every night."""

import importlib.util
import math
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import detection
from benchmarks.rivals import figures, tools
from benchmarks.rivals.scores import Score, delay_of, false_share, finished_score, nightly_score
from benchmarks.rivals.tools import RivalJob, RivalsError, answers, rows_of
from benchmarks.rivals.window_means import alerts
from benchmarks.simulation.detection_series import (
    CENSORED,
    FIRST_STEP,
    KINDS,
    NIGHTS,
    OTHER_KINDS,
    SIGMA,
    WATCHED_AFTER,
    autocorrelated,
    drifting,
    gaussian,
    one_step,
    outliers_and_gaps,
    several_steps,
)

SHAPE = (400, NIGHTS)


@pytest.fixture
def rivals() -> ModuleType:
    """The rivals' program, without the rivals."""
    spec = importlib.util.spec_from_file_location("rivals_program", tools.PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["gaussian", "t3", "AR(1)", "Laplace", "AR(1) of 0.6"])
def test_noise_has_the_deviation_it_says(kind: str) -> None:
    values = (KINDS | OTHER_KINDS)[kind](np.random.default_rng(1), SHAPE)
    assert values.shape == SHAPE
    assert values.std() == pytest.approx(SIGMA, rel=0.05)


def test_kinds_are_what_they_are_called() -> None:
    rng = np.random.default_rng(2)
    values = autocorrelated(rng, SHAPE)
    assert np.mean(values[:, 1:] * values[:, :-1]) / SIGMA**2 == pytest.approx(0.4, abs=0.02)
    rise = drifting(rng, (2000, NIGHTS))
    year = np.abs(rise[:, -30:].mean(axis=1) - rise[:, :30].mean(axis=1)) / SIGMA
    assert 0.7 < np.mean(year) < 1.1
    rough = outliers_and_gaps(rng, (2000, NIGHTS))
    assert np.isnan(rough).mean() == pytest.approx(0.1, abs=0.02)
    assert np.nanmean(np.abs(rough) > 4.5 * SIGMA) == pytest.approx(0.03, abs=0.005)


def test_one_step_is_where_and_as_large_as_it_says() -> None:
    made = one_step(gaussian, (3,), 400, 2.0)
    jumps = []
    for row, (step,) in zip(made.values, made.steps, strict=True):
        assert WATCHED_AFTER <= step < NIGHTS - CENSORED
        jumps.append(abs(row[step:].mean() - row[:step].mean()))
    assert np.mean(jumps) == pytest.approx(2 * SIGMA, rel=0.05)


def test_several_steps_keep_their_distances() -> None:
    made = several_steps(gaussian, (4,), 300)
    spacings = [b - a for steps in made.steps for a, b in pairwise(steps)]
    assert min(steps[0] for steps in made.steps) >= FIRST_STEP
    assert min(spacings) >= 15
    assert max(steps[-1] for steps in made.steps) <= NIGHTS - 15
    assert 0.2 < np.mean([spacing <= 30 for spacing in spacings]) < 0.5
    assert several_steps(gaussian, (4,), 300).steps == made.steps


def test_finished_changes_are_matched_one_to_one() -> None:
    reports = [[(95, 364), (104, 364), (300, 364)], []]
    assert finished_score([[100, 200], [50]], reports) == Score(found=1, false=2, missed=2)
    assert Score(found=1, false=2, missed=2).f1 == pytest.approx(2 / 6)
    assert Score(0, 0, 3).f1 == 0


def test_alerts_are_matched_in_time_and_before_the_next_step() -> None:
    steps = [[100, 120]]
    assert nightly_score(steps, [[(90, 105), (118, 125)]]) == Score(2, 0, 0)
    assert nightly_score(steps, [[(100, 121)]]) == Score(1, 0, 1)
    assert nightly_score(steps, [[(100, 99), (120, 150)]]) == Score(0, 2, 2)


def test_delays_count_the_first_night_as_one_and_leave_early_alarms_out() -> None:
    reports = [[(100, 100)], [(90, 102)], [(50, 60), (100, 101)], []]
    delay = delay_of([[100]] * 4, reports)
    assert (delay.series, delay.median) == (3, 3)
    assert delay.mean == pytest.approx((1 + 3 + CENSORED) / 3)
    assert delay.timely == pytest.approx(100 * 2 / 3)
    assert math.isnan(delay_of([[100]], [[(1, 2)]]).mean)
    assert false_share([[], [(1, 2)], [], []]) == 25


def test_the_bound_is_that_of_the_issue() -> None:
    assert [round(detection.bound(size), 1) for size in (1.5, 2, 3)] == [8.7, 4.9, 2.2]


def test_nightly_looks_report_each_change_once(rivals: ModuleType) -> None:
    asked: list[int] = []

    def find(values: list[float], parameter: float) -> list[int]:
        asked.append(len(values))
        return [i for i, value in enumerate(values) if value > parameter]

    series: list[float | None] = [0.0] * 40
    series[20] = series[25] = series[35] = 1.0
    series[30] = None
    assert list(rivals.nightly(find, series, 0.5, 15)) == [(20, 20), (35, 35)]
    assert asked.count(30) == 1  # nobody looks after a night without a value
    assert list(rivals.nightly(find, series, 0.5, 21)) == [(35, 35)]  # 20 was known


def test_positions_count_gaps(rivals: ModuleType) -> None:
    series: list[float | None] = [None] * 3 + [0.0] * 9 + [None, 1.0]
    assert rivals.positions(lambda values, _: [len(values) - 1], series, 0.0) == [13]
    assert rivals.positions(lambda values, _: [0], series[:9], 0.0) == []


def test_answers_come_in_the_order_of_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\nprint(json.dumps([[[[job['parameter'], 0]]] for job in json.load(sys.stdin)]))\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(tools, "PROGRAM", program)
    jobs = [RivalJob("otava", number, rows_of(np.array([[1.0, np.nan]]))) for number in range(5)]
    assert jobs[0].series == [[1.0, None]]
    assert answers(Path(sys.executable), jobs) == [[[(number, 0)]] for number in range(5)]
    program.write_text("raise SystemExit('no such tool')", encoding="utf-8")
    with pytest.raises(RivalsError, match="program failed"):
        answers(Path(sys.executable), jobs)


def test_the_rivals_import_nothing_that_lies_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as our `bisect`, in place of the standard library's."""
    program = tmp_path / "program.py"
    program.write_text("import beside\n", encoding="utf-8")
    (tmp_path / "beside.py").write_text("raise SystemExit('ours')", encoding="utf-8")
    monkeypatch.setattr(tools, "PROGRAM", program)
    with pytest.raises(RivalsError, match="No module named 'beside'"):
        answers(Path(sys.executable), [RivalJob("potts", 1.0, [])])


def test_every_rival_has_a_parameter_for_every_kind(rivals: ModuleType) -> None:
    for rival in figures.RIVALS:
        assert rival.tool in rivals.TOOLS
        assert rival.finished.keys() == rival.nightly.keys() == KINDS.keys()


def test_the_requirements_are_locked_and_name_no_index() -> None:
    text = tools.REQUIREMENTS.read_text(encoding="utf-8")
    assert "apache-otava==" in text
    assert "--hash=sha256:" in text
    assert "://" not in text
    assert "index-url" not in text


def test_window_means_keep_their_share_in_gaussian_noise_alone_and_see_steps() -> None:
    rng = np.random.default_rng(4)
    quiet, correlated = gaussian(rng, (2000, NIGHTS)), autocorrelated(rng, (500, NIGHTS))
    assert np.mean(alerts(quiet, 0.0125).any(axis=1)) < 0.02
    assert np.mean(alerts(correlated, 0.0125).any(axis=1)) > 0.1
    quiet[:, 200:] += 3 * SIGMA
    quiet[:, 210] = np.nan
    found = alerts(quiet, 0.0125)
    assert np.median(found[:, 200:].argmax(axis=1)) in (2, 3, 4)
    assert not found[:, 210].any()
