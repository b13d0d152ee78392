"""Which functions gained: sums, shares, and errors over rounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.comparison.profile_diff import costs, differential, total
from history.store.profiles import packed, unpacked
from suites.profiling.stacks import StepProfile


def profile(stacks: dict[str, int], queries: float = 1000.0) -> StepProfile:
    return StepProfile("cpu-clock", 1000.0, queries, 0, stacks)


BASE = {"client backend;main;exec;update": 60, "client backend;main;exec": 20, "walwriter;main;flush": 20}
SLOWER = {**BASE, "client backend;main;exec;update;burn": 25}

function = st.sampled_from(["main", "exec", "update", "burn", "flush"])
stacks = st.dictionaries(
    st.lists(function, min_size=1, max_size=6).map(lambda frames: ";".join(["role", *frames])),
    st.integers(1, 500),
    min_size=1,
    max_size=12,
)


def test_what_was_planted_comes_first_and_explains_everything() -> None:
    both = differential({1: profile(BASE)}, {1: profile(SLOWER)})
    first = both.functions[0]
    assert first.name == "burn"
    assert [first.own_change, first.own_share] == pytest.approx([25.0, 1.0])
    assert both.contender_total - both.base_total == pytest.approx(25.0)
    update = next(change for change in both.functions if change.name == "update")
    assert [update.own_change, update.whole_change] == pytest.approx([0, 25.0])
    assert [change.name for change in both.gained(3)] == ["burn"]


def test_it_counts_per_query_and_not_per_sample() -> None:
    twice = {stack: 2 * count for stack, count in BASE.items()}
    both = differential({1: profile(BASE, 1000)}, {1: profile(twice, 2000)})
    assert all(change.own_change == pytest.approx(0) for change in both.functions)
    assert both.functions[0].own_share is None
    assert both.gained(3) == () or all(change.own_change < 1e-9 for change in both.gained(3))


def test_recursion_counts_once() -> None:
    found = costs(profile({"role;main;walk;walk;walk": 10}))
    assert [found["walk"].own, found["walk"].whole] == pytest.approx([10, 10])


def test_errors_come_from_the_rounds_that_both_have() -> None:
    base = {number: profile({"role;main;work": 100}) for number in (1, 2, 3, 4)}
    contender = {
        number: profile({"role;main;work": n}) for number, n in ((1, 110), (2, 112), (3, 108), (9, 500))
    }
    both = differential(base, contender)
    work = next(change for change in both.functions if change.name == "work")
    assert work.own_error == pytest.approx(2 / 3**0.5)
    assert work.is_certain
    few = differential({1: base[1], 2: base[2]}, {1: contender[1], 2: contender[2]})
    assert few.functions[0].own_error is None
    assert not few.functions[0].is_certain


@given(stacks, stacks, st.integers(1, 10**6), st.integers(1, 10**6))
def test_own_times_sum_to_the_total(
    old: dict[str, int], new: dict[str, int], before: int, after: int
) -> None:
    both = differential({1: profile(old, before)}, {1: profile(new, after)})
    assert sum(change.base.own for change in both.functions) == pytest.approx(both.base_total)
    assert sum(change.contender.own for change in both.functions) == pytest.approx(both.contender_total)
    assert both.base_total == pytest.approx(total(profile(old, before)))
    for change in both.functions:
        assert change.base.whole >= change.base.own - 1e-12
        assert change.contender.whole <= both.contender_total * (1 + 1e-9)
    shares = [change.own_share for change in both.functions if change.own_share is not None]
    assert not shares or sum(shares) == pytest.approx(1, abs=1e-6)


@given(st.dictionaries(st.text(), st.integers(0, 10**9)))
def test_stacks_survive_storing(found: dict[str, int]) -> None:
    assert unpacked(packed(found)) == found
