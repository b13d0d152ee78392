"""Changes as they are kept: written, read again, silenced."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from history.changes import repository
from history.changes.acknowledgements import acknowledge
from history.changes.level_shift import Direction, Shift, ShiftOutcome
from history.errors import HistoryError
from history.open import open_store
from history.series.series import Night
from history.store.records import ChangeStatus, Environment
from history.store.writer import Store
from tests.history.both_stores import target as target
from tests.history.conftest import Target
from tests.history.handmade import NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
LATER = NIGHT + timedelta(days=30)


@pytest.fixture
def store(target: Target) -> Iterator[Store]:
    """Five nights."""
    moments = iter(range(100))
    with open_store(target, clock=lambda: NIGHT + timedelta(days=next(moments) // 2)) as store:
        for number in range(5):
            record_steps(store, session_start(f"night-{number}"), {"insert": {BASE: [100.0], NEW: [90.0]}})
        yield store


def night(number: int) -> Night:
    return Night(number + 1, NIGHT + timedelta(days=number), NEW, 2)


def course(series_id: int = 3, gone: Night | None = None, confidence: float = 0.99) -> ShiftOutcome:
    """Series 3 is the first of the contender: queries per second."""
    environment = Environment("db1", "write-heavy", "short relaxed")
    shift = Shift(
        series_id,
        environment,
        NEW,
        "insert",
        "qps",
        night(1),
        night(3),
        night(4),
        1.0,
        0.9,
        0.88,
        0.92,
        confidence,
    )
    return ShiftOutcome(shift, gone)


def write(store: Store, *courses: ShiftOutcome, status: ChangeStatus = ChangeStatus.OPEN) -> int:
    with store.database.writing() as connection:
        return repository.insert_change(connection, "f1", courses, Direction.WORSE, status, None, LATER)


def load(store: Store, **limits: str) -> tuple[repository.Change, ...]:
    with store.database.reading() as connection:
        return repository.load(connection, **limits)  # type: ignore[arg-type]


def test_a_change_comes_back_as_it_went_in(store: Store) -> None:
    write(store, course(gone=night(4)))
    (change,) = load(store)
    (member,) = change.members
    shift = course().shift
    assert (change.fingerprint, change.branch, change.suite) == ("f1", NEW, "write-heavy")
    assert (change.direction, change.status, change.found_at) == (
        Direction.WORSE,
        ChangeStatus.OPEN,
        LATER,
    )
    assert member.key.metric == "qps"
    assert (member.key.environment, member.key.branch, member.key.step) == (shift.environment, NEW, "insert")
    assert (member.last_before, member.first_after, member.raised) == (night(1), night(3), night(4))
    assert (member.level_before, member.level_after) == (1.0, 0.9)
    assert (member.ratio_low, member.ratio_high, member.confidence) == (0.88, 0.92, 0.99)
    assert member.gone == night(4)


def test_the_range_is_where_all_series_agree(store: Store) -> None:
    narrow = course(4)
    narrow = replace(narrow, shift=replace(narrow.shift, last_before=night(2), after=1.1))
    write(store, course(), narrow)
    (change,) = load(store)
    assert (change.last_before, change.first_after) == (night(2), night(3))


def test_a_range_that_suits_no_series_is_never_told(store: Store) -> None:
    """Two series overlap a third, but not each other: the range ended before it began."""
    early = replace(course(), shift=replace(course().shift, last_before=night(0), first_after=night(1)))
    late = course(4)
    late = replace(late, shift=replace(late.shift, last_before=night(2), first_after=night(4), after=1.1))
    write(store, early, late)
    (change,) = load(store)
    assert (change.last_before, change.first_after) == (night(0), night(4))


def test_members_are_replaced_and_the_others_kept(store: Store) -> None:
    id_ = write(store, course(3), course(4, confidence=0.9))
    with store.database.writing() as connection:
        repository.replace_members(connection, id_, [course(4, gone=night(4), confidence=0.999)])
    (change,) = load(store)
    assert [(member.series_id, member.gone) for member in change.members] == [(4, night(4)), (3, None)]


def test_only_those_asked_for(store: Store) -> None:
    write(store, course())
    assert load(store, branch=NEW, suite="write-heavy")
    assert not load(store, branch=BASE)
    assert not load(store, suite="pgbench")
    with store.database.reading() as connection:
        assert not repository.load(connection, statuses=[ChangeStatus.CLOSED])


def test_acknowledged_with_a_reason(store: Store) -> None:
    write(store, course())
    with store.database.writing() as connection:
        acknowledge(connection, "f1", "wanted: checksums", LATER + timedelta(days=1))
    (change,) = load(store)
    assert (change.status, change.reason) == (ChangeStatus.ACKNOWLEDGED, "wanted: checksums")
    assert change.updated_at == LATER + timedelta(days=1)
    with pytest.raises(HistoryError, match="there is no change f2"), store.database.writing() as connection:
        acknowledge(connection, "f2", "?", LATER)


def test_the_nights_of_a_change_have_their_commits(store: Store) -> None:
    write(store, course())
    (before,) = load(store)
    assert (before.last_before.commit, before.first_after.commit) == ("", "")
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE builds SET source_kind = 'git', source_digest = 'git:5bf748b86b:aa' WHERE id = 2"
        )
    (change,) = load(store)
    assert change.first_after.commit == "5bf748b86b"
    assert change.first_after.shown == f"{NEW}, commit 5bf748b86b"
