"""A drift is one finding, of the judge as of a search with hindsight, and steps are no drift."""

import json
import random
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from history.changes import repository
from history.changes.report import report_changes
from history.open import open_store
from history.rendering.commands import change_search
from history.stats.change_points import find_changes, watch_many
from history.stats.courses.course import find_course
from history.stats.courses.gradual_drift import RAISED_WORSE_BY, find_drift
from runners.alerting.issues.change_issues import issue_of_changes
from runners.cli import main
from tests.history.handmade import NIGHT

pytestmark = pytest.mark.deep("records and judges months of nights")

NIGHTS, DRIFT = 220, -0.12
HEAD = "machine,suite,step,version,metric,value,when"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def nights(before: int = 0) -> list[list[str]]:
    """The rows of each night: one step drifts, another has a step down in the middle.

    The drift begins after `before` nights.
    """
    rng, found = random.Random(2), []
    for night in range(-before, NIGHTS):
        when = (NIGHT + timedelta(days=night)).strftime("%Y-%m-%d")
        rows = []
        for step, level in (
            ("insert", 1 + DRIFT * max(night, 0) / (NIGHTS - 1)),
            ("delete", 0.93 if night >= NIGHTS // 2 else 1.0),
        ):
            shared = rng.gauss(1, 0.04)
            for version, factor in (("postgres@17.11", 1.0), ("postgres@master", level)):
                value = 1000 * shared * factor * rng.gauss(1, 0.006)
                rows.append(f"box,s,{step},{version},qps,{value:.2f},{when}")
        found.append(rows)
    return found


def history(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    main(["history", *words])
    return capsys.readouterr().out


def imported(capsys: pytest.CaptureFixture[str], rows: list[list[str]]) -> None:
    Path("x.csv").write_text("\n".join([HEAD, *(row for night in rows for row in night)]) + "\n")
    history(capsys, "import", "x.csv", "--base", "postgres@17")


@pytest.mark.parametrize("judged_after", [(NIGHTS,), (90, 130, 180, NIGHTS)])
def test_a_drift_is_one_change_whenever_it_is_judged(
    judged_after: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was four steps of 2 %, each at a night that it made up."""
    rows, begin = nights(), 0
    for end in judged_after:
        imported(capsys, rows[begin:end])
        history(capsys, "judge")
        begin = end
    changes = json.loads(history(capsys, "changes", "--format", "json"))
    by_step = {change["series"][0]["step"]: change for change in changes}
    assert len(changes) == len(by_step) == 2
    drift = by_step["insert"]
    assert "gradually over 220 nights" in drift["headline"]
    (series,) = drift["series"]
    assert series["ratio_low"] < 1 + DRIFT < series["ratio_high"]
    assert "gradually" not in by_step["delete"]["headline"]
    assert history(capsys, "judge").endswith("2 series: 0 new, 0 back, 0 gone; 2 open\n")


def test_a_drift_that_begins_late_is_one_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was three to six steps, in `judge` and with hindsight alike, and its issue offered a bisect."""
    rows, begin = nights(120), 0
    for end in range(120, len(rows) + 1, 20):
        imported(capsys, rows[begin:end])
        history(capsys, "judge")
        begin = end
    by_status = {
        status: [
            change
            for change in json.loads(history(capsys, "changes", "--status", status, "--format", "json"))
            if change["series"][0]["step"] == "insert"
        ]
        for status in ("open", "closed")
    }
    (drift,) = by_status["open"]
    assert by_status["closed"] == []
    assert ", gradually over 2" in drift["headline"]
    with open_store(home / "history.db") as store, store.database.reading() as connection:
        (report,) = report_changes(connection, repository.load(connection, fingerprint=drift["fingerprint"]))
    assert not any(line.startswith("./tidemark bisect") for line in change_search(report))
    body = issue_of_changes("f", [report]).body
    assert "tidemark bisect" not in body
    assert "No bisect is offered: the series moved gradually" in body
    out = history(capsys, "change-points", "--branch", "postgres@master", "--step", "insert")
    assert "none\n1 series drifting" in out


@pytest.mark.parametrize("size", [1.5, 2.0, 3.0])
def test_a_step_is_no_drift_on_the_night_it_is_raised(size: float) -> None:
    """A line is asked for less where a step was raised, and one step still never looks like one."""
    rng = np.random.default_rng(11)
    values = 0.01 * (rng.normal(size=(20, 160)) - size * (np.arange(160) >= 110))
    raised = [
        (row, change) for row, found in zip(values, watch_many(values), strict=True) for change in found
    ]
    assert len(raised) >= 18
    for row, change in raised:
        assert change.raised is not None
        assert find_course(row[: change.raised + 1], -RAISED_WORSE_BY).drift is None


def test_a_drift_is_found_with_hindsight(capsys: pytest.CaptureFixture[str]) -> None:
    imported(capsys, nights())
    out = history(capsys, "change-points", "--branch", "postgres@master")
    assert out.count("insert qps") == 1
    assert "insert qps, postgres@master: drifts by -12." in out or "drifts by -11." in out
    assert "worse, relative to postgres@17" in out
    assert "1, in 1 of them\n1 series drifting" in out
    found = json.loads(history(capsys, "change-points", "--branch", "postgres@master", "--format", "json"))
    drifts = {series["step"]: series["drift"] for series in found}
    assert drifts["delete"] is None
    assert drifts["insert"]["ratio"] == pytest.approx(1 + DRIFT, abs=0.01)


@pytest.mark.parametrize("steps", [(), (0.5,), (0.3, 0.7)])
@pytest.mark.parametrize("size", [1.5, 3.0])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_steps_and_noise_are_no_drift(steps: tuple[float, ...], size: float, correlation: float) -> None:
    """Steps to one side, found or too small to be found."""
    rng = np.random.default_rng(7)
    for count in (60, 200):
        for _ in range(20):
            noise = rng.normal(size=count)
            for night in range(1, count):
                noise[night] = correlation * noise[night - 1] + (1 - correlation**2) ** 0.5 * noise[night]
            values = 0.01 * (noise - size * sum((np.arange(count) > at * count) * 1.0 for at in steps))
            assert find_drift(values, [change.index for change in find_changes(values)]) is None
