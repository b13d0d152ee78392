"""What was confirmed in its night: a change at once, the same one for the watch, closed and opened again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.changes import confirmation, detector
from history.changes.acknowledgements import acknowledge
from history.changes.confirmation import ConfirmationRequest, Confirms
from history.changes.detector import judge
from history.changes.level_shift import Direction
from history.changes.report import report_changes
from history.changes.repository import Change
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.verdict import MetricChange
from history.open import open_store
from history.rendering.changes import changes_json, render_changes
from history.store.records import ChangeStatus, SessionStatus
from history.transfer.database_source import Selection, StoredRows
from history.transfer.merging import merge
from history.transfer.pruning import prune
from tests.history.commits import BRANCH, Commits, commit
from tests.history.conftest import Target, rows
from tests.history.handmade import MACHINE
from tests.history.watched import dated, every_change, night

SLOW = {"insert": 0.93}


@pytest.fixture
def commits(target: Target) -> Iterator[Commits]:
    with dated(target, Commits) as commits:
        yield commits


def regressed(commits: Commits, quiet: int = 3) -> Change:
    """A regression of 7 % that was confirmed the same night."""
    commits.more(quiet)
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    (change,) = commits.judge().new
    return change


def test_a_session_that_confirms_is_no_night(commits: Commits) -> None:
    commits.more(3)
    tables = {name: rows(commits.store, f"SELECT * FROM {name}") for name in ("nights", "points", "gaps")}
    session = commits.confirm(SLOW)
    assert tables == {name: rows(commits.store, f"SELECT * FROM {name}") for name in tables}
    with commits.store.database.reading() as connection:
        found = confirmation.load(connection)
    assert {(answer.key.step, answer.key.metric) for answer in found} == {
        ("insert", "qps"),
        ("insert", "server_cpu_us_per_op"),
    }
    qps = next(answer for answer in found if answer.key.metric == "qps")
    assert (qps.before.version, qps.after.version) == (commit(2), commit(3))
    assert (qps.finding, qps.rounds, qps.confidence) == (MetricChange.LESS, 8, confirmation.CONFIDENCE)
    assert qps.low < 0.93 < qps.high < 1
    assert qps.level_before == pytest.approx(1.0, abs=0.02)
    assert rows(commits.store, "SELECT DISTINCT session_id FROM confirmations") == [(session,)]


def test_it_is_a_change_the_same_night_with_the_exact_range(commits: Commits) -> None:
    change = regressed(commits)
    assert (change.direction, change.status, change.branch) == (
        Direction.WORSE,
        ChangeStatus.OPEN,
        BRANCH,
    )
    assert (change.last_before.version, change.first_after.version) == (commit(3), commit(4))
    member = next(candidate for candidate in change.members if candidate.key.metric == "qps")
    assert member.confirmed is not None
    assert member.confirmed.uid == "night-4-new"
    assert member.level_after / member.level_before == pytest.approx(member.confirmed.ratio)
    assert (member.ratio_low, member.ratio_high) == (member.confirmed.low, member.confirmed.high)
    again = commits.judge()
    assert (again.new, again.reopened, again.closed) == ((), (), ())
    assert again.open == (change,)


def test_what_is_not_confirmed_is_no_change(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, SLOW)
    commits.confirm(rounds=20)
    assert not commits.judge().new


@pytest.mark.deep("records and judges months of nights")
def test_the_watch_sees_the_same_change_and_tells_nothing_new(commits: Commits) -> None:
    change = regressed(commits, quiet=60)
    for _ in range(6):
        commits.more(5, SLOW)
        report = commits.judge()
        assert (report.new, report.reopened, report.closed) == ((), (), ())
        assert report.open == (change,)


@pytest.mark.deep("records and judges months of nights")
def test_a_change_within_the_first_nights_is_not_lost_when_the_watch_never_raises_it(
    commits: Commits,
) -> None:
    change = regressed(commits)
    commits.more(60, SLOW)
    report = commits.judge()
    assert (report.new, report.closed) == ((), ())
    assert report.open == (change,)
    commits.more(12, {"insert": 0.86})
    (further,) = commits.judge().new  # the watch knows the new level, and is not blind for a while
    assert further.last_before.started_at > change.first_after.started_at


def test_two_steps_that_moved_together_are_one_change(commits: Commits) -> None:
    commits.more(3)
    both = {"insert": 0.93, "delete": 0.95}
    commits.more(1, both)
    commits.confirm(both, steps=("insert", "delete"))
    (change,) = commits.judge().new
    assert {member.key.step for member in change.members} == {"insert", "delete"}


def test_two_confirmed_one_night_after_another_are_two(commits: Commits) -> None:
    first = regressed(commits)
    commits.more(1, {"insert": 0.88})
    commits.confirm({"insert": 0.88 / 0.93})
    (second,) = commits.judge().new
    assert second.fingerprint != first.fingerprint
    assert second.last_before == first.first_after
    assert not commits.judge().new


@pytest.mark.deep("records and judges months of nights")
def test_gone_the_same_night_and_back_again(commits: Commits) -> None:
    change = regressed(commits)
    commits.more(2, SLOW)
    commits.more(1)
    commits.confirm(old=3, question=ConfirmationRequest.GONE, change=change.fingerprint)
    report = commits.judge()
    (closed,) = report.closed
    assert (closed.fingerprint, report.open) == (change.fingerprint, ())
    assert (closed.reason or "").endswith(f"({commit(7)})")
    assert all(member.gone_confirmed is not None for member in closed.members)
    commits.more(2)
    assert not commits.judge().closed
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    back = commits.judge()
    assert [reopened.fingerprint for reopened in back.reopened] == [change.fingerprint]
    assert not back.new
    assert (back.open[0].last_before.version, back.open[0].first_after.version) == (commit(9), commit(10))
    again = commits.judge()
    assert (again.new, again.reopened, again.closed) == ((), (), ())
    assert [open_change.fingerprint for open_change in again.open] == [change.fingerprint]
    commits.more(1)
    commits.confirm(old=9, rounds=12, question=ConfirmationRequest.GONE, change=change.fingerprint)
    assert [gone.fingerprint for gone in commits.judge().closed] == [change.fingerprint]
    assert len(every_change(commits.store)) == 1


def test_an_improvement_that_is_lost_is_a_change_for_the_worse(commits: Commits) -> None:
    faster = {"insert": 1.08}
    commits.more(3)
    commits.more(1, faster)
    commits.confirm(faster)
    (improvement,) = commits.judge().new
    commits.more(2, faster)
    commits.more(1)
    commits.confirm({"insert": 1 / 1.08})
    report = commits.judge()
    assert [closed.fingerprint for closed in report.closed] == [improvement.fingerprint]
    (lost,) = report.new
    assert (lost.direction, lost.status) == (Direction.WORSE, ChangeStatus.OPEN)
    assert (lost.last_before.version, lost.first_after.version) == (commit(6), commit(7))
    commits.more(1)
    again = commits.judge()
    assert (again.new, again.reopened, again.closed) == ((), (), ())
    assert [worse.fingerprint for worse in again.open] == [lost.fingerprint]


@pytest.mark.parametrize(("left", "gone"), [(1.0, True), (0.98, True), (0.955, False), (0.93, False)])
def test_half_of_it_has_to_be_away(commits: Commits, left: float, gone: bool) -> None:
    change = regressed(commits)
    commits.more(1, {"insert": left})
    commits.confirm(
        {"insert": left}, old=3, question=ConfirmationRequest.GONE, change=change.fingerprint, rounds=20
    )
    assert bool(commits.judge().closed) is gone


def test_an_improvement_that_undoes_a_regression_closes_it(commits: Commits) -> None:
    change = regressed(commits)
    commits.more(1)
    commits.confirm({"insert": 1 / 0.93})
    report = commits.judge()
    assert [closed.fingerprint for closed in report.closed] == [change.fingerprint]
    assert not report.new


@pytest.mark.deep("records and judges months of nights")
def test_what_the_watch_raised_is_closed_the_night_it_is_gone(commits: Commits) -> None:
    commits.more(60)
    commits.more(8, SLOW)
    (change,) = commits.judge().new
    assert not any(member.confirmed for member in change.members)
    old = int(change.last_before.version.partition(":")[2], 16)
    commits.more(1)
    commits.confirm(old=old, question=ConfirmationRequest.GONE, change=change.fingerprint, rounds=16)
    assert [gone.fingerprint for gone in commits.judge().closed] == [change.fingerprint]
    for _ in range(4):
        commits.more(4)
        report = commits.judge()
        assert (report.new, report.reopened, report.closed, report.open) == ((), (), (), ())


def test_acknowledged_stays_silent(commits: Commits) -> None:
    change = regressed(commits)
    with commits.store.database.writing() as connection:
        acknowledge(connection, change.fingerprint, "wanted", night(9))
    commits.more(1)
    commits.confirm({"insert": 1 / 0.93})
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    report = commits.judge()
    assert (report.new, report.reopened, report.closed, report.open) == ((), (), (), ())
    assert [known.status for known in every_change(commits.store)] == [ChangeStatus.ACKNOWLEDGED]


def test_two_commits_side_by_side_are_not_explained_by_a_new_kernel(commits: Commits) -> None:
    commits.more(3)
    commits.machine = replace(MACHINE, fingerprint="beef", kernel="6.9")
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    (change,) = commits.judge().new
    assert change.status is ChangeStatus.OPEN


def test_a_change_that_was_confirmed_long_ago_is_remembered(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = regressed(commits)
    commits.more(2)
    commits.confirm(old=3, question=ConfirmationRequest.GONE, change=change.fingerprint)
    commits.judge()
    commits.more(1, SLOW)
    commits.confirm(SLOW)
    commits.judge()
    for window in (100, 70, 6, 3, 2):
        monkeypatch.setattr(detector, "WINDOW", window)
        report = commits.judge()
        assert (report.new, report.reopened, report.closed) == ((), (), ()), window
        assert [left.fingerprint for left in report.open] == [change.fingerprint]


def test_interrupted_and_gone_on_with(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, SLOW)
    commits.confirm(SLOW, rounds=2, status=SessionStatus.INTERRUPTED, uid="half")
    assert not commits.judge().new  # two rounds have no interval
    commits.confirm(SLOW)
    assert len(commits.judge().new) == 1


def test_nights_that_are_not_in_this_history_leave_nothing(commits: Commits) -> None:
    commits.more(3)
    commits.confirm(SLOW, old=2, uid="kept")
    with commits.store.database.reading() as connection:
        assert Confirms.of({}) is None
        assert len(confirmation.load(connection)) == 2
        assert confirmation.load(connection, [0]) == ()


@pytest.mark.deep("records and judges months of nights")
def test_it_travels_with_its_session_and_stays_when_that_is_pruned(commits: Commits, tmp_path: Path) -> None:
    change = regressed(commits)
    with commits.store.database.reading() as connection:
        found = confirmation.load(connection)
        rows_here = StoredRows(connection, "here")
        part = StoredRows(connection, "here", Selection(since=night(4)))
        with open_store(tmp_path / "whole.db") as whole, open_store(tmp_path / "part.db") as other:
            merge(whole, [rows_here])
            assert merge(whole, [rows_here]).derived == 0
            merge(other, [part])  # without the night that it was held against
            assert rows(other, "SELECT * FROM confirmations") == []
            assert prune(whole, night(99)) == 5
            with whole.database.reading() as there:
                assert [answer.ratio for answer in confirmation.load(there)] == [
                    answer.ratio for answer in found
                ]
            report = judge(whole.database)
            assert (report.new, report.closed) == ((), ())
            assert [left.fingerprint for left in report.open] == [change.fingerprint]


@pytest.mark.deep("records and judges months of nights")
def test_rounds_that_come_without_what_was_derived_of_them_get_it(commits: Commits, tmp_path: Path) -> None:
    regressed(commits)
    with commits.store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM confirmations")
    with commits.store.database.reading() as connection, open_store(tmp_path / "other.db") as other:
        merge(other, [StoredRows(connection, "here")])
        assert len(rows(other, "SELECT * FROM confirmations")) == 2


def test_what_long_mode_confirms_is_told_in_blocks(commits: Commits) -> None:
    commits.mode = "long"
    change = regressed(commits)
    with commits.store.database.reading() as connection:
        text = "\n".join(render_changes(report_changes(connection, [change])))
    assert "confirmed the same night, insert qps: 8 interleaved blocks, " in text


def test_people_read_how_it_was_confirmed(commits: Commits) -> None:
    change = regressed(commits)
    with commits.store.database.reading() as connection:
        reports = report_changes(connection, [change])
    text = "\n".join(render_changes(reports))
    assert (
        f"confirmed the same night, insert qps: 8 interleaved rounds, {commit(3)} against {commit(4)}: -"
        in text
    )
    (found,) = changes_json(reports)
    assert {series["confirmed"]["session"] for series in found["series"]} == {"night-4-new"}
    compared = compare(
        commits.store,
        parse_version(commit(3)),
        [parse_version(commit(4))],
        CompareOptions(session="night-4-new"),
    )
    assert [step.step for contender in compared.contenders for step in contender.steps] == ["insert"]
