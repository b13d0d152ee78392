"""A simulated year of the nightly service: what it would find wrong in messages, two weeks, and all of it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history import timestamps
from history.store.schema_status import newest
from tests.service import versions
from tests.service.clock import SimulatedClock, simulated_time
from tests.service.expected import ExpectedLine, lateness, told_twice, uninvited
from tests.service.figures import service_figures
from tests.service.planted import DAYS, QUIET, TWO_WEEKS, YEAR, PlantedYear, midnight, tip_on
from tests.service.receivers import ToldLine
from tests.service.simulated_year import ServiceYear

OLD, NEW = "0123456789ab", "ba9876543210"
CHANGE = f"postgres@master, write-heavy on db1: insert 4.0 % slower (-5.0 to -3.0 %); between {OLD} and {NEW}"
AWAY = "the report on db1: the tracker: no answer; to do: read its summary"
FULL = "the night of 2027-07-25 on box db1: the disk is full; to do: read its summary"


def told(text: str, route: str = "team", hours: float = 0) -> ToldLine:
    return ToldLine(midnight(1) + timedelta(hours=hours), route, text)


def test_a_year_has_400_commits_and_ends() -> None:
    assert 1 + tip_on(DAYS - 1) == 400
    days = [regression.day for regression in YEAR.regressions]
    assert all(tip_on(day) - tip_on(day - 1) == 1 for day in days), "each is the only commit of its day"


def test_what_comes_late_or_never_is_seen() -> None:
    due = midnight(1) + timedelta(hours=8)
    expected = [
        ExpectedLine("in time", ("New",), NEW, midnight(1), due, "team"),
        ExpectedLine("late", ("New",), NEW, midnight(1), due, "planner"),
        ExpectedLine("never", ("Fixed",), NEW, midnight(1), due, "team"),
    ]
    lines = [told(f"New: {CHANGE}", hours=2), told(f"New: {CHANGE}", "planner", hours=10)]
    found = lateness(expected, lines)
    assert [line.late > timedelta(0) for line in found] == [False, True, False]
    assert [line.told is None for line in found] == [False, False, True]


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        ([f"New: {CHANGE}", f"Confirmed: {CHANGE}", f"Fixed: {CHANGE}", f"Returned: {CHANGE}"], 0),
        ([f"New: {CHANGE}", f"New: {CHANGE.replace('db1', 'db1, db2')}"], 1),
        ([f"Trouble: {FULL}", f"Trouble: {FULL.replace('25', '26')}"], 1),
        ([f"Trouble: {FULL}", f"Trouble: {FULL.replace('db1', 'db2')}"], 0),
        ([f"Trouble: {AWAY}", f"Trouble: {AWAY.replace('db1', 'db2')}"], 1),
        (
            [
                f"Trouble: {FULL}",
                "Over: the night of 2027-07-26 on box db1 had no problem",
                f"Trouble: {FULL}",
            ],
            0,
        ),
        (["Week to 2027-07-26: 0 changes open", "Week to 2027-08-02: 0 changes open"], 0),
        (["Week to 2027-07-26: 0 changes open", "Week to 2027-07-26: 1 change open"], 1),
    ],
)
def test_what_is_told_twice_is_seen(texts: list[str], count: int) -> None:
    assert len(told_twice([told(text) for text in texts])) == count


def test_what_a_route_did_not_ask_for_is_seen() -> None:
    lines = [
        told(f"New: {CHANGE}"),
        told(f"New: {CHANGE}", "planner"),
        told(f"New: {CHANGE}", "admins"),
        told(f"Trouble: {FULL}", "keeper"),
        told(f"Trouble: {FULL.replace('db1', 'db3')}", "keeper"),
        told("Week to 2027-07-26: 0 changes open", "planner"),
    ]
    assert uninvited(lines, lambda commit: 4.0 if commit == NEW else None) == [*lines[1:4], lines[5]]


def test_only_the_rooms_read_the_clock_and_only_for_a_while() -> None:
    far = datetime(2100, 1, 1, tzinfo=UTC)
    clock = SimulatedClock(far)
    clock.ahead = timedelta(days=2)
    with simulated_time(clock):
        assert timestamps.now() == far + timedelta(days=2)
        assert isinstance(far, vars(timestamps)["datetime"])
        assert datetime.now(UTC) < far
    assert timestamps.now() < far


def test_the_next_version_has_one_migration_more(tmp_path: Path) -> None:
    number = newest()
    versions.use(versions.next_version(tmp_path / "migrations"))
    try:
        assert newest() == number + 1
    finally:
        versions.use()
    assert newest() == number


@pytest.mark.deep("weeks of the service with all its code")
@pytest.mark.parametrize(
    "year",
    [
        pytest.param(TWO_WEEKS, id="two weeks"),
        pytest.param(YEAR, id="a year", marks=[pytest.mark.long, pytest.mark.timeout(3 * 3600)]),
        pytest.param(QUIET, id="a quiet year", marks=[pytest.mark.long, pytest.mark.timeout(3 * 3600)]),
    ],
)
def test_a_service_tells_all_that_matters_once(year: PlantedYear, tmp_path: Path) -> None:
    environment = dict(os.environ)
    service = ServiceYear(tmp_path, year)
    service.run()
    assert dict(os.environ) == environment
    missed = [figure for figure in service_figures(service) if not figure.met]
    assert missed == [], "\n".join(map(str, service.receivers.told))
