"""Shifts that are undone, come back, and belong together."""

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.changes.confirmation import Confirmation, ConfirmationRequest
from history.changes.detector import confirmed_shifts, without_confirmed
from history.changes.level_shift import (
    Direction,
    LevelReturn,
    Shift,
    ShiftOutcome,
    direction_of,
    group_shifts,
    shift_outcomes,
)
from history.comparison.verdict import MetricChange, Verdict
from history.series.matrix import SeriesMatrix
from history.series.series import Night, SeriesKey
from history.series.version_order import VersionOrder
from history.stats.change_points import Known
from history.store.records import Environment
from tests.history.handmade import NIGHT

HERE = Environment("db1", "write-heavy", "short relaxed")
THERE = Environment("db2", "write-heavy", "short relaxed")


def night(number: int) -> Night:
    return Night(number, NIGHT + timedelta(days=number), "postgres@REL_18_STABLE", number)


def shift(
    at: int,
    ratio: float = 0.9,
    *,
    series: int = 1,
    width: int = 1,
    before: float = 1.0,
    environment: Environment = HERE,
    metric: str = "qps",
    confidence: float = 0.99,
    explained: str = "",
) -> Shift:
    """A shift between nights `at - width` and `at`."""
    return Shift(
        series, environment, "postgres@REL_18_STABLE", "insert", metric,
        last_before=night(at - width), first_after=night(at), raised=night(at + 2),
        before=before, after=before * ratio, low=ratio * 0.99, high=ratio * 1.01,
        confidence=confidence, explained=explained,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "ratio", "direction"),
    [
        ("qps", 0.9, Direction.WORSE),
        ("qps", 1.1, Direction.BETTER),
        ("wal_bytes_per_op", 1.1, Direction.WORSE),
        ("wal_bytes_per_op", 0.9, Direction.BETTER),
        ("seconds", 0.9, Direction.SHIFT),
    ],
)
def test_directions(metric: str, ratio: float, direction: Direction) -> None:
    assert shift(5, ratio, metric=metric).direction is direction


def test_the_direction_of_several() -> None:
    worse, better, neither = shift(5, 0.9), shift(5, 1.1), shift(5, 0.9, metric="seconds")
    assert direction_of([worse, neither]) is Direction.WORSE
    assert direction_of([neither]) is Direction.SHIFT
    assert direction_of([worse, better]) is Direction.MIXED


def test_what_lasts_has_one_course_each() -> None:
    down, further = shift(5, 0.9), shift(30, 0.9, before=0.9)
    assert shift_outcomes([down, further]) == (ShiftOutcome(down), ShiftOutcome(further))


def test_what_is_undone_is_gone_and_its_end_is_no_shift() -> None:
    down, up = shift(5, 0.9), shift(30, 1 / 0.9, before=0.9)
    assert shift_outcomes([down, up]) == (ShiftOutcome(down, night(30)),)


def test_half_undone_is_another_shift() -> None:
    down, up = shift(5, 0.9), shift(30, 0.95 / 0.9, before=0.9)
    assert shift_outcomes([down, up]) == (ShiftOutcome(down), ShiftOutcome(up))


def test_another_series_undoes_nothing() -> None:
    down, up = shift(5, 0.9), shift(30, 1 / 0.9, before=0.9, series=2)
    assert len(shift_outcomes([down, up])) == 2


def test_what_comes_back_is_the_same_shift_again() -> None:
    down, up, again = shift(5, 0.9), shift(30, 1 / 0.9, before=0.9), shift(50, 0.905)
    assert shift_outcomes([down, up, again]) == (ShiftOutcome(again, returns_of=(down,)),)
    much_worse = shift(50, 0.7)
    assert shift_outcomes([down, up, much_worse]) == (ShiftOutcome(down, night(30)), ShiftOutcome(much_worse))


def test_what_comes_back_is_the_shift_that_began_at_its_level() -> None:
    first, further = shift(5, 0.93), shift(20, 0.94, before=0.93)
    fixed = [LevelReturn(1, night(before), night(30)) for before in (4, 19)]
    again = shift(50, 0.93)
    lasting = shift_outcomes([first, further, *fixed, again])
    assert lasting[0].gone is not None
    assert lasting[1] == ShiftOutcome(again, returns_of=(first,))


def test_what_comes_back_on_one_box_stays_with_the_others() -> None:
    both = [shift(5, 0.9), shift(5, 0.9, series=2, environment=THERE)]
    fixed = [shift(30, 1 / 0.9, before=0.9, series=series) for series in (1, 2)]
    ((first, second),) = grouped(shift_outcomes([*both, *fixed, shift(50, 0.9)]))
    assert {first.shift.first_after, second.shift.first_after} == {night(5), night(50)}


