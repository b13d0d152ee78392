"""A series that switches between two levels again and again is one finding of its own, and no regression."""

import json
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from history.changes import repository
from history.changes.report import report_changes
from history.open import open_store
from history.stats.change_points import find_changes
from history.stats.courses.alternation import find_alternation
from runners.alerting.issues.change_issues import issue_of_changes, needs_issue
from runners.cli import main
from tests.history.handmade import NIGHT

NIGHTS, SLOW = 190, 0.93
SWITCHES = (60, 80, 95, 125, 140, 160)
HEAD = "machine,suite,step,version,metric,value,when"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def level(night: int) -> float:
    return SLOW if sum(night >= switch for switch in SWITCHES) % 2 else 1.0


def rows(nights: range) -> list[str]:
    """One step alternates, another has a step down that stays."""
    rng, found = random.Random(nights.start), []
    for night in nights:
        when = (NIGHT + timedelta(days=night)).strftime("%Y-%m-%d")
        for step, ratio in (("insert", level(night)), ("delete", 0.94 if night >= 110 else 1.0)):
            for version, share in (("postgres@17.11", 1.0), ("postgres@master", ratio)):
                found.append(f"box,s,{step},{version},qps,{1000 * share * rng.gauss(1, 0.006):.2f},{when}")
    return found


def history(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["history", *words])
    return code, capsys.readouterr().out


def imported(capsys: pytest.CaptureFixture[str], nights: range) -> None:
    Path("x.csv").write_text("\n".join([HEAD, *rows(nights)]) + "\n")
    history(capsys, "import", "x.csv", "--base", "postgres@17")


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize("judged_after", [(NIGHTS,), (70, 90, 105, 135, 150, 167, NIGHTS)])
def test_two_levels_are_one_finding_and_no_regression(
    judged_after: Sequence[int], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each switch down opened the change again, each switch up closed it."""
    begin = 0
    for end in judged_after:
        imported(capsys, range(begin, end))
        history(capsys, "judge")
        begin = end
    _, out = history(capsys, "changes", "--status", "open", "--format", "json")
    by_step = {change["series"][0]["step"]: change for change in json.loads(out)}
    assert by_step.keys() == {"insert", "delete"}
    assert by_step["delete"]["direction"] == "worse"
    between = by_step["insert"]
    assert between["direction"] == "shift"
    assert between["headline"].startswith("insert: 6 switches between two levels ")
    _, out = history(capsys, "changes", "--status", "closed", "--format", "json")
    assert json.loads(out) == []
    assert history(capsys, "judge") == (0, "2 series: 0 new, 0 back, 0 gone; 2 open\n")
    with open_store(home / "history.db") as store, store.database.reading() as connection:
        (report,) = [
            report
            for report in report_changes(connection, repository.load(connection))
            if "switches" in report.headline
        ]
    assert not needs_issue(report.change, 0.02, ())
    issue = issue_of_changes("f", [report])
    assert "tidemark bisect" not in issue.body
    assert "No bisect is offered: the series switches between two levels" in issue.body


@pytest.mark.deep("records and judges months of nights")
def test_two_levels_are_told_with_hindsight(capsys: pytest.CaptureFixture[str]) -> None:
    imported(capsys, range(NIGHTS))
    _, out = history(capsys, "change-points", "--branch", "postgres@master")
    assert "insert qps, postgres@master: alternates between 0.9" in out or "alternates between 1 and" in out
    assert "6 switches between 20" in out
    assert "2 series of 20 or more nights: 1, in 1 of them\n1 series alternating between two levels" in out
    _, out = history(capsys, "change-points", "--branch", "postgres@master", "--format", "json")
    found = {series["step"]: series for series in json.loads(out)}
    assert (found["insert"]["changes"], found["insert"]["alternation"]["switches"]) == ([], 6)
    assert found["delete"]["alternation"] is None


def test_steps_there_and_back_once_are_no_alternation() -> None:
    """A regression, its fix, and another regression are three changes; so are steps to other levels."""
    rng = np.random.default_rng(5)
    for levels in ((1, 0.93, 1, 0.93), (1, 0.95, 0.9, 0.85, 0.8, 0.75), (1, 0.95, 1, 0.9, 1, 0.85)):
        values = np.concatenate([np.log(level) + rng.normal(0, 0.006, 30) for level in levels])
        changes = find_changes(values)
        assert len(changes) == len(levels) - 1
        assert find_alternation(changes) is None
