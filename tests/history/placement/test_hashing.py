"""Which box gets which task: every one gets one, none gets far more than its share, and little moves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from history.placement.hashing import SLACK, Demand, SharedTask, loads, share_with, spread

BOXES = st.sets(st.sampled_from([f"box{number}" for number in range(8)]), min_size=2)
MINUTES = st.floats(0.5, 60)


def tasks_of(minutes: list[float], boxes: set[str]) -> dict[SharedTask, Demand]:
    """Tasks that every box may measure."""
    names = [f"suite-{number}" for number in range(len(minutes))]
    return {
        SharedTask(name, "short", "postgres@master"): Demand(minute, frozenset(boxes))
        for name, minute in zip(names, minutes, strict=True)
    }


@given(st.lists(MINUTES, min_size=1, max_size=80), BOXES)
def test_all_are_placed_evenly_whatever_the_order(minutes: list[float], boxes: set[str]) -> None:
    demands = tasks_of(minutes, boxes)
    placed = spread(demands, sorted(boxes), {})
    assert placed.keys() == demands.keys()
    assert placed == spread(dict(reversed(demands.items())), sorted(boxes, reverse=True), {})
    mean = sum(minutes) / len(boxes)
    assert max(loads(demands, placed, boxes).values()) <= max(SLACK * mean, mean + max(minutes)) * (1 + 1e-9)


@given(st.lists(MINUTES, min_size=1, max_size=80), BOXES)
def test_a_box_that_leaves_moves_its_own_alone(minutes: list[float], boxes: set[str]) -> None:
    demands = tasks_of(minutes, boxes)
    before = spread(demands, boxes, {})
    gone = min(boxes)
    after = spread(demands, boxes - {gone}, before)
    assert {task for task in before if before[task] != after[task]} == {
        task for task, box in before.items() if box == gone
    }


@given(st.lists(MINUTES, min_size=1, max_size=80), BOXES)
def test_a_box_that_joins_takes_at_most_its_share(minutes: list[float], boxes: set[str]) -> None:
    demands = tasks_of(minutes, boxes)
    newcomer = min(boxes)
    before = spread(demands, boxes - {newcomer}, {})
    after = share_with(demands, boxes, before, newcomer)
    moved = [task for task in before if before[task] != after[task]]
    assert {after[task] for task in moved} <= {newcomer}
    assert len(moved) <= len(demands) / len(boxes)
    assert sum(demands[task].minutes for task in moved) <= sum(minutes) / len(boxes) * (1 + 1e-9)
    assert max(loads(demands, after, boxes).values()) <= max(loads(demands, before, boxes).values())


@given(st.integers(2, 8))
def test_of_equal_tasks_it_takes_all_of_its_share(count: int) -> None:
    boxes = {f"box{number}" for number in range(count)}
    demands = tasks_of([5.0] * 60, boxes)
    before = spread(demands, boxes - {"box0"}, {})
    taken = Counter(share_with(demands, boxes, before, "box0").values())["box0"]
    assert 60 // count - 1 <= taken <= 60 / count


@given(st.lists(MINUTES, min_size=1, max_size=40), BOXES)
def test_what_moves_anyway_moves_to_a_newcomer(minutes: list[float], boxes: set[str]) -> None:
    """A box that replaces another gets what that one had, up to its share."""
    demands = tasks_of([10.0] * len(minutes), boxes | {"new"})
    before = spread(demands, boxes, {})
    old = min(boxes)
    after = spread(demands, {*boxes - {old}, "new"}, before, ["new"])
    own = Counter(before.values())[old]
    assert Counter(after.values())["new"] >= min(own, len(minutes) // len(boxes))


def test_branches_of_a_task_stay_together_for_their_base() -> None:
    boxes = frozenset({"a", "b", "c", "d"})
    names = [f"suite-{number}" for number in range(20)]
    branches = [f"postgres@{branch}" for branch in ("master", "REL_17_STABLE", "REL_18_STABLE")]
    demands = {SharedTask(name, "short", branch): Demand(5.0, boxes) for name in names for branch in branches}
    placed = spread(demands, boxes, {})
    sessions = {(task.suite, box) for task, box in placed.items()}
    assert len(sessions) <= 1.2 * len(names)


def test_a_task_that_nobody_may_measure_is_left_out() -> None:
    first, other = SharedTask("s", "short", "postgres@18"), SharedTask("t", "short", "postgres@18")
    demands = {first: Demand(5.0, frozenset({"z"})), other: Demand(5.0, frozenset({"a", "z"}))}
    assert spread(demands, {"a", "b"}, {first: "z"}) == {other: "a"}
