"""What a box of a pool measures while the history cannot be reached."""

import pytest

from build.home import Home
from history.placement.hashing import SharedTask
from history.placement.pool import PoolNight
from runners.nightly.plan import Box, Plan
from runners.nightly.pools.last_placement import recall, remember

MINE, THEIRS = (SharedTask("write-heavy", "short", f"postgres@{branch}") for branch in ("master", "REL_18"))


@pytest.fixture
def plan() -> Plan:
    boxes = {
        "db1": Box(label="one", budget_minutes=1.0, pool="epyc"),
        "alone": Box(label="two", budget_minutes=1.0),
    }
    return Plan.model_construct(boxes=boxes)


def test_what_was_placed_last_is_measured(home: Home, plan: Plan) -> None:
    remember(home, PoolNight("epyc", "db1", {MINE: "db1", THEIRS: "db2"}))
    night = recall(home, plan, "db1", "the server is away")
    assert night is not None
    assert (night.is_mine(MINE), night.is_mine(THEIRS)) == (True, False)
    assert night.problems == ("pool epyc: what was placed last is measured: the server is away",)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"pool": "other", "placed": [["a", "b", "c", "db1"]]}',
        '{"pool": "epyc", "placed": [1]}',
    ],
)
def test_a_box_that_knows_nothing_measures_nothing(text: str | None, home: Home, plan: Plan) -> None:
    if text is not None:
        (home.path / "pool.json").write_text(text)
    night = recall(home, plan, "db1", "the server is away")
    assert night is not None
    assert not night.is_mine(MINE)
    assert night.problems == ("pool epyc: nothing of the pool is measured: the server is away",)
    assert recall(home, plan, "alone", "the server is away") is None
