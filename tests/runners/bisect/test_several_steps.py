"""Searches of ranges with several steps: those that make bad differ are named, no others."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.simulation.bisects import varying_ranges
from benchmarks.simulation.bisects.bisect_ranges import normal, search
from benchmarks.simulation.bisects.stepped_ranges import CASES, SteppedCase, named, stepped_figure
from runners.bisect.domain.rules import Measure, Observation, SearchVerdict
from runners.bisect.inference.explanations import net_steps
from runners.bisect.inference.search import Search
from tests.runners.bisect.stand import a_question

pytestmark = pytest.mark.deep("searches that are simulated many times")

DIP = (0.85, 1 / 0.85, 0.95)
THRESHOLD = math.log(1.02)


def searched(case: SteppedCase, seed: int) -> tuple[bool, SearchVerdict, tuple[int, ...]]:
    """Return whether the answer is right, the verdict, and the positions of the steps to be named."""
    rng = np.random.default_rng((15, seed))
    commits = case.make(rng)
    outcome = search(commits, normal(rng, case.deviation))
    return named(commits, outcome), outcome.verdict, commits.culprits


@pytest.mark.parametrize(
    ("changes", "net"),
    [(DIP, (2,)), ((1.15, 1 / 1.15, 0.95), (2,)), ((0.95, 0.85, 1 / 0.85), (0,)), ((0.9, 0.9), (0, 1))],
    ids=["dip", "reverted-improvement", "dip-afterwards", "two-culprits"],
)
def test_what_makes_bad_differ_is_named(changes: tuple[float, ...], net: tuple[int, ...]) -> None:
    right = sum(searched(SteppedCase("", changes, net), seed)[0] for seed in range(8))
    assert right >= 7


def test_what_was_undone_is_told_beside_the_culprit() -> None:
    right, verdict, (culprit,) = searched(SteppedCase("", DIP, (2,), places=(0.25, 0.56, 0.75)), 2)
    assert right
    assert (verdict.kind, verdict.high) == ("culprit", culprit)
    assert verdict.size == pytest.approx(0.95, abs=0.02)
    down, up = verdict.undone
    assert down.low < 64 <= down.high
    assert up.low < 143 <= up.high
    assert down.size == pytest.approx(0.85, abs=0.04)
    assert up.size == pytest.approx(1 / 0.85, abs=0.05)


def test_a_dip_that_the_search_never_meets_is_not_told() -> None:
    right, verdict, _ = searched(SteppedCase("", DIP, (2,), places=(0.02, 0.04, 0.9)), 1)
    assert right
    assert verdict.undone == ()


def test_three_culprits_are_several_steps() -> None:
    right, verdict, culprits = searched(
        SteppedCase("", (0.9, 0.85, 0.9), (0, 1, 2), places=(0.1, 0.2, 0.8)), 3
    )
    assert right
    assert verdict.kind == "several-steps"
    assert tuple(step.high for step in verdict.steps) == culprits


def counted(length: int) -> tuple[Search, Callable[[int], None]]:
    """A search by exact counts that has located three close steps, and what counts a position once more."""
    levels = np.zeros(length + 1)
    for place, size in ((40, 0.986), (42, 0.928), (44, 1.025)):
        levels[place:] += math.log(size)
    question = a_question("good", "bad", metric="instructions_per_op", direction="either")
    search_ = Search(length, question.rules())

    def count(position: int) -> None:
        search_.observe(Observation(position, float(levels[position])))

    for position in (length, length, 39, 40, 41, 42, 43, 44):
        count(position)
    return search_, count


@pytest.mark.parametrize("length", [60, 250])
def test_a_count_that_tells_nothing_more_is_not_repeated(length: int) -> None:
    """Located steps and levels that vary both explain these counts; a count elsewhere tells them apart."""
    search_, count = counted(length)
    assert search_.alternatives["varying"] > 0.025
    passes = 0
    while isinstance(wanted := search_.next(), Measure):
        for position in wanted.positions * wanted.rounds:
            count(position)
            passes += 1
        assert passes <= 12
    assert [step.high for step in wanted.steps] == [42, 44]
    assert search_.alternatives["varying"] < 0.025


def test_positions_that_are_known_better_than_equal_code_is_alike_are_left_alone() -> None:
    """Whether the step at 16 is much smaller than the others is in doubt: repeated, no count tells."""
    levels = np.zeros(82)
    sizes = (0.07246, -0.06334, -0.05783, -0.08345, 0.00755, -0.01838, -0.06536)
    for place, size in zip((1, 2, 16, 19, 46, 48, 79), sizes, strict=True):
        levels[place:] += size
    question = a_question("good", "bad", metric="instructions_per_op", direction="either")
    search_, rng, passes = Search(81, question.rules()), np.random.default_rng(61), 0
    while isinstance(wanted := search_.next(), Measure):
        for position in wanted.positions * wanted.rounds:
            search_.observe(Observation(position, float(levels[position] + rng.normal(0, 0.0002))))
            passes += 1
        assert passes <= 400
    assert {19, 79} <= {step.high for step in wanted.steps} <= {16, 19, 79}


def test_where_nothing_else_can_be_measured_it_ends() -> None:
    search_, _ = counted(60)
    for position in {*range(1, 39), *range(45, 60)}:
        search_.exclude(position)
    found = search_.next()
    assert isinstance(found, SearchVerdict)
    assert [step.high for step in found.steps] == [42, 44]
    assert 0.95 < found.confidence < 0.975, "it would not be named while anything could be measured"


@pytest.mark.parametrize(
    ("levels", "answer", "lesser", "undone"),
    [
        ([0, -0.16, 0, -0.05], (2,), (), ((0, 1),)),
        ([0, -0.05, 0.09, -0.05], (0,), (), ((1, 2),)),
        ([0, -0.05, -0.1], (0, 1), (), ()),
        ([0, -0.3, -0.25], (0,), (1,), ()),
        ([0, -0.16, 0.01, -0.1, 0, -0.05], (4,), (), ((0, 1, 2, 3),)),
        ([0, -0.2, -0.1], (0, 1), (), ()),
    ],
)
def test_steps_that_cancel(
    levels: list[float], answer: tuple[int, ...], lesser: tuple[int, ...], undone: tuple[tuple[int, ...], ...]
) -> None:
    assert net_steps(range(len(levels) - 1), levels, THRESHOLD) == (answer, lesser, undone)


def test_where_levels_vary_all_along_no_commit_is_named() -> None:
    figure = varying_ranges.varying_figure(varying_ranges.CASES[0], 0, 4)
    assert figure.value == 100
    assert "varying" in figure.note


def test_only_kinds_that_the_search_was_made_for_have_a_target() -> None:
    figure = stepped_figure(CASES[1], 1, 2)
    assert (figure.value, figure.at_least) == (100, None)  # of two trials
    unseen = [case for case in CASES if not case.is_tuned]
    assert unseen
    assert stepped_figure(unseen[0], CASES.index(unseen[0]), 1).name.startswith("not tuned on: ")
