"""A change in which some series got worse and others better is told as a trade, and by what got worse."""

import random
from datetime import timedelta
from pathlib import Path

import pytest

from history.changes.detector import judge
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

RESETS, INSERTS = tuple(f"step-{number:02}" for number in range(12)), ("insert-1", "insert-2")
NIGHTS, CHANGE, BACK = 100, 50, 75


def told(folder: Path, *, backs: bool) -> ChangeReport:
    """The change of a branch that resets 29 % slower and inserts 12 % faster, perhaps for a time."""
    rng, rows = random.Random(5), ["machine,suite,step,version,metric,value,when"]
    for night in range(NIGHTS):
        is_new = night >= CHANGE
        inserts = 1.12 if is_new and not (backs and night >= BACK) else 1.0
        for version, reset, insert in (
            ("postgres@17.11", 1.0, 1.0),
            ("postgres@master", 1.29 if is_new else 1.0, inserts),
        ):
            values = {(step, "reset_seconds"): reset for step in RESETS}
            values |= {(step, "qps"): insert for step in INSERTS}
            when = NIGHT + timedelta(days=night)
            rows += [
                f"box,s,{step},{version},{metric},{100 * value * rng.gauss(1, 0.01):.3f},{when:%Y-%m-%d}"
                for (step, metric), value in values.items()
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
