"""A search that goes on until its steps make up the whole difference: steps, sizes, and what is reused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.simulation.bisects.bisect_ranges import SimulatedRange, wobbling
from runners.bisect.domain.ancestry import ancestry_of
from runners.bisect.domain.rules import Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.whole.halving import is_exact
from runners.bisect.inference.whole.search import LOCATED, WholeSearch
from tests.runners.bisect.whole.stepped import COUNTED, EXACT, adds_up, stepped, whole_search

RESOLVED = 1.5 * math.log1p(COUNTED.threshold)
"""How far apart levels are that counts can tell from each other."""


@st.composite
def ranges(draw: st.DrawFn) -> SimulatedRange:
    """0 to 8 steps of 0.75 to 10 % in both directions, between levels of which no two are alike."""
    length = draw(st.integers(1, 120))
    places = sorted(draw(st.sets(st.integers(1, length), max_size=min(8, length))))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    while True:
        sizes = rng.uniform(RESOLVED, 0.1, len(places)) * rng.choice([-1, 1], len(places))
        levels = np.concatenate([[0.0], np.cumsum(sizes)])
        if np.diff(np.sort(levels)).min(initial=1.0) >= RESOLVED:
            return stepped(length, *zip(places, map(float, np.exp(sizes)), strict=True))


ROUNDS_USED_UP = stepped(
    81, (1, 1.07515), (2, 0.93863), (16, 0.94381), (19, 0.91994), (46, 1.00758), (48, 0.98179), (79, 0.93673)
)
"""A range whose first answer once took all of its rounds."""


@pytest.mark.deep("searches that are simulated many times")
@settings(max_examples=25, deadline=None)
@given(ranges(), st.integers(0, 1000))
@example(ROUNDS_USED_UP, 0)
def test_all_steps_of_exact_counts_are_found_and_add_up(commits: SimulatedRange, seed: int) -> None:
    verdict, rounds = whole_search(commits, COUNTED, seed, EXACT)
    if not commits.culprits:
        assert verdict.kind == "none"
        return
    assert verdict.kind in LOCATED
    assert tuple(step.high for step in verdict.steps) == commits.culprits
    for step in verdict.steps:
        true = commits.levels[step.high] - commits.levels[step.high - 1]
        assert math.log(step.size) == pytest.approx(true, abs=0.001)
    assert adds_up(verdict)
    assert verdict.whole is not None
    assert verdict.whole.unexplained == pytest.approx(1, abs=0.002)
    assert verdict.whole.parts == ()
    # As many positions as halving takes for each step alone, and those of the first answer.
    within = math.log2(commits.length) + 1
    assert len(rounds) <= len(commits.culprits) * within + 10


def test_dense_steps_are_no_levels_that_vary() -> None:
    """Every second commit changes something: the first answer names none of them."""
    culprits = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
    sizes = (1.03, 1.02, 1.05, 0.9, 0.97, 0.95, 1.31, 0.96, 1.015, 1.04)
    commits = stepped(22, *zip(culprits, sizes, strict=True))
    search = WholeSearch(22, COUNTED, 2.5)
    first, _ = whole_search(commits, COUNTED, 7, EXACT, search, is_whole=False)
    assert first.kind not in LOCATED
    verdict, _ = whole_search(commits, COUNTED, 7, EXACT, search)
    assert tuple(step.high for step in verdict.steps) == culprits
    assert adds_up(verdict)


@pytest.mark.parametrize("size", [1.0046, 1.005, 1.0054])
def test_a_change_of_just_the_threshold_is_searched(size: float) -> None:
    """Neither that it is smaller nor that it is larger will be certain: that took hundreds of passes."""
    verdict, rounds = whole_search(stepped(60, (23, size)), COUNTED, 3, EXACT)
    assert (verdict.kind, verdict.high) == ("culprit", 23)
    assert math.log(verdict.size) == pytest.approx(math.log(size), abs=0.0005)
    assert sum(rounds.values()) <= 30


def test_a_change_clearly_below_the_threshold_is_none() -> None:
    verdict, rounds = whole_search(stepped(60, (23, 1.004)), COUNTED, 3, EXACT)
    assert verdict.kind == "none"
    assert sum(rounds.values()) <= 10


def test_a_pass_that_did_not_do_its_work_is_no_step() -> None:
    """The first pass of a position is far off; the second and the third agree."""
    commits = stepped(40, (10, 1.02), (25, 0.9), (33, 1.008))
    search = WholeSearch(40, COUNTED, 2.5)
    seen: dict[int, int] = {}
    off: int | None = None
    while True:
        wanted = search.next()
        if not isinstance(wanted, Measure):
            if not search.has_more:
                break
            search.go_on()
            continue
        for place in wanted.positions * wanted.rounds:
            seen[place] = seen.get(place, 0) + 1
            if off is None and not search.is_first and seen[place] == 1:
                off = place
            is_off = place == off and seen[place] == 1
            level = commits.levels[place] - (0.3 if is_off else 0.0)
            search.observe(Observation(place, float(level + 0.0001 * seen[place])))
    assert off is not None
    assert seen[off] >= 3
    assert isinstance(wanted, SearchVerdict)
    assert [step.high for step in wanted.steps] == [10, 25, 33]


def test_a_slope_remains_one_and_is_not_explained() -> None:
    """No commit changes as much as the threshold: the ends of wide gaps differ, neighbours do not."""
    commits = SimulatedRange(np.linspace(0, 0.06, 61))
    verdict, rounds = whole_search(commits, COUNTED, 8, EXACT)
    assert (verdict.kind, verdict.steps) == ("slope", ())
    assert verdict.whole is not None
    assert verdict.whole.unexplained == pytest.approx(math.exp(0.06), abs=0.002)
    assert len(rounds) <= 40


def test_where_rounds_are_used_up_the_parts_that_differ_are_told() -> None:
    rules = replace(COUNTED, most_rounds=8, most_confirming=8)
    commits = stepped(200, (30, 1.03), (90, 1.05), (150, 0.9))
    verdict, _ = whole_search(commits, rules, 9, EXACT)
    assert verdict.whole is not None
    assert verdict.whole.parts
    for place in commits.culprits:
        found = [*verdict.steps, *verdict.whole.parts]
        assert any(place in step.suspects for step in found)


def test_only_what_single_rounds_tell_is_halved() -> None:
    assert is_exact(COUNTED)
    assert not is_exact(Rules())


def test_steps_far_smaller_than_the_first_are_found_too() -> None:
    commits = stepped(250, (31, 1.011), (120, 1.1), (200, 1 / 1.012))
    verdict, _ = whole_search(commits, COUNTED, 1, EXACT)
    assert (verdict.kind, [step.high for step in verdict.steps]) == ("several-steps", [31, 120, 200])
    assert verdict.rest is None


def test_a_part_begins_with_what_was_measured_before() -> None:
    """The second step lies between positions that the search for the first one had measured."""
    commits = stepped(64, (20, 1.02), (40, 1.1))
    search = WholeSearch(64, COUNTED, 2.5)
    first, _ = whole_search(commits, COUNTED, 2, EXACT, search, is_whole=False)
    assert first.high == 40
    verdict, rounds = whole_search(commits, COUNTED, 3, EXACT, search)
    assert [step.high for step in verdict.steps] == [20, 40]
    # A quarter of the 40 commits before the first answer lies between measured ones.
    assert sum(rounds.values()) <= 12


@pytest.mark.deep("searches that are simulated many times")
@pytest.mark.parametrize(
    "steps",
    [((40, 0.9),), ((20, 0.9), (70, 0.93)), ((15, 0.91), (50, 1.06), (80, 0.9)), ()],
    ids=["one", "two", "another direction", "none"],
)
def test_steps_are_found_in_noise(steps: tuple[tuple[int, float], ...]) -> None:
    right = 0
    for seed in range(6):
        commits = wobbling(np.random.default_rng((62, seed)), stepped(96, *steps), 0.001)
        verdict, _ = whole_search(commits, Rules(), seed, 0.01)
        found = tuple(step.high for step in verdict.steps)
        right += found == commits.culprits
        if steps:
            assert adds_up(verdict)
            assert verdict.whole is not None
            low, high = verdict.whole.unexplained_interval
            assert low < high
    assert right >= 5


def test_what_cannot_be_measured_makes_the_second_step_a_range() -> None:
    whole = stepped(64, (20, 1.03), (40, 1.1))
    commits = SimulatedRange(whole.levels, whole.culprits, frozenset({19, 20, 21}))
    verdict, _ = whole_search(commits, COUNTED, 4, EXACT)
    assert [(step.low, step.high) for step in verdict.steps] == [(18, 22), (39, 40)]
    assert adds_up(verdict)


def test_an_answer_without_steps_leaves_nothing_to_search() -> None:
    search = WholeSearch(16, COUNTED, 2.5)
    with pytest.raises(ValueError, match="no verdict yet"):
        search.go_on()
    verdict, _ = whole_search(stepped(16), COUNTED, 5, EXACT, search)
    assert (verdict.kind, verdict.whole) == ("none", None)


def test_of_merged_branches_the_line_behind_and_before_a_culprit_is_searched() -> None:
    """1 to 6 is a line; 7 to 9 and 10 to 12 are branches of 6, and 13 merges them."""
    parents = [(place - 1,) for place in range(1, 10)] + [(6,), (10,), (11,), (9, 12)]
    ancestry = ancestry_of(parents)
    assert ancestry is not None
    levels = np.zeros(14)
    for culprit, size in ((2, 1.02), (8, 1.1)):
        for place in range(1, 14):
            levels[place] += math.log(size) if ancestry.contains[place, culprit - 1] else 0.0
    search = WholeSearch(13, COUNTED, 2.5, None, ancestry)
    verdict, _ = whole_search(SimulatedRange(levels, (2, 8)), COUNTED, 6, EXACT, search)
    assert [tuple(step.suspects) for step in verdict.steps] == [(2,), (8,)]
    assert adds_up(verdict)


def test_of_merged_branches_the_line_is_halved_where_the_first_answer_names_nothing() -> None:
    """1 to 6 is a line; 7 to 9 is a branch of 6 and 10 one of 3, both merged: by 11 and 12; then 13 to 20."""
    parents = [(place - 1,) for place in range(1, 10)] + [(3,), (6, 9), (11, 10)]
    parents += [(place - 1,) for place in range(13, 21)]
    ancestry = ancestry_of(parents)
    assert ancestry is not None
    assert ancestry.trunk() == (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
    sizes = {2: 1.03, 4: 0.96, 5: 1.05, 8: 0.9, 10: 1.02, 13: 1.15, 14: 0.95, 16: 0.985, 18: 1.04, 20: 1.03}
    levels = np.zeros(21)
    for culprit, size in sizes.items():
        for place in range(1, 21):
            levels[place] += math.log(size) if ancestry.contains[place, culprit - 1] else 0.0
    search = WholeSearch(20, COUNTED, 2.5, None, ancestry)
    commits = SimulatedRange(levels, tuple(sizes))
    first, _ = whole_search(commits, COUNTED, 6, EXACT, search, is_whole=False)
    assert first.kind not in LOCATED
    verdict, _ = whole_search(commits, COUNTED, 6, EXACT, search)
    # 10 does not descend from 11, so that its change may also be that of its merge.
    suspects = [(10, 12) if place == 10 else (place,) for place in sizes]
    assert sorted(tuple(step.suspects) for step in verdict.steps) == suspects
    assert adds_up(verdict)
    assert verdict.whole is not None
    assert verdict.whole.unexplained == pytest.approx(1, abs=0.003)


def test_of_a_branch_that_began_earlier_the_commit_of_the_first_answer_is_kept() -> None:
    """1 to 9 is a line; 10 to 12 is a branch of 3, and 13 merges it."""
    parents = [(place - 1,) for place in range(1, 10)] + [(3,), (10,), (11,), (9, 12)]
    ancestry = ancestry_of(parents)
    assert ancestry is not None
    levels = np.zeros(14)
    for culprit, size in ((5, 1.008), (11, 1.1)):
        for place in range(1, 14):
            levels[place] += math.log(size) if ancestry.contains[place, culprit - 1] else 0.0
    search = WholeSearch(13, COUNTED, 2.5, None, ancestry)
    commits = SimulatedRange(levels, (5, 11))
    first, _ = whole_search(commits, COUNTED, 6, EXACT, search, is_whole=False)
    assert (first.kind, first.suspects) == ("culprit", (11,))
    verdict, _ = whole_search(commits, COUNTED, 6, EXACT, search)
    assert [tuple(step.suspects) for step in verdict.steps] == [(5,), (11,)]
    assert adds_up(verdict)
