"""The nightly judge: found, told once, closed when gone, reopened when back, silent when acknowledged."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import delete

from history.changes import detector
from history.changes.acknowledgements import acknowledge
from history.changes.level_shift import Direction
from history.changes.report import report_changes
from history.store.records import ChangeStatus
from history.store.schema import change_series
from tests.history.both_stores import target as target
from tests.history.conftest import Target
from tests.history.handmade import MACHINE
from tests.history.watched import NEW, QUIET, Nights, dated, every_change, night

pytestmark = pytest.mark.deep("records and judges months of nights")


@pytest.fixture
def nights(target: Target) -> Iterator[Nights]:
    with dated(target, Nights) as nights:
        yield nights


def test_noise_is_no_change(nights: Nights) -> None:
    nights.more(QUIET + 30)
    report = nights.judge()
    assert (report.new, report.open, report.closed) == ((), (), ())
    assert report.series == 4  # queries per second and CPU of both steps


@pytest.mark.slow("the nightly promise: a regression is one change, told once")
def test_a_regression_is_one_change_told_once(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(5, 0.93)
    (change,) = nights.judge().new
    assert (change.branch, change.suite) == (NEW, "write-heavy")
    assert (change.direction, change.status) == (Direction.WORSE, ChangeStatus.OPEN)
    assert {(member.key.step, member.key.metric) for member in change.members} == {
        ("insert", "qps"),
        ("insert", "server_cpu_us_per_op"),
    }
    qps = next(member for member in change.members if member.key.metric == "qps")
    assert qps.level_before == pytest.approx(0.95, abs=0.005)
    assert qps.level_after == pytest.approx(0.95 * 0.93, abs=0.01)
    assert qps.ratio_low < 0.93 < qps.ratio_high < 1
    assert change.last_before.started_at < night(QUIET) <= change.first_after.started_at
    again = nights.judge()
    assert (again.new, again.open) == ((), (change,))
    nights.more(10, 0.93)
    later = nights.judge()
    assert not later.new
    assert [left.fingerprint for left in later.open] == [change.fingerprint]


def test_another_change_may_begin_in_the_night_of_a_stored_one(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(8, 0.93)
    (first,) = nights.judge().new
    with nights.store.database.writing() as connection:
        connection.execute(delete(change_series).where(change_series.c.change_id == first.id))
    (second,) = nights.judge().new
    assert second.last_before == first.last_before
    assert second.fingerprint != first.fingerprint


def test_fewer_false_changes_ask_for_more_evidence(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.more(QUIET)
    nights.more(5, 0.93)
    monkeypatch.setattr(detector, "FALSE_CHANGES_A_YEAR", 1e-30)
    assert not nights.judge().new
    monkeypatch.undo()
    assert nights.judge().new


def test_an_improvement_is_told_as_one(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(5, 1.08)
    (change,) = nights.judge().new
    assert change.direction is Direction.BETTER


def test_nights_that_failed_are_gaps_and_no_change(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(5, fails=True)
    nights.more(5)
    assert not nights.judge().new


def test_what_goes_away_is_closed_and_what_comes_back_is_opened_again(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(14, 0.93)
    (opened,) = nights.judge().new
    nights.more(14)
    report = nights.judge()
    assert (report.new, report.open) == ((), ())
    (closed,) = report.closed
    assert closed.fingerprint == opened.fingerprint
    assert (closed.reason or "").startswith("back at the old level since 2026-06-")
    assert not nights.judge().closed
    nights.more(14, 0.93)
    back = nights.judge()
    assert [reopened.fingerprint for reopened in back.reopened] == [opened.fingerprint]
    assert not back.new
    assert len(every_change(nights.store)) == 1


def test_what_was_acknowledged_is_never_told_again(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(8, 0.93)
    (change,) = nights.judge().new
    with nights.store.database.writing() as connection:
        acknowledge(connection, change.fingerprint, "checksums are wanted", night(60))
    for factor in (0.93, 1.0, 0.93):
        nights.more(14, factor)
        report = nights.judge()
        assert (report.new, report.open, report.reopened, report.closed) == ((), (), (), ())
    (kept,) = every_change(nights.store)
    assert (kept.status, kept.reason) == (ChangeStatus.ACKNOWLEDGED, "checksums are wanted")


def test_a_shift_with_the_machine_is_explained_and_not_told(nights: Nights) -> None:
    nights.more(QUIET)
    nights.machine = replace(MACHINE, fingerprint="beef", kernel="6.9")
    nights.more(6, 0.9, delete=0.94)
    report = nights.judge()
    assert (report.new, report.open) == ((), ())
    assert len(report.explained) == 1
    assert not nights.judge().explained
    (change,) = every_change(nights.store)
    assert (change.status, change.reason) == (
        ChangeStatus.EXPLAINED,
        "the machine changed: kernel 6.8.0-55 -> 6.9",
    )


def test_machines_that_take_turns_are_told_once(nights: Nights) -> None:
    """A shift happened at one of these changes, and which is not known."""
    nights.more(QUIET)
    for number in range(6):
        fingerprint, kernel = ("beef", "6.9") if number % 2 == 0 else (MACHINE.fingerprint, MACHINE.kernel)
        nights.machine = replace(MACHINE, fingerprint=fingerprint, kernel=kernel)
        nights.more(1, 0.9, delete=0.9)
    nights.more(6, 0.9, delete=0.9)
    (change,) = nights.judge().explained
    assert change.reason == (
        "the machine changed: kernel 6.8.0-55 -> 6.9, 2 times; "
        "the machine changed: kernel 6.9 -> 6.8.0-55, 2 times"
    )


def test_a_marker_explains_no_shift_that_the_others_beside_it_do_not_show(nights: Nights) -> None:
    nights.more(QUIET)
    nights.machine = replace(MACHINE, fingerprint="beef", kernel="6.9")
    nights.more(6, 0.9)
    (change,) = nights.judge().new
    assert {member.key.step for member in change.members} == {"insert"}


@pytest.mark.parametrize("changed", ["insert", "delete"])
def test_a_step_that_does_something_else_explains_a_shift_of_its_own_alone(
    nights: Nights, changed: str
) -> None:
    steps = {"insert": "1", "delete": "1"}
    nights.work = json.dumps({"data": "1", "steps": steps})
    nights.more(QUIET)
    nights.work = json.dumps({"data": "1", "steps": {**steps, changed: "2"}})
    nights.more(6, 0.9)
    report = nights.judge()
    if changed == "insert":
        assert not report.new
        assert [change.reason for change in report.explained] == ["what insert does changed"]
    else:
        (change,) = report.new
        assert {member.key.step for member in change.members} == {"insert"}
        with nights.store.database.reading() as connection:
            (told,) = report_changes(connection, [change])
        assert told.environment == ()


def test_a_base_release_whose_own_values_did_not_move_explains_nothing(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(6, 0.9, base="postgres@17.12")
    (change,) = nights.judge().new
    assert change.direction is Direction.WORSE


def test_a_change_that_lies_before_the_window_can_still_go_away(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.more(QUIET)
    nights.more(6, 0.93)
    (change,) = nights.judge().new
    monkeypatch.setattr(detector, "WINDOW", QUIET)
    nights.more(QUIET, 0.93)
    assert [left.fingerprint for left in nights.judge().open] == [change.fingerprint]
    nights.more(6)
    report = nights.judge()
    assert [closed.fingerprint for closed in report.closed] == [change.fingerprint]
    assert (report.new, report.open) == ((), ())
    assert not nights.judge().new


def test_boxes_that_moved_together_have_one_change(nights: Nights) -> None:
    for factor, count in ((1.0, QUIET), (0.93, 5)):
        for _ in range(count):
            for name in ("db1", "db2"):
                nights.machine = replace(MACHINE, hostname=name, fingerprint=name)
                nights.more(1, factor)
    (change,) = nights.judge().new
    assert {member.key.environment.box for member in change.members} == {"db1", "db2"}
