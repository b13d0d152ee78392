"""Changes of several boxes, which measure the same commits at other hours."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import delete, insert, select, update

from history.changes.repository import Change
from history.store.schema import change_series, changes
from tests.history.commits import Commits, commit
from tests.history.conftest import Target
from tests.history.handmade import MACHINE
from tests.history.watched import dated, every_change

pytestmark = pytest.mark.deep("records and judges months of nights")

BOXES = ("db1", "db2", "db3")


@pytest.fixture
def commits(target: Target) -> Iterator[Commits]:
    with dated(target, Commits) as commits:
        yield commits


def measure(commits: Commits, tip: int, slow: dict[str, float], suspects: Sequence[str] = ()) -> list[Change]:
    """Let all boxes measure a commit, one after another, and confirm; return what each judge found new."""
    new: list[Change] = []
    for box in BOXES:
        commits.machine = replace(MACHINE, hostname=box, fingerprint=box)
        commits.more(1, slow, commit(tip))
        for step in suspects:
            factors = {step: slow[step]}
            commits.confirm(factors, old=commits.count - len(BOXES), steps=(step,), uid=f"{box}-{tip}-{step}")
        new += commits.judge().new
    return new


def members(change: Change) -> set[tuple[str, str]]:
    return {(member.key.environment.box, member.key.step) for member in change.members}


def on_all(step: str) -> set[tuple[str, str]]:
    return {(box, step) for box in BOXES}


def regress_twice(commits: Commits) -> tuple[Change, Change]:
    for tip in range(1, 4):
        measure(commits, tip, {})
    (first,) = measure(commits, 4, {"delete": 0.93}, ["delete"])
    (second,) = measure(commits, 5, {"delete": 0.93, "insert": 0.92}, ["insert"])
    return first, second


def test_two_commits_after_one_another_are_two_changes_on_all_boxes(commits: Commits) -> None:
    first, second = regress_twice(commits)
    assert second.fingerprint != first.fingerprint
    for change, step, tip in zip(every_change(commits.store), ("delete", "insert"), (4, 5), strict=True):
        assert members(change) == on_all(step)
        assert (change.last_before.version, change.first_after.version) == (commit(tip - 1), commit(tip))


def test_a_series_that_belongs_to_another_change_leaves_the_one_it_was_in(commits: Commits) -> None:
    first, second = regress_twice(commits)
    of_second = select(change_series.c.series_id).where(change_series.c.change_id == second.id).limit(1)
    with commits.store.database.writing() as connection:
        series_id = connection.execute(of_second).scalar_one()
        moving = (change_series.c.change_id == second.id) & (change_series.c.series_id == series_id)
        connection.execute(update(change_series).where(moving).values(change_id=first.id))
    assert not commits.judge().new
    kept = every_change(commits.store)
    assert [change.fingerprint for change in kept] == [first.fingerprint, second.fingerprint]
    assert [members(change) for change in kept] == [on_all("delete"), on_all("insert")]


def test_what_was_stored_apart_is_closed_as_part_of_the_change_that_has_its_series(commits: Commits) -> None:
    first, second = regress_twice(commits)
    with commits.store.database.writing() as connection:
        row = dict(connection.execute(select(changes).where(changes.c.id == second.id)).mappings().one())
        del row["id"]
        apart = insert(changes).values(row | {"fingerprint": "stored-apart"}).returning(changes.c.id)
        apart_id = connection.execute(apart).scalar_one()
        of_second = select(change_series.c.series_id).where(change_series.c.change_id == second.id).limit(1)
        moving = (change_series.c.change_id == second.id) & (change_series.c.series_id.in_(of_second))
        connection.execute(update(change_series).where(moving).values(change_id=apart_id))
    report = commits.judge()
    assert [(change.fingerprint, change.reason) for change in report.closed] == [
        ("stored-apart", f"part of change {second.fingerprint}: its series changed with the same commits")
    ]
    assert [change.fingerprint for change in report.open] == [first.fingerprint, second.fingerprint]
    assert [members(change) for change in report.open] == [on_all("delete"), on_all("insert")]
    assert not commits.judge().closed


def test_a_change_that_comes_apart_stays_where_most_of_its_series_are(commits: Commits) -> None:
    first, second = regress_twice(commits)
    of_first = select(change_series.c.series_id).where(change_series.c.change_id == first.id).limit(1)
    with commits.store.database.writing() as connection:
        series_id = connection.execute(of_first).scalar_one()
        moving = (change_series.c.change_id == first.id) & (change_series.c.series_id == series_id)
        connection.execute(update(change_series).where(moving).values(change_id=second.id))
        connection.execute(delete(change_series).where(change_series.c.change_id == first.id))
        connection.execute(delete(changes).where(changes.c.id == first.id))
    (apart,) = commits.judge().new
    (stayed,) = (change for change in every_change(commits.store) if change.fingerprint == second.fingerprint)
    assert (members(stayed), members(apart)) == (on_all("insert"), on_all("delete"))
