"""Blocks that bursts of background work reached: which are left out, and what that does to verdicts."""

import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.bursts import MIN_SHARE, blocks_with_bursts
from history.stats.estimators import MINIMUM_REPETITIONS, Interval
from history.stats.repeated_intervals import Design, sequential_interval

BLOCKS = range(1, 16)


@pytest.mark.parametrize(
    ("bursts", "left_out"),
    [
        (set(), set()),
        ({4}, {4, 5}),
        ({15}, {15}),
        ({7, 8, 12}, {7, 8, 9, 12, 13}),
        ({1, 3, 5, 7, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
        ({1, 3, 5, 7, 9, 12}, set()),  # three would remain, and bursts are the usual
        ({16, 0}, {1}),  # of blocks that are not there
    ],
)
def test_a_block_with_a_burst_and_the_one_after_it_are_left_out(bursts: set[int], left_out: set[int]) -> None:
    assert blocks_with_bursts(BLOCKS, bursts) == left_out


@given(st.lists(st.integers(1, 30), unique=True).map(sorted), st.sets(st.integers(0, 31)))
def test_enough_blocks_remain_whatever_bursts_there_are(numbers: list[int], bursts: set[int]) -> None:
    left_out = blocks_with_bursts(numbers, bursts)
    assert left_out <= {*numbers}
    if left_out:
        assert len(numbers) - len(left_out) >= max(MINIMUM_REPETITIONS, MIN_SHARE * len(numbers))
        assert not bursts & ({*numbers} - left_out)


def intervals(ratio: float, *, leaves_out: bool) -> Iterator[Interval]:
    """Sessions of 15 blocks of two versions, whose throughput halves in the two or three blocks with a vacuum
    and suffers in the one after it."""
    rng = random.Random(37)
    for _ in range(300):
        logs, bursts = [math.log(ratio) + rng.gauss(0, 0.03) for _ in BLOCKS], set()
        for side in (1, -1):
            for number in rng.sample(BLOCKS, rng.choice((2, 3))):
                bursts.add(number)
                logs[number - 1] -= side * rng.uniform(0.3, 1.0)
                if number < len(logs):
                    logs[number] -= side * rng.uniform(0.0, 0.5)
        left_out = blocks_with_bursts(BLOCKS, bursts) if leaves_out else frozenset()
        places = [number - 1 for number in left_out]
        found = sequential_interval(logs, Design(steps=1, least=15, cap=15), None, places)
        assert found is not None
        yield found


def test_a_change_is_found_that_bursts_would_hide_and_none_is_made_up() -> None:
    assert sum(not found.low < 1 < found.high for found in intervals(1.0, leaves_out=True)) <= 12  # 2 %
    assert sum(found.high < 1 for found in intervals(0.93, leaves_out=True)) > 200
    assert sum(found.high < 1 for found in intervals(0.93, leaves_out=False)) < 30