@pytest.mark.parametrize("which", [0, 1])
def test_what_undoes_a_confirmed_improvement_is_a_change_for_the_worse(which: int) -> None:
    faster, slower = shift(5, 1 / 0.9), shift(30, 0.9, before=1 / 0.9)
    assert shift_outcomes([faster, slower]) == (ShiftOutcome(faster, night(30)),)
    events = [faster, slower]
    events[which] = replace(events[which], confirmed=True)
    lost = (ShiftOutcome(events[0], night(30)), ShiftOutcome(events[1]))
    assert shift_outcomes(events) == lost
    # The improvement is older than the window by now.
    assert shift_outcomes(events[1:], lost[:1]) == lost


def test_what_earlier_judges_found_is_undone_too() -> None:
    down, up = shift(5, 0.9), shift(500, 1 / 0.9, before=0.9)
    undone = shift_outcomes([up], [ShiftOutcome(down)])
    assert undone == (ShiftOutcome(down, night(500)),)
    # A night later the end is seen again: it is neither new nor a way back.
    assert shift_outcomes([up], undone) == undone


@given(st.floats(0.5, 2.0).filter(lambda ratio: abs(math.log(ratio)) > 0.001))
def test_a_shift_and_its_mirror_always_cancel(ratio: float) -> None:
    down = shift(5, ratio)
    (course,) = shift_outcomes([down, shift(30, 1 / ratio, before=ratio)])
    assert course.gone == night(30)


def grouped(outcomes: Iterable[ShiftOutcome]) -> tuple[tuple[ShiftOutcome, ...], ...]:
    """Grouped where nothing is known of the order of versions."""
    return group_shifts(outcomes, VersionOrder())


def test_what_can_be_one_moment_is_one_change() -> None:
    seed = shift(10, series=1, confidence=0.999)
    beside = shift(12, series=2, width=5, metric="server_cpu_us_per_op", confidence=0.9)
    elsewhere = shift(10, series=3, environment=THERE)
    later = shift(11, series=4)
    found = grouped(map(ShiftOutcome, [beside, later, elsewhere, seed]))
    assert [[outcome.shift.series_id for outcome in cluster] for cluster in found] == [[1, 3, 2], [4]]


def at_commits(found: Shift, before: str, after: str) -> ShiftOutcome:
    """The shift between the same nights of two other versions."""
    nights = (night._replace(version=name) for night, name in zip(found.range, (before, after), strict=True))
    last_before, first_after = nights
    return ShiftOutcome(replace(found, last_before=last_before, first_after=first_after))


@pytest.mark.parametrize(
    ("versions", "changes"),
    [
        (("a", "b", "b", "c"), 2),
        (("a", "b", "a", "b"), 1),
        (("a", "b", "b", "b"), 1),
        (("a", "b", "c", "b"), 1),
    ],
    ids=["the next commit", "the same commit", "no other commit", "a commit of no known order"],
)
def test_boxes_that_measured_other_commits_have_two_changes(
    versions: tuple[str, str, str, str], changes: int
) -> None:
    """The late box measured its last night after the early one, whose night it was not."""
    branch = shift(10).branch
    order = VersionOrder(
        {(branch, name): night(at).started_at for name, at in (("a", 8), ("b", 9), ("c", 10))}
    )
    late = at_commits(shift(11, width=2, series=1), *versions[:2])
    early = at_commits(shift(12, width=2, series=2, environment=THERE), *versions[2:])
    assert len(group_shifts([late, early], order)) == changes


def test_ranges_that_only_touch_are_two_changes() -> None:
    """The last night before one is the first after the other: no moment lies in both."""
    found = grouped([ShiftOutcome(shift(10, series=1)), ShiftOutcome(shift(11, series=2))])
    assert len(found) == 2


def test_a_wide_range_does_not_make_one_of_two() -> None:
    wide = shift(20, series=3, width=15, confidence=0.5)
    found = grouped([ShiftOutcome(shift(8, series=1)), ShiftOutcome(shift(18, series=2)), ShiftOutcome(wide)])
    assert sorted(len(cluster) for cluster in found) == [1, 2]


def test_a_change_has_one_shift_of_each_series() -> None:
    """A judge that stored a series twice in a change failed."""
    wide = ShiftOutcome(shift(30, width=20, confidence=0.999))
    twice = [ShiftOutcome(shift(at, series=2, width=2)) for at in (15, 25)]
    assert grouped([wide, *twice]) == ((wide, twice[0]), (twice[1],))


def test_suites_and_branches_are_apart() -> None:
    other = Environment("db1", "pgbench", "short relaxed")
    assert len(grouped([ShiftOutcome(shift(10)), ShiftOutcome(shift(10, series=2, environment=other))])) == 2


# --- confirmed in their own night


def test_what_was_confirmed_is_not_drawn_into_a_change_whose_nights_are_a_guess() -> None:
    first = replace(shift(10, series=1), confirmed=True)
    second = replace(shift(12, series=1, before=0.9), confirmed=True)
    guess = shift(14, series=2, width=6, confidence=0.99999)
    found = grouped(shift_outcomes([first, second, guess]))
    assert [[outcome.shift for outcome in cluster] for cluster in found] == [[first, guess], [second]]


