"""What looks changed is settled the same night, once, whatever happens on the way."""

import json
from pathlib import Path

import pytest

from history.changes.report import ChangeReport
from history.changes.repository import Change
from history.open import open_store
from history.store.records import SessionStatus
from runners.measuring import session as session_module
from runners.measuring.request import Request
from runners.nightly.heartbeat import Heart, read
from runners.nightly.night_result import NightResult
from runners.nightly.report import NightReport, comparisons, report
from runners.nightly.summary import summary
from tests.history.conftest import rows
from tests.history.handmade import NIGHT
from tests.runners.nightly.pretended import BASE, BRANCH, STEPS, Lab

pytestmark = pytest.mark.deep("months of simulated nights")

SLOW = {"insert": 0.92}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


def quiet(lab: Lab, nights: int = 2) -> str:
    """So many nights without a change; the last version."""
    last = ""
    for _ in range(nights):
        last = lab.commit()
        night = lab.night()
        assert night.outcome == "1 of 1 version measured"
    lab.measured.clear()
    return last


def confirming(lab: Lab, old: str, new: str) -> list[tuple[str, int]]:
    return [(step, number) for names, step, number in lab.measured if names == (old, new)]


def morning(lab: Lab, night: NightResult | None = None) -> tuple[NightReport, str]:
    with open_store(lab.home.history) as store:
        found = report(lab.plan(), lab.home, store)
        compared = comparisons(night, store) if night else []
        return found, summary(night, found, compared, NIGHT)


def only(reports: tuple[ChangeReport, ...]) -> Change:
    (report_,) = reports
    return report_.change


def test_a_regression_is_a_change_the_same_night(lab: Lab) -> None:
    old = quiet(lab)
    new = lab.commit(SLOW)
    night = lab.night()
    assert night.outcome == "1 of 1 version measured, 1 suspicion looked into"
    assert {step for step, _ in confirming(lab, old, new)} == {"insert"}
    told, text = morning(lab, night)
    change = only(told.new)
    assert (change.last_before.version, change.first_after.version) == (old, new)
    assert {series.key.step for series in change.members} == {"insert"}
    member = next(series for series in change.members if series.key.metric == "qps")
    assert member.confirmed is not None
    assert member.confirmed.rounds == len(confirming(lab, old, new))
    assert member.ratio_low < 0.92 < member.ratio_high < 1
    assert f"confirmed the same night: {member.confirmed.rounds} interleaved rounds, {old} against {new}" in (
        text.replace("\\", "")
    )
    assert "insert qps: " in text
    assert "rounds: confirmed: regression" in text


def test_the_same_night_again_does_nothing(lab: Lab) -> None:
    quiet(lab)
    lab.commit(SLOW)
    lab.night()
    morning(lab)
    count = len(lab.measured)
    assert lab.again().outcome == "nothing is new"
    told, _ = morning(lab)
    assert (told.new, told.reopened, told.closed) == ((), (), ())
    assert told.open == 1
    lab.commit(SLOW)  # the level is the new one
    assert lab.night().outcome == "1 of 1 version measured"
    assert len(lab.measured) == count + 4 * len(STEPS)


def test_what_is_no_change_is_told_as_none_and_not_looked_into_again(lab: Lab) -> None:
    old = quiet(lab)
    new = lab.commit(SLOW)
    lab.speeds[new] = SLOW
    real, lab.before_round = lab.before_round, lambda count: None

    def only_in_the_night(count: int) -> None:
        if count >= 4 * len(STEPS):
            lab.speeds[new] = {}

    lab.before_round = only_in_the_night
    night = lab.night()
    lab.before_round = real
    assert night.outcome == "1 of 1 version measured, 1 suspicion looked into"
    assert len(confirming(lab, old, new)) >= 3
    told, text = morning(lab, night)
    assert not told.new
    assert "insert qps: " in text
    assert "confirmed: regression" not in text
    assert lab.again().outcome == "nothing is new"


def test_a_change_that_is_gone_is_closed_that_night(lab: Lab) -> None:
    before = quiet(lab)
    lab.commit(SLOW)
    lab.night()
    opened = only(morning(lab)[0].new)
    lab.commit(SLOW)
    lab.night()
    new = lab.commit()
    night = lab.night()
    assert night.outcome == "1 of 1 version measured, 1 suspicion looked into"
    assert confirming(lab, before, new)
    told, text = morning(lab, night)
    assert only(told.closed).fingerprint == opened.fingerprint
    assert "is the change gone in insert" in text
    assert ": gone" in text
    assert not told.open
    assert lab.again().outcome == "nothing is new"
    lab.commit(SLOW)
    lab.night()
    assert only(morning(lab)[0].reopened).fingerprint == opened.fingerprint


