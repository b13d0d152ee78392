"""Nights count instructions: a step in them is a suspect at once, and a change the same night."""

import re
from pathlib import Path

import pytest

from history.changes.repository import Change
from history.open import open_store
from runners.alerting.issues.change_issues import needs_issue
from runners.alerting.issues.change_texts import body, title
from runners.nightly.confirm import ExaminedSuspicion
from runners.nightly.night_result import NightResult
from runners.nightly.report import NightReport, comparisons, report
from runners.nightly.summary import summary
from suites.metrics import INSTRUCTIONS
from tests.history.handmade import NIGHT
from tests.runners.nightly.pretended import STEPS, Lab

pytestmark = pytest.mark.deep("months of simulated nights")

MORE = {"insert": 1.049}
LITTLE = {"insert": 1.007}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path, monkeypatch)
    lab.counts = {}
    return lab


def quiet(lab: Lab, nights: int = 2) -> str:
    last = ""
    for _ in range(nights):
        last = lab.commit()
        assert lab.night().outcome == "1 of 1 version measured"
    return last


def morning(lab: Lab, night: NightResult) -> tuple[NightReport, str]:
    with open_store(lab.home.history) as store:
        found = report(lab.plan(), lab.home, store)
        return found, summary(night, found, comparisons(night, store), NIGHT)


def counted_only(examined: ExaminedSuspicion) -> bool:
    return not examined.suspicion.request.until_decided


def test_a_night_counts_each_version_and_step_once(lab: Lab) -> None:
    new = lab.commit()
    lab.night()
    assert sorted(lab.passes) == sorted(
        (version, step) for version in ("postgres@17.11", new) for step in STEPS
    )


def test_the_plan_can_leave_counting_out(lab: Lab) -> None:
    task = {"suite": "write-heavy", "profile": "smoke", "rounds": 4, "perf": False, "exact": False}
    lab.commit()
    lab.night(tasks=[task])
    assert lab.passes == []


@pytest.mark.parametrize("counts", [MORE, LITTLE], ids=["4.9 %", "0.7 %"])
def test_a_step_in_instructions_is_a_change_the_same_night(lab: Lab, counts: dict[str, float]) -> None:
    old = quiet(lab)
    lab.measured.clear()
    new = lab.commit(counts=counts)
    night = lab.night()
    assert night.outcome == "1 of 1 version measured, 1 suspicion looked into"
    (examined,) = night.examined
    assert counted_only(examined)
    assert not [names for names, _, _ in lab.measured if names == (old, new)], "counts confirm counts"
    told, text = morning(lab, night)
    (found,) = told.new
    change = found.change
    assert (change.last_before.version, change.first_after.version) == (old, new)
    (member,) = change.members
    assert (member.key.step, member.key.metric) == ("insert", INSTRUCTIONS)
    assert member.confirmed is not None
    assert member.ratio_low < counts["insert"] < member.ratio_high
    assert needs_issue(change, 0.02, {}), "its own threshold, not that of what is timed"
    shown = re.fullmatch(
        r"postgres master: insert (\d\.\d) % more instructions per query \(write-heavy\)", title([found])
    )
    assert shown is not None
    assert float(shown[1]) == pytest.approx(100 * (counts["insert"] - 1), abs=0.2)
    said = body([found])
    assert "Confirmed the same night by 4 counted passes of each" in said
    assert "confidence" not in said.partition("| box")[0]
    assert "--exact-only" in said
    assert "--metric instructions_per_op" in said
    assert "4 counted passes of each" in text


def test_the_same_again_and_the_next_night_are_quiet(lab: Lab) -> None:
    quiet(lab)
    lab.commit(counts=MORE)
    night = lab.night()
    morning(lab, night)
    assert lab.again().outcome == "nothing is new"
    lab.commit(counts=MORE)
    night = lab.night()
    assert night.outcome == "1 of 1 version measured"
    told, _ = morning(lab, night)
    assert (told.new, told.open) == ((), 1)


def test_a_pass_that_was_wrong_is_no_change(lab: Lab) -> None:
    quiet(lab)
    new = lab.commit(counts=MORE)
    assert lab.night(confirm=False).outcome == "1 of 1 version measured"
    assert lab.counts is not None
    lab.counts[new] = {}
    night = lab.again()
    assert len(night.examined) == 1
    told, _ = morning(lab, night)
    assert told.new == ()


def test_without_confirmation_the_third_night_raises_it(lab: Lab) -> None:
    old = quiet(lab, 3)
    first = lab.commit(counts=MORE)
    for _ in range(2):
        assert morning(lab, lab.night(confirm=False))[0].new == ()
        lab.commit(counts=MORE)
    night = lab.night(confirm=False)
    (found,) = morning(lab, night)[0].new
    change: Change = found.change
    assert (change.last_before.version, change.first_after.version) == (old, first)


def test_a_step_that_is_gone_is_closed_that_night(lab: Lab) -> None:
    quiet(lab)
    lab.commit(counts=MORE)
    morning(lab, lab.night())
    lab.commit(counts=MORE)
    morning(lab, lab.night())
    lab.commit()
    night = lab.night()
    (examined,) = night.examined
    assert counted_only(examined)
    told, _ = morning(lab, night)
    assert len(told.closed) == 1
    assert told.open == 0


def test_where_rounds_are_needed_they_are_counted_in_the_same_session(lab: Lab) -> None:
    quiet(lab)
    lab.commit({"insert": 0.9}, MORE)
    night = lab.night()
    (examined,) = night.examined
    assert not counted_only(examined)
    told, _ = morning(lab, night)
    (found,) = told.new
    metrics = {member.key.metric for member in found.change.members}
    assert {"qps", INSTRUCTIONS} <= metrics
    assert found.main_series.key.metric == "qps"
