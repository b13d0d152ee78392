"""Who works when: schedules that treat all servers alike, whatever the machine does meanwhile."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.slices import Schedule, balanced_block, mirrored

servers = st.integers(1, 5)
seconds = st.floats(0.5, 100)
slices = st.floats(0.1, 10)
warming = st.floats(0, 20)
seeds = st.tuples(st.integers(), st.text(max_size=5), st.integers(1, 20))


@given(servers, seconds, slices, seeds, warming)
def test_every_server_gets_as_many_slices_and_an_even_number(
    count: int, length: float, slice_seconds: float, seed: object, warm: float
) -> None:
    schedule = mirrored(range(count), length, slice_seconds, seed, warm)
    counted = [len(schedule.counted(server)) for server in range(count)]
    assert len(set(counted)) == 1
    assert counted[0] >= 2
    assert counted[0] % 2 == 0
    assert schedule.servers == count
    assert schedule.seconds == pytest.approx(slice_seconds * len(schedule.order))
    if length >= 2 * slice_seconds:
        assert counted[0] * slice_seconds == pytest.approx(length, abs=1.01 * slice_seconds)


@given(servers, seconds, slices, seeds, warming)
def test_each_block_is_an_order_and_the_same_backwards(
    count: int, length: float, slice_seconds: float, seed: object, warm: float
) -> None:
    schedule = mirrored(range(count), length, slice_seconds, seed, warm)
    order = schedule.order[schedule.warming :]
    assert len(order) % (2 * count) == 0
    for at in range(0, len(order), 2 * count):
        block = order[at : at + 2 * count]
        assert block == block[::-1]
        assert sorted(block[:count]) == list(range(count))


@given(servers, seconds, slices, seeds, warming)
def test_a_steady_drift_hits_all_alike(
    count: int, length: float, slice_seconds: float, seed: object, warm: float
) -> None:
    """The mean place of the counted slices is the same for all: a trend along them falls out of a ratio."""
    schedule = mirrored(range(count), length, slice_seconds, seed, warm)
    sums = {sum(schedule.counted(server)) for server in range(count)}
    assert len(sums) == 1


@given(servers, seconds, slices, warming)
def test_warming_up_does_not_count(count: int, length: float, slice_seconds: float, warm: float) -> None:
    schedule = mirrored(range(count), length, slice_seconds, "seed", warm)
    assert Counter(schedule.order[: schedule.warming]) == dict.fromkeys(
        range(count if schedule.warming else 0), schedule.warming // count
    )
    # Whole slices, rounded up but for a hundredth.
    assert schedule.warming // count * slice_seconds >= warm - 0.02 * slice_seconds
    assert schedule.warming // count * slice_seconds <= warm + slice_seconds
    for server in range(count):
        kinds = schedule.kinds(server)
        assert len(kinds) == len(schedule.order)
        assert "1" not in kinds[: schedule.warming]
        assert "w" not in kinds[schedule.warming :]
        assert min(schedule.counted(server)) >= schedule.warming


@given(servers, seconds, slices, seeds, warming)
def test_one_server_works_at_a_time(
    count: int, length: float, slice_seconds: float, seed: object, warm: float
) -> None:
    schedule = mirrored(range(count), length, slice_seconds, seed, warm)
    for kinds in zip(*(schedule.kinds(server) for server in range(count)), strict=True):
        assert len(kinds) - kinds.count("0") == 1


@given(servers, seconds, slices, seeds)
def test_one_seed_is_one_schedule(count: int, length: float, slice_seconds: float, seed: object) -> None:
    assert mirrored(range(count), length, slice_seconds, seed) == mirrored(
        range(count), length, slice_seconds, seed
    )


@given(servers, st.integers(1, 4), st.integers(1, 30), seeds)
def test_every_two_blocks_give_each_place_to_each_order_and_its_reverse(
    count: int, turns: int, pair: int, seed: object
) -> None:
    first, second = (balanced_block(2 * pair - 1 + later, count, turns, 0.5, seed) for later in (0, 1))
    assert first == balanced_block(2 * pair - 1, count, turns, 0.5, seed), "a seed is one order"
    assert len(first.order) == len(second.order) == 2 * turns * count
    for begin in range(0, len(first.order), 2 * count):
        there, back = (of.order[begin : begin + count] for of in (first, second))
        assert sorted(there) == list(range(count))
        assert back == there[::-1]
        for of in (first, second):
            assert of.order[begin + count : begin + 2 * count] == of.order[begin : begin + count][::-1]


def test_which_of_two_orders_comes_first_is_drawn() -> None:
    firsts = [balanced_block(number, 2, 1, 10, (1, "insert")).order[0] for number in range(1, 400)]
    assert 60 < sum(firsts[::2]) < 140, "of 200 draws: 100, and 5.6 standard deviations"
    assert all(sum(firsts[place : place + 2]) == 1 for place in range(0, 398, 2))


def test_seeds_make_different_schedules() -> None:
    orders = {mirrored(range(3), 10, 0.5, (20260101, "insert", number)).order for number in range(1, 30)}
    assert len(orders) == 29


@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_server_is_equally_often_the_first(count: int) -> None:
    """Of 2000 seeds with one block each: a binomial with p = 1/count, 4 standard deviations either way."""
    trials = 2000
    first = Counter(mirrored(range(count), 1, 0.5, (7, "insert", seed)).order[0] for seed in range(trials))
    expected, deviation = trials / count, (trials / count * (1 - 1 / count)) ** 0.5
    assert first.keys() == set(range(count))
    assert all(abs(times - expected) < 4 * deviation for times in first.values())


def test_a_known_schedule() -> None:
    schedule = Schedule(0.5, (0, 1, 0, 1, 1, 0), warming=2)
    assert schedule.kinds(0) == "w01001"
    assert schedule.kinds(1) == "0w0110"
    assert schedule.counted(1) == (3, 4)
    assert schedule.seconds == 3


def test_the_server_that_works_at_a_moment() -> None:
    schedule = Schedule(0.5, (0, 1, 1))
    assert [schedule.worker(seconds) for seconds in (-0.1, 0.0, 0.4, 0.5, 1.4, 1.5)] == [
        None,
        0,
        0,
        1,
        1,
        None,
    ]
