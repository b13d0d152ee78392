"""A change in which some series got worse and others better is told as a trade, and by what got worse."""

import random
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from history.changes.detector import judge
from history.changes.level_shift import Direction
from history.changes.report import ChangeReport, report_changes
from history.changes.repository import load
from history.open import open_store
from history.rendering.changes import render_changes
from history.store.records import ChangeStatus
from report.pages.changes import change_sentence
from report.pages.changes import headline as page_headline
from report.values.clearance import Clearance
from runners.alerting.issues.change_issues import issue_of_changes, needs_issue
from runners.alerting.issues.change_texts import title
from runners.cli import main
from tests.history.handmade import NIGHT

pytestmark = pytest.mark.deep("records and judges months of nights")

RESETS, INSERTS = tuple(f"step-{number:02}" for number in range(12)), ("insert-1", "insert-2")
NIGHTS, CHANGE, BACK = 100, 50, 75


Values = Mapping[tuple[str, str], float]
"""The value of each step and metric in a night, without its noise."""


def told(folder: Path, *, backs: bool) -> ChangeReport:
    """The change of a branch that resets 29 % slower and inserts 12 % faster, perhaps for a time."""

    def values(night: int) -> Values:
        is_new = night >= CHANGE
        inserts = 112.0 if is_new and not (backs and night >= BACK) else 100.0
        resets = {(step, "reset_seconds"): 129.0 if is_new else 100.0 for step in RESETS}
        return resets | {(step, "qps"): inserts for step in INSERTS}

    return changed(folder, values)


def changed(folder: Path, values: Callable[[int], Values]) -> ChangeReport:
    """The only change of a branch with these values by night, beside a base that stays as in the first."""
    rng, rows = random.Random(5), ["machine,suite,step,version,metric,value,when"]
    for night in range(NIGHTS):
        when = NIGHT + timedelta(days=night)
        rows += [
            f"box,s,{step},{version},{metric},{value * rng.gauss(1, 0.01):.6g},{when:%Y-%m-%d}"
            for version, of_version in (("postgres@17.11", values(0)), ("postgres@master", values(night)))
            for (step, metric), value in of_version.items()
        ]
    (folder / "x.csv").write_text("\n".join(rows) + "\n")
    history = str(folder / "h.db")
    words = ["history", "import", str(folder / "x.csv"), "--base", "postgres@17", "--history", history]
    assert main(words) == 0
    with open_store(folder / "h.db") as store:
        judge(store.database)
        with store.database.reading() as connection:
            (report,) = report_changes(connection, load(connection))
    return report


@pytest.mark.parametrize("backs", [False, True])
def test_a_trade_is_told_as_one_and_by_what_got_worse(tmp_path: Path, backs: bool) -> None:
    """Its headline named inserts alone, and when these were back it was over, resets still slow."""
    report = told(tmp_path, backs=backs)
    assert report.change.status is ChangeStatus.OPEN
    assert needs_issue(report.change, 0.02, ())
    assert report.main_series.key.metric == "reset_seconds"
    worse, better = report.headline.split("; ")
    assert worse.startswith("reset of step-")
    assert worse.endswith("% slower")
    assert " and 11 more " in worse
    assert better.startswith("insert-")
    assert better.endswith("% faster")
    assert report.headline in title([report])
    issue = issue_of_changes("f", [report])
    assert report.headline in str(issue.body)
    assert report.headline in "\n".join(render_changes([report]))
    sentence = change_sentence(report, Clearance(False, ""))
    assert page_headline(report) in sentence
    assert "A trade: " in sentence


def test_the_nights_of_a_trade_are_those_of_what_got_worse(tmp_path: Path) -> None:
    change = told(tmp_path, backs=False).change
    resets = [member for member in change.members if member.key.metric == "reset_seconds"]
    assert set(change.leading) == set(resets)
    assert change.last_before == max(
        (reset.last_before for reset in resets), key=lambda night: night.started_at
    )
    assert change.first_after == min(
        (reset.first_after for reset in resets), key=lambda night: night.started_at
    )


def test_resets_that_cost_less_and_leave_more_are_a_trade(tmp_path: Path) -> None:
    """Vacuums that marked no page as all-visible were a change for the better, as they wrote less log."""

    def values(night: int) -> Values:
        wal, unmarked = (6.0e5, 0.9) if night >= CHANGE else (8.0e5, 4e-4)
        each = {"reset_wal_bytes": wal, "reset_not_visible_share": unmarked}
        return {(step, metric): value for step in INSERTS for metric, value in each.items()}

    report = changed(tmp_path, values)
    assert report.change.direction is Direction.MIXED
    assert needs_issue(report.change, 0.02, ())
    worse, better = report.headline.split("; ")
    assert re.search(r" 2,\d\d\d times more pages not all-visible$", worse)
    assert " less WAL or redo of the reset" in better
    assert report.headline in str(issue_of_changes("f", [report]).body)
    assert "A trade: " in change_sentence(report, Clearance(False, ""))
