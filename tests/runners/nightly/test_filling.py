"""What is measured next: dates are filled evenly, and changes found in few sessions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.store.records import Environment
from runners.nightly.past.filling import (
    MAX_IN_VAIN,
    Dates,
    PastCommit,
    PastState,
    filled,
    measured_at,
    next_date,
)
from runners.nightly.past.past_commits import in_order, measurable
from tests.runners.nightly.backfill_years import SimulatedYear

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
WEEKS = Dates(BEGIN, timedelta(days=7))


def commits(hours: list[int]) -> tuple[PastCommit, ...]:
    """Commits so many hours after the beginning."""
    dates = (
        (f"{number:012x}".ljust(40, "0"), BEGIN + timedelta(hours=hour))
        for number, hour in enumerate(sorted(hours))
    )
    return tuple(in_order(dates))


def state(known: tuple[PastCommit, ...], measured: list[datetime], in_vain: frozenset[str]) -> PastState:
    nights = tuple(Night(number, at, "", 1) for number, at in enumerate(sorted(measured)))
    environment, values = Environment("box", "suite", "smoke"), np.ones((1, len(nights)))
    matrix = SeriesMatrix(environment, "postgres@master", "postgres@18", nights, ((1, "s", "qps"),), values)
    return PastState(known, matrix, in_vain)


def filling_order(known: tuple[PastCommit, ...], broken: frozenset[str] = frozenset()) -> list[PastCommit]:
    """The commits that are measured, in order; broken ones are found to be so when it is their turn."""
    measured: list[PastCommit] = []
    in_vain: frozenset[str] = frozenset()
    while True:
        now = state(known, [past.stands_at for past in measured], in_vain)
        commit = next_date(now, WEEKS)
        if commit is None:
            return measured
        if commit.commit in broken:
            in_vain |= {commit.commit}
        else:
            measured.append(commit)


def test_what_is_measured_now_counts_for_what_comes_next() -> None:
    known = commits(list(range(0, 24 * 7 * 9, 24)))
    measured: list[datetime] = []
    ahead: PastCommit | None = None
    while (now := next_date(state(known, measured, frozenset()), WEEKS)) is not None:
        assert ahead in (None, now), "what was foreseen is what comes"
        ahead = next_date(state(known, measured, frozenset()), WEEKS, (now.stands_at,))
        measured.append(now.stands_at)
    assert ahead is None


HOURS = st.lists(st.integers(-500, 24 * 200), min_size=1, max_size=60)


@given(HOURS)
@settings(max_examples=60)
def test_every_date_gets_the_commit_that_was_current(hours: list[int]) -> None:
    known = commits(hours)
    order = filling_order(known)
    assert len({past.commit for past in order}) == len(order)
    wanted = WEEKS.until(known[-1].stands_at)
    current = [[past for past in known if past.stands_at <= date][-1:] for date in wanted]
    assert {past.commit for past in order} == {past.commit for found in current for past in found}
    how_far = filled(state(known, [past.stands_at for past in order], frozenset()), WEEKS)
    assert (how_far.filled, how_far.dates, how_far.in_vain) == (sum(map(bool, current)),) * 2 + (0,)


@given(st.integers(3, 40))
@settings(max_examples=30)
def test_after_any_number_of_sessions_the_widest_gap_is_at_most_twice_the_best(weeks: int) -> None:
    order = filling_order(commits([24 * 7 * week for week in range(weeks)]))
    for count in range(2, len(order) + 1):
        places = sorted(past.stands_at for past in order[:count])
        widest = max(after - before for before, after in pairwise(places)) / WEEKS.every
        assert widest <= 2 * -(-(weeks - 1) // (count - 1))


@given(HOURS, st.sets(st.integers(0, 59)))
@settings(max_examples=60)
def test_a_broken_commit_is_replaced_by_the_one_before_it(hours: list[int], broken: set[int]) -> None:
    known = commits(hours)
    lost = frozenset(past.commit for number, past in enumerate(known) if number in broken)
    order = filling_order(known, lost)
    assert not lost & {past.commit for past in order}
    assert len(order) <= len(WEEKS.until(known[-1].stands_at))
    assert MAX_IN_VAIN == 3


def test_places_of_commits_are_in_their_order_whatever_the_clocks() -> None:
    same = BEGIN.replace(microsecond=0)
    dates = [("a", same), ("b", same - timedelta(days=3)), ("c", same), ("d", same + timedelta(days=1))]
    places = [commit.stands_at for commit in in_order(dates)]
    assert places[0] == same
    assert places == sorted(set(places))
    assert places[-1] == same + timedelta(days=1)


@pytest.mark.parametrize("wrong", [datetime(2037, 1, 1, tzinfo=UTC), datetime(1971, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("place", range(6))
def test_a_wrong_clock_moves_no_other_commit(wrong: datetime, place: int) -> None:
    """A commit dated 2037 moved all later ones there."""
    dates = [BEGIN + timedelta(days=day) for day in range(6)]
    dates[place] = wrong
    found = [
        commit.stands_at
        for commit in in_order(zip("abcdef", dates, strict=True), datetime(2026, 1, 1, tzinfo=UTC))
    ]
    assert found == sorted(set(found))
    others = [number for number in range(6) if number != place]
    if wrong.year == 2037 or place:
        assert [found[number] for number in others] == [dates[number] for number in others]
        assert BEGIN - timedelta(seconds=1) < found[place] < BEGIN + timedelta(days=6)


def test_a_commit_that_a_night_would_stand_wrong_of_is_left_out() -> None:
    known = commits([0, 24, 48, 72, 96])
    version = f"postgres@git:{known[1].commit[:12]}"
    night = Night(1, BEGIN + timedelta(hours=60), version, 1)  # it measured the second, after the third
    assert measurable(known, [night]) == (known[0], known[3], known[4])
    assert measurable(known, [night._replace(measured_at=BEGIN)]) == known


def test_a_year_with_three_steps_is_found_and_a_quiet_one_is_left_alone() -> None:
    year = SimulatedYear(0).backfill()
    assert (year.found, year.false) == (3, 0)
    assert year.sessions <= 1.3 * year.needed
    quiet = SimulatedYear(1)
    quiet.planted = ()
    found = quiet.backfill()
    assert found.false == 0
    assert found.sessions <= 1.3 * found.needed
    assert len(measured_at(quiet.state)) >= 53


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_all_years_with_three_steps_are_found(seed: int) -> None:
    year = SimulatedYear(seed).backfill()
    assert (year.found, year.false) == (3, 0)
    assert year.sessions <= 1.3 * year.needed


def test_a_night_fills_its_date() -> None:
    known = commits([24 * 7 * week for week in range(4)])
    nights = [BEGIN + timedelta(days=15)]
    now = replace(state(known, nights, frozenset()), commits=known[:3])
    assert filled(now, WEEKS).filled == 0
    assert filled(state(known, nights, frozenset()), WEEKS).filled == 1