def test_the_watch_sees_what_was_confirmed_and_it_counts_once() -> None:
    confirmed = replace(shift(10), confirmed=True)
    seen, other_way = shift(12, 0.91, width=4), shift(12, 1.1, width=4)
    elsewhere, later = shift(12, 0.91, width=4, series=2), shift(20, 0.9)
    found = without_confirmed([seen, other_way, elsewhere, later], [confirmed])
    assert found == [other_way, elsewhere, later]


def test_a_shift_between_the_levels_of_one_that_lasts_is_that_one() -> None:
    open_, again = shift(10), shift(30, 0.91)
    further = shift(30, 0.91, before=0.9)
    assert shift_outcomes([open_, again]) == (ShiftOutcome(open_),)
    assert shift_outcomes([open_, further]) == (ShiftOutcome(open_), ShiftOutcome(further))


def test_a_remembered_course_says_what_lay_before_its_end() -> None:
    known = ShiftOutcome(shift(10), night(50))
    to_and_fro = [shift(20, 1 / 0.9, before=0.9), shift(30, 0.9), shift(50, 1 / 0.9, before=0.9)]
    assert shift_outcomes(to_and_fro, [known]) == (known,)


def test_a_return_that_was_confirmed_ends_the_change_that_it_was_held_against() -> None:
    change = shift(10)
    assert shift_outcomes([change, LevelReturn(1, night(9), night(20))]) == (ShiftOutcome(change, night(20)),)
    assert shift_outcomes([change, LevelReturn(1, night(8), night(20))]) == (ShiftOutcome(change, night(20)),)
    assert shift_outcomes([change, LevelReturn(1, night(10), night(20))]) == (
        ShiftOutcome(change),
    )  # not surely before it
    assert shift_outcomes([change, LevelReturn(2, night(9), night(20))]) == (ShiftOutcome(change),)
    back = shift(30)
    returned = shift_outcomes([change, LevelReturn(1, night(9), night(20)), back])
    assert returned == (ShiftOutcome(back, returns_of=(change,)),)
    earlier = LevelReturn(1, night(5), night(8))
    assert shift_outcomes([earlier, change]) == (ShiftOutcome(change),)
    assert shift_outcomes([earlier], [ShiftOutcome(change)]) == (ShiftOutcome(change),)


@pytest.mark.parametrize("later_first", [False, True])
def test_two_changes_that_are_gone_the_same_night_end_both(later_first: bool) -> None:
    changes = [shift(5, 0.93), shift(20, 0.94, before=0.93)]
    returns = [LevelReturn(1, night(4), night(30)), LevelReturn(1, night(19), night(30))]
    ended = shift_outcomes([*changes, *(reversed(returns) if later_first else returns)])
    assert [outcome.gone for outcome in ended] == [night(30), night(30)]


def test_the_watch_is_told_the_levels_of_what_was_confirmed() -> None:
    matrix = SeriesMatrix(
        HERE, "b", "base", tuple(map(night, range(70))), ((7, "insert", "qps"),), np.ones((1, 70))
    )
    key = SeriesKey(HERE, "b", "insert", "qps")

    def found(after: int, question: ConfirmationRequest, finding: MetricChange) -> Confirmation:
        numbers = (1.2, 0.9, 0.89, 0.91, 8, 0.999)
        return Confirmation("uid", 7, key, question, night(after - 1), night(after), finding, *numbers)

    step, back = (
        found(62, ConfirmationRequest.NEW, MetricChange.LESS),
        found(65, ConfirmationRequest.GONE, MetricChange.SAME),
    )
    nothing = [
        found(66, ConfirmationRequest.NEW, MetricChange.SAME),
        found(67, ConfirmationRequest.GONE, MetricChange.UNKNOWN),
    ]
    shifts = confirmed_shifts(matrix, [step, back, *nothing], 400)
    level = math.log(1.2 * 0.9)
    assert shifts.levels == (Known(0, 62, level), Known(0, 65, level))
    assert [type(happened) for happened in shifts.events] == [Shift, LevelReturn]
    (event,) = confirmed_shifts(matrix, [step], 400).events
    assert isinstance(event, Shift)
    assert (event.confirmed, event.before, event.after) == (True, 1.2, 1.2 * 0.9)
    early = found(30, ConfirmationRequest.NEW, MetricChange.LESS)
    assert len(confirmed_shifts(matrix, [early], 400).events) == 1
    assert (
        confirmed_shifts(matrix, [early], 70).events == ()
    )  # what is remembered counts, once the past is lost
    assert confirmed_shifts(matrix, [found(99, ConfirmationRequest.NEW, MetricChange.LESS)], 400).events == ()


def test_a_change_over_nights_has_no_verdict_of_a_session() -> None:
    """A reader of "regression" could not know which of the two is meant."""
    words = " ".join(f"{direction} {direction.phrase}" for direction in Direction)
    assert not [str(verdict) for verdict in Verdict if str(verdict) in words]
