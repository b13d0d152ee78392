"""What people decide about a change: all of it is kept, the latest counts, and it can end."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from history.changes.acknowledgements import acknowledge, settle, withdraw
from history.changes.repository import Change
from history.errors import HistoryError
from history.store.records import ChangeStatus
from tests.history.conftest import Target
from tests.history.watched import QUIET, Nights, dated, every_change, night

pytestmark = pytest.mark.deep("records and judges months of nights")

AT = night(QUIET + 8)


@pytest.fixture
def nights(target: Target) -> Iterator[Nights]:
    with dated(target, Nights) as nights:
        nights.more(QUIET)
        nights.more(8, 0.93)
        assert len(nights.judge().new) == 1
        yield nights


def the_change(nights: Nights) -> Change:
    (change,) = every_change(nights.store)
    return change


def said(nights: Nights) -> list[str]:
    return [str(event) for event in the_change(nights).acknowledgements]


def decide(nights: Nights, reason: str, days: int = 0, who: str = "ann", until: date | None = None) -> None:
    name = the_change(nights).fingerprint
    with nights.store.database.writing() as connection:
        acknowledge(connection, name, reason, AT + timedelta(days=days), who=who, until=until)


def undo(nights: Nights, reason: str, days: int = 0, who: str = "bob") -> None:
    name = the_change(nights).fingerprint
    with nights.store.database.writing() as connection:
        withdraw(connection, name, reason, AT + timedelta(days=days), who=who)


def test_who_why_and_until_are_kept_with_all_that_was_before(nights: Nights) -> None:
    decide(nights, "checksums are wanted")
    decide(nights, "only in 18", 1, "bob", date(2026, 7, 1))
    undo(nights, "nor there", 2, "carol")
    decide(nights, "", 3, "")
    assert said(nights) == [
        f"acknowledged by ann on {AT:%Y-%m-%d}: checksums are wanted",
        f"acknowledged by bob on {AT + timedelta(days=1):%Y-%m-%d}, until 2026-07-01: only in 18",
        f"no longer acknowledged: withdrawn by carol on {AT + timedelta(days=2):%Y-%m-%d}: nor there",
        f"acknowledged on {AT + timedelta(days=3):%Y-%m-%d}",
    ]


def test_what_is_withdrawn_is_open_again_or_gone(nights: Nights) -> None:
    decide(nights, "wanted")
    undo(nights, "it hurts", 1)
    assert (the_change(nights).status, the_change(nights).reason) == (ChangeStatus.OPEN, None)
    decide(nights, "wanted", 2)
    nights.more(14)
    nights.judge()
    assert the_change(nights).status is ChangeStatus.ACKNOWLEDGED
    undo(nights, "it is fixed", 20)
    assert the_change(nights).status is ChangeStatus.CLOSED
    nights.judge()
    assert (the_change(nights).reason or "").startswith("back at the old level")


@pytest.mark.parametrize(("factor", "status"), [(0.93, ChangeStatus.OPEN), (1.0, ChangeStatus.CLOSED)])
def test_after_its_last_day_the_judge_opens_it_again_if_it_lasts(
    nights: Nights, factor: float, status: ChangeStatus
) -> None:
    decide(nights, "wanted", until=(AT + timedelta(days=10)).date())
    nights.more(10, factor)
    report = nights.judge()
    assert (report.reopened, the_change(nights).status) == ((), ChangeStatus.ACKNOWLEDGED)
    nights.more(1, factor)
    report = nights.judge()
    assert the_change(nights).status is status
    assert len(report.reopened) == (status is ChangeStatus.OPEN)
    assert said(nights)[-1] == f"no longer acknowledged: {(AT + timedelta(days=10)).date()} was the last day"
    again = nights.judge()
    assert (again.reopened, len(said(nights))) == ((), 2)


def test_a_clock_that_was_set_back_undoes_no_decision(nights: Nights) -> None:
    decide(nights, "wanted", 400)
    undo(nights, "by mistake")
    assert the_change(nights).status is ChangeStatus.OPEN
    nights.judge()
    assert the_change(nights).status is ChangeStatus.OPEN
    assert [event.who for event in the_change(nights).acknowledgements] == ["ann", "bob"]


def test_a_decision_that_a_merge_brings_counts_from_the_next_judgement(nights: Nights) -> None:
    decide(nights, "wanted")
    with nights.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE changes SET status = 'open', reason = NULL")
    assert nights.judge().new == ()
    assert (the_change(nights).status, the_change(nights).reason) == (ChangeStatus.ACKNOWLEDGED, "wanted")


def test_what_was_acknowledged_without_a_record_stays_so(nights: Nights) -> None:
    """An export of an older Tidemark has none."""
    with nights.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE changes SET status = 'acknowledged', reason = 'wanted'")
        settle(connection, AT)
    nights.judge()
    assert (the_change(nights).status, the_change(nights).reason) == (ChangeStatus.ACKNOWLEDGED, "wanted")
    undo(nights, "it hurts")
    assert the_change(nights).status is ChangeStatus.OPEN


def test_what_makes_no_sense_is_refused(nights: Nights) -> None:
    with pytest.raises(HistoryError, match="is open, and not acknowledged"):
        undo(nights, "x")
    yesterday = (AT - timedelta(days=1)).date()
    with pytest.raises(HistoryError, match=f"{yesterday} is over"):
        decide(nights, "x", until=yesterday)
    assert the_change(nights).acknowledgements == ()
