"""Which changes the rules of a plan are about: their mutes and their owners, whatever a change looks like."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.changes.level_shift import Direction
from history.changes.repository import Change, Member
from history.changes.rules.mutes import Mute
from history.changes.rules.owners import MAX_RULES, OwnerRule, owners_of
from history.series.series import Night, SeriesKey
from history.store.records import ChangeStatus, Environment

pytestmark = pytest.mark.deep("mutes that hypothesis draws")

NIGHT = Night(1, datetime(2026, 3, 1, tzinfo=UTC), "postgres@18.6", None, None)
MUTE = Mute("the new allocator costs this", date(2026, 12, 31))

STEPS, METRICS, BOXES = ("insert", "delete"), ("qps", "instructions_per_op"), ("db1", "db2")
BRANCHES, SUITES = ("postgres@master", "postgres@master#o3", "mysql@trunk"), ("write-heavy", "tpcc")


def member(step: str, metric: str, box: str, branch: str, ratio: float, *, is_gone: bool = False) -> Member:
    key = SeriesKey(Environment(box, "write-heavy", "short"), branch, step, metric)
    levels = {"level_before": 1.0, "level_after": ratio, "ratio_low": ratio, "ratio_high": ratio}
    nights = {"last_before": NIGHT, "first_after": NIGHT, "raised": NIGHT, "gone": NIGHT if is_gone else None}
    return Member(series_id=1, key=key, confidence=0.999, **nights, **levels)  # type: ignore[arg-type]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    branch, suite = draw(st.sampled_from(BRANCHES)), draw(st.sampled_from(SUITES))
    members = draw(
        st.lists(
            st.builds(
                lambda step, metric, box, ratio, gone: member(step, metric, box, branch, ratio, is_gone=gone),
                *map(st.sampled_from, (STEPS, METRICS, BOXES)),
                st.floats(0.5, 1.5).filter(lambda ratio: ratio != 1),
                st.booleans(),
            ),
            min_size=1,
            max_size=4,
        )
    )
    directions = {one.direction for one in members}
    direction = Direction.MIXED if len(directions) > 1 else directions.pop()
    at = NIGHT.started_at
    return Change(1, "c0ffee", branch, suite, direction, ChangeStatus.OPEN, None, at, at, tuple(members))


@st.composite
def mutes(draw: st.DrawFn) -> Mute:
    def some(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(draw(st.lists(st.sampled_from(values), max_size=2, unique=True)))

    return replace(
        MUTE,
        suites=some(SUITES),
        steps=some(STEPS),
        metrics=some(METRICS),
        boxes=some(BOXES),
        branches=some((*BRANCHES, "postgres@*", "*#o3")),
        direction=draw(st.sampled_from((None, Direction.WORSE, Direction.BETTER))),
        below_percent=draw(st.sampled_from((None, 1.0, 10.0, 40.0))),
    )


@given(mutes(), changes())
def test_a_mute_matches_a_change_if_it_covers_all_that_the_change_is_told_by(
    mute: Mute, change: Change
) -> None:
    lasting = [one for one in change.leading if one.gone is None]
    alone = [mute.matches(replace(change, members=(one,), direction=one.direction)) for one in lasting]
    assert mute.matches(change) is (bool(lasting) and all(alone))


@given(mutes(), changes())
def test_a_condition_less_never_mutes_less(mute: Mute, change: Change) -> None:
    if not mute.matches(change):
        return
    for name in ("suites", "steps", "metrics", "boxes", "branches"):
        fewer: dict[str, Any] = {name: ()}
        assert replace(mute, **fewer).matches(change)
    assert replace(mute, direction=None).matches(change)
    assert replace(mute, below_percent=(mute.below_percent or 50.0) + 1).matches(change)


@given(changes(), st.floats(0.1, 60))
def test_a_mute_of_a_size_is_of_what_is_smaller(change: Change, below: float) -> None:
    sizes = [100 * abs(one.ratio - 1) for one in change.leading if one.gone is None]
    assert replace(MUTE, below_percent=below).matches(change) is (bool(sizes) and max(sizes) < below)


@given(mutes(), mutes())
def test_mutes_of_the_same_conditions_have_the_same_name_and_no_others(one: Mute, other: Mute) -> None:
    assert (str(one) == str(other)) is (one == other)


@pytest.mark.parametrize(
    ("branches", "is_match"),
    [
        (("postgres@master",), False),
        (("postgres@master*",), True),
        (("*#o3",), True),
        (("mysql@*", "postgres@*"), True),
    ],
)
def test_branches_are_patterns_which_a_variant_is_part_of(branches: tuple[str, ...], is_match: bool) -> None:
    at = NIGHT.started_at
    moved = member("insert", "qps", "db1", "postgres@master#o3", 0.9)
    change = Change(
        1, "c", "postgres@master#o3", "tpcc", Direction.WORSE, ChangeStatus.OPEN, None, at, at, (moved,)
    )
    assert replace(MUTE, branches=branches).matches(change) is is_match


def test_the_last_day_of_a_mute_is_part_of_it() -> None:
    assert MUTE.holds_at(datetime(2026, 12, 31, 23, 59, tzinfo=UTC))
    assert not MUTE.holds_at(datetime(2027, 1, 1, tzinfo=UTC))


# --- owners

STORAGE = OwnerRule(("src/backend/access/**",), assignee="alice", mentions=("org/storage",))
EVERYTHING = OwnerRule(mentions=("org/performance",))
PARSER = OwnerRule(("src/backend/parser/",), assignee="bob")
IN_TPCC = OwnerRule(suites=("tpcc",), assignee="carol")


def owned(change: Change, *rules: OwnerRule, paths: list[str] | None = None) -> list[tuple[str, bool]]:
    return [(owner.account, owner.is_assignee) for owner in owners_of(rules, change, paths)]


@given(changes())
def test_the_last_rule_that_matches_a_file_counts(change: Change) -> None:
    heap, parser = "src/backend/access/heap/heapam.c", "src/backend/parser/gram.y"
    assert owned(change, EVERYTHING, STORAGE, paths=[heap]) == [("alice", True), ("org/storage", False)]
    assert owned(change, STORAGE, EVERYTHING, paths=[heap]) == [("org/performance", False)]
    assert owned(change, EVERYTHING, STORAGE, paths=None) == [("org/performance", False)]
    assert owned(change, STORAGE, PARSER, paths=["README"]) == []
    both = owned(change, STORAGE, PARSER, paths=[parser, heap, "src/backend/access/nbtree/nbtree.c"])
    assert both == [("alice", True), ("org/storage", False), ("bob", False)]
    expected = [("carol", True)] if change.suite == "tpcc" else [("org/performance", False)]
    assert owned(change, EVERYTHING, IN_TPCC, paths=[heap]) == expected


RULES = st.lists(
    st.builds(
        OwnerRule,
        st.lists(st.sampled_from(("*.c", "/src/", "doc/**")), max_size=2).map(tuple),
        st.lists(st.sampled_from(SUITES), max_size=1).map(tuple),
        st.lists(st.sampled_from(STEPS), max_size=1).map(tuple),
        st.sampled_from(("", "alice", "bob")),
        st.lists(st.sampled_from(("carol", "org/a", "org/b")), max_size=2).map(tuple),
    ),
    max_size=6,
)


@given(RULES, changes(), st.none() | st.lists(st.sampled_from(("src/a.c", "doc/b", "c")), max_size=3))
def test_a_change_has_each_owner_once_and_one_assignee(
    rules: list[OwnerRule], change: Change, paths: list[str] | None
) -> None:
    owners = owners_of(rules, change, paths)
    accounts = [owner.account for owner in owners]
    assert len(set(accounts)) == len(accounts)
    assert sum(owner.is_assignee for owner in owners) <= 1
    assert len({owner.rule for owner in owners}) <= MAX_RULES
    assert {owner.rule for owner in owners} <= {str(rule) for rule in rules}
