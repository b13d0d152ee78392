"""What was measured side by side as equal is no change, whatever the nights look like."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from history.changes import confirmation
from history.changes.confirmation import weighed
from history.changes.level_shift import Shift
from history.store.records import ChangeStatus
from tests.history.commits import Commits, commit
from tests.history.conftest import Target
from tests.history.watched import dated, every_change

pytestmark = pytest.mark.deep("records and judges months of nights")

SLOW = {"insert": 0.93}
QUIET = 60


@pytest.fixture
def commits(target: Target) -> Iterator[Commits]:
    with dated(target, Commits) as commits:
        yield commits


def slowed(commits: Commits, *same: int) -> None:
    """Insert is slower from the night after QUIET on; in nights `same` after that it is measured as equal."""
    commits.more(QUIET)
    for number in range(1, 9):
        commits.more(1, SLOW)
        if number in same:
            commits.confirm(old=QUIET - 3)


def test_a_shift_between_commits_measured_as_equal_is_not_told(commits: Commits) -> None:
    slowed(commits, 1, 2, 3)
    report = commits.judge()
    assert (report.new, report.open) == ((), ())
    (change,) = every_change(commits.store)
    assert change.status is ChangeStatus.EXPLAINED
    assert (change.reason or "").startswith("measured side by side as 1.00")
    assert commit(QUIET - 3) in (change.reason or "")
    assert not commits.judge().new


def test_an_open_change_is_explained_once_its_commits_are_measured_as_equal(commits: Commits) -> None:
    slowed(commits)
    (opened,) = commits.judge().new
    commits.confirm(old=QUIET - 3)
    assert commits.judge().open == ()
    (change,) = every_change(commits.store)
    assert (change.fingerprint, change.status) == (opened.fingerprint, ChangeStatus.EXPLAINED)


def test_the_commits_that_were_not_measured_are_left_to_it(commits: Commits) -> None:
    commits.more(10)
    commits.confirm(old=4)
    commits.more(5)
    commits.confirm(old=12)
    with commits.store.database.reading() as connection:
        early, late = (answer for answer in confirmation.load(connection) if answer.key.metric == "qps")
    shift = Shift(
        early.series_id, early.key.environment, early.key.branch, early.key.step, "qps",
        early.before, late.after, late.after, before=1.0, after=0.93, low=0.92, high=0.94, confidence=0.99,
    )  # fmt: skip
    (left,) = weighed([shift], [early, late])
    assert (left.last_before, left.first_after, left.refuted) == (early.after, late.before, "")
    possible = (max(early.low, late.low) + min(early.high, late.high)) / 2
    (kept,) = weighed([replace(shift, after=possible, low=possible, high=possible)], [early, late])
    assert (kept.last_before, kept.first_after) == (early.before, late.after)


def test_a_step_and_its_fix_are_not_refuted_by_what_was_measured_after_both(commits: Commits) -> None:
    commits.more(QUIET)
    commits.more(10, SLOW)
    (opened,) = commits.judge().new
    commits.more(8)
    commits.confirm(old=QUIET - 3)
    commits.judge()
    (change,) = every_change(commits.store)
    assert (change.fingerprint, change.status) == (opened.fingerprint, ChangeStatus.CLOSED)


def test_an_undecided_confirmation_refutes_only_what_its_interval_excludes(commits: Commits) -> None:
    slowed(commits)
    commits.confirm({"insert": 0.985}, old=QUIET - 3)
    commits.judge()
    assert [change.status for change in every_change(commits.store)] == [ChangeStatus.EXPLAINED]
