"""Boxes of a pool that begin their nights: who measures what, who is gone, and what is said of it."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection

from history.open import open_store
from history.placement.hashing import Demand, SharedTask
from history.placement.pool import (
    GONE_NIGHTS,
    PlacementReason,
    PoolNight,
    begin_night,
    hand_overs,
)
from history.store.writer import Store
from tests.history.conftest import Target
from tests.history.handmade import NIGHT
from tests.history.store.test_two_writers import beside

BOXES = ("a", "b", "c", "d")
DAY = timedelta(days=1)


def demands_of(boxes: tuple[str, ...], count: int = 60) -> dict[SharedTask, Demand]:
    return {
        SharedTask(f"suite-{number}", "short", "postgres@master"): Demand(5.0, frozenset(boxes))
        for number in range(count)
    }


def begin(connection: Connection, box: str, at: datetime, boxes: tuple[str, ...] = BOXES) -> PoolNight:
    return begin_night(connection, "fast", boxes, demands_of(boxes), box, f"host-{box}", at)


def nights(
    store: Store,
    days: range,
    running: str,
    boxes: tuple[str, ...] = BOXES,
    ahead: dict[str, timedelta] | None = None,
) -> list[PoolNight]:
    """All nights of the days; of `ahead` are the clocks that are wrong."""
    found = []
    for day in days:
        for number, box in enumerate(running):
            with store.database.writing() as connection:
                at = NIGHT + day * DAY + timedelta(minutes=number) + (ahead or {}).get(box, timedelta())
                found.append(begin(connection, box, at, boxes))
    return found


@pytest.mark.deep("a whole command on a whole history")
def test_everything_is_on_one_box_and_stays(store: Store) -> None:
    first, *others = nights(store, range(30), "abcd")
    assert max(Counter(first.placed.values()).values()) <= 17
    for other in others:
        assert other.placed == first.placed
        assert not other.handed_over
    mine = [sum(map(night.is_mine, night.placed)) for night in others[:4]]
    assert sum(mine) == len(first.placed)


def test_a_box_that_is_gone_hands_on_what_it_has(store: Store) -> None:
    first = nights(store, range(5), "abcd")[-1]
    kept = nights(store, range(5, 5 + GONE_NIGHTS), "bac")
    assert all(night.placed == first.placed for night in kept)
    told, *silent = nights(store, range(5 + GONE_NIGHTS, 10 + GONE_NIGHTS), "bac")
    moved = {task for task, box in first.placed.items() if box == "d"}
    assert {task for task in first.placed if told.placed[task] != first.placed[task]} == moved
    assert {hand_over.task for hand_over in told.handed_over} == moved
    assert {(hand_over.before, hand_over.reason) for hand_over in told.handed_over} == {
        ("d", PlacementReason.GONE)
    }
    # The boxes that got some of them say so in their next night, and then nobody does any more.
    assert sum(len(night.handed_over) for night in silent[:2]) == sum(
        told.placed[task] != "b" for task in moved
    )
    assert not any(night.handed_over for night in silent[2:])
    assert "d had no night for 3 nights, and hands it on to" in str(told.handed_over[0])


def test_a_box_that_comes_back_takes_its_share(store: Store) -> None:
    nights(store, range(5), "abcd")
    before = nights(store, range(5, 12), "abc")[-1]
    back = nights(store, range(12, 13), "d")[0]
    assert Counter(back.placed.values())["d"] == 15
    assert all(back.placed[task] in (box, "d") for task, box in before.placed.items())
    lost, taken = back.handed_over[:-15], back.handed_over[-15:]
    assert {(hand_over.before, hand_over.reason) for hand_over in lost} == {("d", PlacementReason.GONE)}
    assert {(hand_over.after, hand_over.reason) for hand_over in taken} == {("d", PlacementReason.JOINED)}


def test_a_pool_that_was_off_as_a_whole_loses_no_box(store: Store) -> None:
    first = nights(store, range(3), "abcd")[-1]
    assert all(night.placed == first.placed for night in nights(store, range(20, 25), "abcd"))


def test_a_clock_that_is_a_day_wrong_moves_nothing(store: Store) -> None:
    wrong = {"b": DAY, "c": -DAY}
    first, *others = nights(store, range(15), "abcd", ahead=wrong)
    assert all(night.placed == first.placed for night in others)


def test_a_box_that_left_the_plan_hands_on_at_once(store: Store) -> None:
    first = nights(store, range(2), "abcd")[-1]
    after = nights(store, range(2, 3), "a", ("a", "b", "c"))[0]
    assert {hand_over.task for hand_over in after.handed_over} == {
        task for task, box in first.placed.items() if box == "d"
    }
    assert {hand_over.reason for hand_over in after.handed_over} == {PlacementReason.PLAN}


def test_a_box_that_is_new_in_the_plan_joins_with_its_first_night(store: Store) -> None:
    first = nights(store, range(2), "abc", ("a", "b", "c"))[-1]
    assert nights(store, range(2, 5), "abc")[-1].placed == first.placed
    joined = nights(store, range(5, 6), "d")[0]
    assert {hand_over.reason for hand_over in joined.handed_over} == {PlacementReason.JOINED}
    assert len(joined.handed_over) == 15


def test_two_boxes_with_one_name_are_told(store: Store) -> None:
    with store.database.writing() as connection:
        begin(connection, "a", NIGHT)
        twin = begin_night(connection, "fast", BOXES, demands_of(BOXES), "a", "another", NIGHT + DAY)
    assert "was host-a" in twin.problems[0]


@pytest.mark.parametrize("second", ["b", "e"], ids=["of the plan", "that joins"])
def test_two_that_begin_at_once_agree(store: Store, target: Target, second: str) -> None:
    boxes = ("a", "b", second)
    nights(store, range(1), "ab", ("a", "b"))
    later = NIGHT + DAY

    def then(other: Store) -> PoolNight:
        with other.database.writing() as connection:
            return begin(connection, second, later, boxes)

    found = beside(store, target, lambda connection: begin(connection, "a", later, boxes), then)
    with open_store(target) as other, other.database.writing() as connection:
        assert begin(connection, "a", later, boxes).placed == found.placed
        assert all(over.after == "e" for over in hand_overs(connection))


def test_the_first_nights_of_a_pool_begin_at_once(store: Store, target: Target) -> None:
    def then(other: Store) -> PoolNight:
        with other.database.writing() as connection:
            return begin(connection, "b", NIGHT)

    first: list[PoolNight] = []
    second = beside(store, target, lambda connection: first.append(begin(connection, "a", NIGHT)), then)
    assert first[0].placed == second.placed
    assert not second.handed_over
