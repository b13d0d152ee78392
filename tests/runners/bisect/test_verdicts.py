"""Searches of simulated ranges: each kind of verdict comes when it should."""

import math

import numpy as np
import pytest

from benchmarks.simulation.bisects.bisect_ranges import (
    SearchOutcome,
    SimulatedRange,
    drifting,
    falling,
    heavy,
    no_step,
    normal,
    one_step,
    search,
    slope,
    stalls,
    two_steps,
    wobbling,
)
from runners.bisect.inference.search import Observation, Rules, Search, SearchVerdict
from runners.bisect.inference.stopping import heavier_side


def stepped(length: int, *steps: tuple[int, float], broken: frozenset[int] = frozenset()) -> SimulatedRange:
    levels = np.zeros(length + 1)
    for position, size in steps:
        levels[position:] += math.log1p(size)
    return SimulatedRange(levels, tuple(position for position, _ in steps), broken)


def ended(
    commits: SimulatedRange, seed: int = 1, noise: float = 0.02, rules: Rules | None = None
) -> SearchOutcome:
    return search(commits, normal(np.random.default_rng(seed), noise), rules)


@pytest.mark.parametrize("culprit", [1, 2, 40, 63, 64])
def test_the_culprit_wherever_it_is(culprit: int) -> None:
    commits = stepped(64, (culprit, -0.05))
    verdict = ended(commits, culprit).verdict
    assert commits.right(verdict)
    assert verdict.confidence >= Rules().stop
    assert [step.high for step in verdict.steps] == [culprit]


@pytest.mark.parametrize("only_bad", [True, False])
def test_no_commit_is_to_blame_for_what_changes_while_the_search_goes_on(only_bad: bool) -> None:
    for seed in range(3):
        rng = np.random.default_rng((8, seed))
        verdict = search(falling(rng, 64, 0.04, only_bad=only_bad), normal(rng, 0.035)).verdict
        assert verdict.kind == "moving"
        assert not verdict.blamed
        assert verdict.interval[0] < 0.98 < 1 <= verdict.interval[1], "no change, and all it moved through"


@pytest.mark.deep("searches that are simulated many times")
def test_the_interval_of_a_size_holds_the_size() -> None:
    held = 0
    for seed in range(20):
        verdict = ended(stepped(64, (63, -0.05)), seed).verdict
        held += verdict.interval[0] < 0.95 < verdict.interval[1]
        assert verdict.interval[1] - verdict.interval[0] < 0.05
    assert held >= 18


def test_one_candidate_is_the_culprit_once_it_differs() -> None:
    assert ended(stepped(1, (1, -0.1))).verdict.kind == "culprit"


@pytest.mark.deep("searches that are simulated many times")
@pytest.mark.parametrize("noise", [heavy, stalls, normal])
def test_most_are_right_in_any_noise(noise: object) -> None:
    right = 0
    for seed in range(6):
        rng = np.random.default_rng((7, seed))
        commits = one_step(rng, 64, 0.05)
        right += commits.right(search(commits, noise(rng, 0.025)).verdict)  # type: ignore[operator]
    assert right >= 5


@pytest.mark.deep("searches that are simulated many times")
def test_most_are_right_when_layouts_wobble() -> None:
    right = 0
    for seed in range(6):
        rng = np.random.default_rng((8, seed))
        commits = wobbling(rng, one_step(rng, 64, 0.05), 0.005)
        right += commits.right(search(commits, normal(rng, 0.02)).verdict)
    assert right >= 5


def test_none_where_nothing_changes() -> None:
    for seed in range(15):
        verdict = ended(no_step(64), seed).verdict
        assert verdict.kind == "none"
        assert verdict.smallest_seen <= 0.02
        assert (verdict.low, verdict.high) == (0, 64)


def test_a_difference_below_the_threshold_is_none() -> None:
    assert ended(stepped(64, (9, -0.008)), 3).verdict.kind == "none"


def test_swapped_is_said_at_once() -> None:
    outcome = ended(stepped(64, (9, 0.1)))
    assert outcome.verdict.kind == "swapped"
    assert outcome.verdict.size == pytest.approx(1.1, abs=0.03)
    assert outcome.builds == 2


def test_either_direction_finds_both() -> None:
    for size in (-0.1, 0.1):
        commits = stepped(64, (9, size))
        assert commits.right(ended(commits, 2, rules=Rules(direction="either")).verdict)
        asked = Rules(direction="worse" if size < 0 else "better")
        assert commits.right(ended(commits, 2, rules=asked).verdict)


def test_a_culprit_between_commits_that_do_not_compile_is_a_range() -> None:
    commits = stepped(64, (30, -0.1), broken=frozenset({28, 29, 30, 31}))
    verdict = ended(commits).verdict
    assert (verdict.kind, verdict.low, verdict.high) == ("range", 27, 32)


def test_broken_neighbours_do_not_hide_a_culprit() -> None:
    commits = stepped(64, (30, -0.1), broken=frozenset({20, 28, 31, 32, 33, 48}))
    assert commits.right(ended(commits).verdict)


@pytest.mark.deep("searches that are simulated many times")
def test_two_steps_are_both_named() -> None:
    for seed in range(4):
        rng = np.random.default_rng((9, seed))
        commits = two_steps(rng, 128, (0.1, 0.1))
        verdict = search(commits, normal(rng, 0.02)).verdict
        assert verdict.kind == "two-steps"
        assert [(step.low, step.high) for step in verdict.steps] == [(at - 1, at) for at in commits.culprits]
        assert all(0.85 < step.size < 0.95 for step in verdict.steps)


def test_a_loss_that_is_won_back_in_part_is_two_steps() -> None:
    verdict = ended(stepped(64, (20, -0.2), (44, 0.1)), 4).verdict
    assert verdict.kind == "two-steps"
    assert [step.high for step in verdict.steps] == [20, 44]