@pytest.mark.parametrize("after", [5, 12, 13, 15])
def test_killed_anywhere_it_goes_on(lab: Lab, after: int) -> None:
    """Rounds 0 to 11 are the night's, those behind them confirm."""
    old = quiet(lab)
    new = lab.commit(SLOW)
    lab.day += 1
    lab.killed(after)
    with open_store(lab.home.history) as store:
        runs = rows(store, "SELECT id, version, step, repetition FROM runs ORDER BY id")
    night = lab.again()
    assert night.examined
    with open_store(lab.home.history) as store:
        later = rows(store, "SELECT id, version, step, repetition FROM runs ORDER BY id")
        statuses = rows(store, "SELECT status FROM sessions")
        options = [json.loads(text) for (text,) in rows(store, "SELECT options FROM sessions")]
    assert later[: len(runs)] == runs  # nothing lost
    assert set(statuses) == {(SessionStatus.FINISHED,)}
    assert sum("confirms" in option for option in options) == 1
    told, _ = morning(lab)
    change = only(told.new)
    assert (change.last_before.version, change.first_after.version) == (old, new)
    assert lab.again().outcome == "nothing is new"


def test_without_time_it_is_left_to_the_next_call(lab: Lab) -> None:
    quiet(lab)
    lab.commit(SLOW)
    lab.minutes_a_round = 10.0  # the session takes 120 of 100 minutes
    night = lab.night()
    assert night.outcome == "1 of 1 version measured, 1 suspicion skipped: time budget exhausted"
    with open_store(lab.home.history) as store:
        text = summary(night, None, comparisons(night, store), NIGHT)
    assert "- skipped: time budget exhausted: " + BRANCH in text
    assert lab.again().outcome == "1 suspicion looked into"
    assert lab.again().outcome == "nothing is new"


def test_it_ends_with_its_minutes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    real = "runners.nightly.night.run_session"
    from runners.measuring.session import run_session

    def spied(request: object, *rest: object) -> object:
        asked.append(request.budget_seconds)  # type: ignore[attr-defined]
        return run_session(request, *rest)  # type: ignore[arg-type]

    quiet(lab)
    lab.commit(SLOW)
    monkeypatch.setattr(real, spied)
    lab.night(box={"confirm_minutes": 7.0})
    morning(lab)
    lab.commit({"insert": 0.8})
    lab.minutes, lab.minutes_a_round = 0.0, 8.0  # 96 of 100 minutes are over then
    lab.night()
    assert asked == [None, 7 * 60, None, pytest.approx(4 * 60)]


def test_a_plan_confirms_over_layouts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def linked(request: Request, *_: object) -> dict[str, object]:
        asked.append(request)
        return {}

    monkeypatch.setattr(session_module, "link_layouts", linked)
    task = lab.plan().tasks[0].model_dump(exclude_defaults=True, mode="json")
    quiet(lab)
    old, new = list(lab.speeds)[-1], lab.commit(SLOW)
    lab.night(tasks=[task | {"confirm_layouts": 6}])
    assert [request.layouts for request in asked[-2:]] == [0, 6]
    assert asked[-1].confirms is not None
    assert len(confirming(lab, old, new)) >= 6, "each layout gets a round"
    told, _ = morning(lab)
    assert only(told.new).first_after.version == new


def test_a_plan_that_does_not_want_it(lab: Lab) -> None:
    quiet(lab)
    lab.commit(SLOW)
    assert lab.night(confirm=False).outcome == "1 of 1 version measured"


def test_an_old_commit_that_no_longer_compiles_leaves_it_to_the_watch(lab: Lab) -> None:
    old = quiet(lab)
    lab.commit(SLOW)
    lab.unbuildable.add(old)
    night = lab.night()
    assert night.outcome == "1 of 1 version measured, 1 suspicion looked into"
    assert night.problems == []
    told, text = morning(lab, night)
    assert not told.new
    assert "could not be built, so that only later nights can show it: does not compile" in text
    assert not night.has_failed


def test_what_the_network_kept_from_being_confirmed_is_confirmed_the_next_night(lab: Lab) -> None:
    old = quiet(lab)
    new = lab.commit(SLOW)
    lab.unavailable.add(old)
    night = lab.night()
    assert night.has_failed
    told, text = morning(lab, night)
    assert not told.new
    assert "could not be built, so that the next night tries again: no source has it" in text
    assert not confirming(lab, old, new)
    lab.unavailable.clear()
    assert lab.night().outcome == "1 suspicion looked into"
    assert {step for step, _ in confirming(lab, old, new)} == {"insert"}
    assert only(morning(lab)[0].new).direction == "worse"


def test_releases_are_not_held_against_each_other(lab: Lab) -> None:
    quiet(lab)
    lab.speeds["postgres@18.6"] = {"insert": 0.7}
    tracked = {"base": BASE, "branches": ["master"], "releases": ["18.6"], "git": str(lab.source)}
    assert lab.night(engines={"postgres": tracked}).outcome == "1 of 1 version measured"


def test_the_heartbeat_says_that_it_confirms(lab: Lab, tmp_path: Path) -> None:
    quiet(lab)
    lab.commit(SLOW)
    seen: list[str] = []
    path = tmp_path / "heartbeat.json"

    def look(count: int) -> None:
        beat = read(path)
        assert beat is not None
        seen.append(beat.what)

    lab.progress, lab.before_round = Heart(path, "db1", lab.progress), look  # type: ignore[assignment]
    lab.night()
    assert seen[0] == "round 1: update-index (3 steps open)"
    assert seen[12] == f"confirming {BRANCH}: round 1: insert (1 step open)"
