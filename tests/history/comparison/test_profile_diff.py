"""Which functions gained: sums, shares, and errors over rounds."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.comparison.profile_diff import costs, differential, total
from history.rendering.profiles import conclusion, labelled
from history.store.profiles import packed, unpacked
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY, StepProfile


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


def exact(own: dict[str, int], calls: dict[str, int]) -> StepProfile:
    stacks = {f"client backend;{name}": count for name, count in own.items()}
    return StepProfile(COUNTED_EVENT, COUNTED_FREQUENCY, 10.0, 0, stacks, calls)


RENAMED = exact({"prune": 15_000, "build": 7_000, "exec": 90_000}, {"prune": 333, "build": 100, "exec": 50})


def test_a_function_with_another_name_is_one_row() -> None:
    """As often called, and one name begins with the other: what is left is what the function gained."""
    new = exact(
        {"prune_and_freeze": 14_000, "build_ext": 6_000, "exec": 93_000},
        {"prune_and_freeze": 334, "build_ext": 120, "exec": 50},
    )
    both = differential({1: RENAMED}, {1: new})
    found = {change.name: (change.former, change.own_change) for change in both.functions}
    assert found == {
        "exec": ("", 300),
        "prune_and_freeze": ("prune", -100),
        "build": ("", -700),  # called less often than what its name begins
        "build_ext": ("", 600),
    }
    pruned = next(change for change in both.functions if change.former)
    assert pruned.calls == (33.3, 33.4)
    assert labelled(pruned) == "prune_and_freeze (was prune)"


def test_a_function_with_other_parameters_is_one_row() -> None:
    old = exact({"trx_prepare(trx_t*)": 3_000, "trx_commit(trx_t*)": 500}, {"trx_prepare(trx_t*)": 10})
    new = exact({"trx_prepare(undo_t*)": 4_000, "trx_commit(trx_t*)": 500}, {"trx_prepare(undo_t*)": 10})
    first = differential({1: old}, {1: new}).functions[0]
    assert (labelled(first), first.own_change) == ("trx_prepare(undo_t*) (was trx_prepare(trx_t*))", 100)


def test_the_sentence_names_what_moved_as_the_whole_did() -> None:
    """What lost most is no reason why the whole gained, and no share is above all of it."""
    new = exact({"build": 7_000, "exec": 120_000}, {"build": 100, "exec": 50})
    said = conclusion(differential({1: RENAMED}, {1: new}), "a", "b")
    assert said == "b uses 3000 instructions more per query in exec than a."


def rounds_of(*counts: dict[str, int]) -> dict[int, StepProfile]:
    return {
        number: profile({f"role;main;{name}": n for name, n in of.items()})
        for number, of in enumerate(counts)
    }


def beside_others(*counts: int) -> dict[int, StepProfile]:
    """A function beside 50 others that scatter as counts do."""
    draw = random.Random(sum(counts))
    others = ({f"f{place}": round(draw.gauss(100, 10)) for place in range(50)} for _ in counts)
    return rounds_of(*({**of, "work": n} for of, n in zip(others, counts, strict=True)))


def test_a_change_is_certain_when_its_interval_excludes_zero() -> None:
    base = beside_others(100, 104, 97)
    both = differential(base, beside_others(210, 195, 204))
    (work,) = both.certain
    assert (work.name, both.functions[0]) == ("work", work)
    assert work.own_interval is not None
    low, high = work.own_interval
    assert 0 < low < work.own_change < high
    # As many samples more, but in one round alone: that is how a checkpoint looks.
    assert differential(base, beside_others(408, 97, 104)).certain == ()


def test_more_functions_make_wider_intervals() -> None:
    def width(functions: int) -> float:
        of = {f"f{number}": 100 for number in range(functions)}
        found = differential(rounds_of(of, of, of), rounds_of(of, of, of)).functions[0].own_interval
        assert found is not None
        return found[1] - found[0]

    assert width(5) < width(50) < width(500)


def test_too_few_rounds_or_samples_have_no_interval() -> None:
    two = rounds_of({"work": 100, "rare": 1}, {"work": 100, "rare": 1})
    assert all(function.own_interval is None for function in differential(two, two).functions)
    three = {**two, 3: two[0]}
    found = {function.name: function.own_interval for function in differential(three, three).functions}
    assert found["work"] is not None
    assert found["rare"] is None
    assert differential(three, three).total_interval is not None
    assert differential(three, two).rounds == 2


@pytest.mark.deep("hundreds of simulated sessions")
@pytest.mark.parametrize("scatter", [0.0, 0.1])
def test_noise_is_rarely_called_certain(scatter: float) -> None:
    """Of 40 tables without a change at most 5 may name a function: 2 are expected (95 %)."""
    draw = random.Random(7)

    def taken() -> dict[str, int]:
        means = (600 * 0.95**place * draw.lognormvariate(0, scatter) for place in range(80))
        return {f"f{place}": max(0, round(draw.gauss(mean, mean**0.5))) for place, mean in enumerate(means)}

    tables = [
        differential(rounds_of(*(taken() for _ in range(3))), rounds_of(*(taken() for _ in range(3))))
        for _ in range(40)
    ]
    assert sum(bool(table.certain) for table in tables) <= 5


@pytest.mark.deep("hundreds of simulated sessions")
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