@pytest.mark.parametrize(
    ("small", "large"), [((20, -0.03), (44, -0.25)), ((44, -0.03), (20, -0.25)), ((44, 0.04), (20, -0.25))]
)
def test_a_much_smaller_step_elsewhere_is_said_and_holds_nothing_up(
    small: tuple[int, float], large: tuple[int, float]
) -> None:
    outcome = ended(stepped(64, *sorted((small, large))), 3)
    verdict = outcome.verdict
    assert (verdict.kind, verdict.high) == ("culprit", large[0])
    assert verdict.interval[0] < 1 + large[1] < verdict.interval[1]
    assert [step.confidence for step in verdict.steps] == [verdict.confidence]
    assert outcome.rounds <= 25


def test_of_a_much_smaller_step_it_is_said_where_and_how_large_it_is() -> None:
    """Rounds enough to tell 3 % from nothing; two places are left for it."""
    levels = {8: 0.0, 12: 0.0, 20: -0.03, 29: -0.03, 30: -0.28, 48: -0.28, 64: -0.28}
    found = told(64, levels, dict.fromkeys(levels, 12), 0.01).next()
    assert isinstance(found, SearchVerdict)
    assert (found.kind, found.high) == ("culprit", 30)
    assert found.rest is not None
    assert (found.rest.low, found.rest.high) == (12, 20)
    assert found.rest.interval[0] < math.exp(-0.03) < found.rest.interval[1] < 1
    assert found.size == pytest.approx(math.exp(-0.25), abs=0.01)  # and not all of what bad lost
    behind = {8: 0.0, 29: 0.0, 30: -0.25, 40: -0.25, 48: -0.29, 64: -0.29}
    found = told(64, behind, dict.fromkeys(behind, 12), 0.01).next()
    assert isinstance(found, SearchVerdict)
    assert (found.kind, found.high) == ("culprit", 30)
    assert found.rest is not None
    assert (found.rest.low, found.rest.high) == (40, 48)
    assert found.size == pytest.approx(math.exp(-0.25), abs=0.01)


def test_the_range_of_a_smaller_step_does_not_hold_the_larger_one() -> None:
    masses = np.array([0.1, 0.3, 0.0, 0.2, 0.1])
    assert heavier_side(masses, 2).tolist() == [0.1, 0.3, 0.0, 0.0, 0.0]
    assert heavier_side(masses[::-1], 2).tolist() == [0.0, 0.0, 0.0, 0.3, 0.1]


def test_one_step_alone_has_no_rest() -> None:
    levels = {8: 0.0, 29: 0.0, 30: -0.25, 48: -0.25, 64: -0.25}
    found = told(64, levels, dict.fromkeys(levels, 12), 0.01).next()
    assert isinstance(found, SearchVerdict)
    assert (found.kind, found.rest) == ("culprit", None)


@pytest.mark.deep("searches that are simulated many times")
def test_small_changes_all_along_hide_no_large_one() -> None:
    rounds = []
    for seed in range(3, 11):
        rng = np.random.default_rng((12, seed))
        commits = drifting(rng, one_step(rng, 256, 0.2), 0.02)
        outcome = search(commits, normal(rng, 0.035))
        assert commits.right(outcome.verdict)
        rounds.append(outcome.rounds)
    assert np.mean(rounds) <= 15
    assert max(rounds) <= 20


def test_a_slope_is_no_commit_s() -> None:
    for seed in range(4):
        rng = np.random.default_rng((10, seed))
        assert search(slope(rng, 256, 0.2), normal(rng, 0.02)).verdict.kind == "slope"


def test_it_gives_up_in_the_end() -> None:
    rules = Rules(most_rounds=40, most_confirming=40)
    outcome = ended(stepped(256, (30, -0.04)), 1, 0.05, rules)
    assert outcome.verdict.kind == "undecided"
    assert outcome.rounds <= 48
    assert outcome.verdict.low < outcome.verdict.high


def test_one_stalled_round_is_no_change() -> None:
    found = Search(16)
    found.observe_all([Observation(16, value) for value in (0.004, -0.6, -0.003)])
    answer = found.next()
    assert not isinstance(answer, SearchVerdict)
    assert answer.positions == (16,)


def told(length: int, levels: dict[int, float], rounds: dict[int, int], noise: float = 0.02) -> Search:
    """A search with evenly spread rounds around the levels of some positions."""
    asked = Search(length)
    for position, level in levels.items():
        spread = np.linspace(-1.5, 1.5, rounds[position]) * noise
        asked.observe_all([Observation(position, float(level + error)) for error in spread])
    return asked


def test_bad_is_measured_again_when_a_second_step_may_follow() -> None:
    """Five rounds of bad leave open whether it is worse than the culprit."""
    rounds = {2: 4, 3: 8, 4: 8, 6: 3, 8: 5}
    answer = told(8, {2: 0.0, 3: 0.0, 4: -0.1, 6: -0.1, 8: -0.135}, rounds, 0.03).next()
    assert not isinstance(answer, SearchVerdict)
    assert answer.positions == (8,)
    answer = told(8, {2: 0.0, 3: 0.0, 4: -0.1, 6: -0.1, 8: -0.11}, rounds, 0.03).next()
    assert isinstance(answer, SearchVerdict)
    assert (answer.kind, answer.high) == ("culprit", 4)


def test_three_points_are_no_slope_yet() -> None:
    line = {position: -0.003 * position for position in (16, 32, 48, 64)}
    asked = told(64, line, dict.fromkeys(line, 20))
    assert asked.alternatives["slope"] > Rules().stop
    answer = asked.next()
    assert not isinstance(answer, SearchVerdict)
    assert answer.positions[0] not in line
