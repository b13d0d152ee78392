"""The search among commits of merged branches, against what ancestors say by themselves."""

import math
import time
from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.bisect.domain.ancestry import ancestry_of
from runners.bisect.domain.rules import Measure, Observation, Rules, SearchVerdict
from runners.bisect.inference.branched.search import BranchedSearch
from runners.bisect.inference.search import Search
from tests.runners.bisect.stand import a_question

Parents = tuple[tuple[int, ...], ...]

LOSS = math.log(0.9)


@st.composite
def histories(draw: st.DrawFn) -> Parents:
    """Commits with one to three parents among those before them, and a merge of all that is left as bad."""
    length = draw(st.integers(2, 14))
    parents: list[tuple[int, ...]] = []
    for position in range(1, length):
        near = st.integers(max(0, position - 5), position - 1)
        parents.append(tuple(draw(st.lists(near, min_size=1, max_size=3, unique=True))))
    tips = set(range(1, length)).difference(*parents)
    return (*parents, tuple(sorted(tips)) or (0,))


def ancestors(parents: Parents, position: int) -> set[int]:
    """The candidates that a position has, itself included."""
    found, waiting = set[int](), [position]
    while waiting:
        at = waiting.pop()
        if at and at not in found:
            found.add(at)
            waiting += parents[at - 1]
    return found


def plain_steps(parents: Parents, culprit: int) -> int:
    """How many commits a bisect measures that believes every one, and always halves what is left best."""
    left, steps = ancestors(parents, len(parents)), 0
    known = {place: ancestors(parents, place) for place in left}
    while len(left) > 1:
        at = min(sorted(left), key=lambda place: abs(2 * len(known[place] & left) - len(left)))
        left = left & known[at] if culprit in known[at] else left - known[at]
        steps += 1
    return steps


def searched(
    search: Search, parents: Parents, culprits: Sequence[int], noise: float, random: Random
) -> SearchVerdict:
    """Measure until there is a verdict: each of the culprits costs a tenth."""
    holds = cache(lambda place: len(ancestors(parents, place) & set(culprits)))
    while isinstance(wanted := search.next(), Measure):
        for place in wanted.positions * wanted.rounds:
            search.observe(Observation(place, LOSS * holds(place) + noise * random.gauss(0, 1)))
    return wanted


def is_measured(search: Search, place: int) -> bool:
    """Whether a position has rounds."""
    try:
        search.level(place)
    except ValueError:
        return False
    return True


def branched(parents: Parents) -> BranchedSearch:
    ancestry = ancestry_of(parents)
    assert ancestry is not None
    return BranchedSearch(ancestry)


@given(histories(), st.integers(0, 13))
@settings(max_examples=15, deadline=None)
def test_without_noise_it_ends_at_the_culprit_as_soon_as_a_plain_bisect(parents: Parents, which: int) -> None:
    culprit = 1 + which % len(parents)
    search = branched(parents)
    verdict = searched(search, parents, [culprit], 0.0, Random(1))
    assert (verdict.kind, verdict.suspects) == ("culprit", (culprit,))
    asked = sum(is_measured(search, place) for place in range(1, len(parents)))  # bad is measured anyway
    most = max(plain_steps(parents, place) for place in range(1, len(parents) + 1))
    assert asked <= most + 1


@given(histories(), st.data())
@settings(max_examples=15, deadline=None)
def test_probabilities_are_those_of_single_culprits(parents: Parents, data: st.DataObject) -> None:
    """Commits that the same measured commits have share a probability; the others follow from the rounds."""
    search = branched(parents)
    length = len(parents)
    for _ in range(3):
        search.observe(Observation(length, LOSS))
    places = data.draw(st.lists(st.integers(1, length), max_size=4))
    ratios = data.draw(st.lists(st.floats(-0.2, 0.05), min_size=4, max_size=4))
    for place, ratio in zip(places, ratios, strict=False):
        search.observe(Observation(place, ratio))
    posterior = search.posterior
    assert posterior.sum() == pytest.approx(1)
    assert (posterior >= 0).all()
    sides: dict[tuple[bool, ...], float] = {}
    for candidate in range(1, length + 1):
        having = tuple(candidate in ancestors(parents, place) for place in places)
        assert posterior[candidate] == pytest.approx(sides.setdefault(having, posterior[candidate]))


@pytest.mark.deep("searches that are simulated many times")
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(1, 12), st.floats(-0.02, 0.02)), max_size=6))
@settings(max_examples=40, deadline=None)
def test_on_a_line_it_is_the_search_on_a_line(culprit: int, rounds: list[tuple[int, float]]) -> None:
    """Of one step, with noise. For rounds that no few steps explain the two differ: one has a finer grid of
    levels, the other tells up to five steps apart."""
    line, other = Search(12), branched(tuple((place,) for place in range(12)))
    measured = [(place, LOSS * (place >= culprit) + noise) for place, noise in rounds]
    for search in (line, other):
        for place, ratio in [(12, LOSS)] * 3 + measured:
            search.observe(Observation(place, ratio))
    assert other.posterior == pytest.approx(line.posterior, abs=0.05)
    assert other.alternatives["none"] == pytest.approx(line.alternatives["none"], abs=0.01)


def random_history(length: int, random: Random) -> Parents:
    """A history in which a fifth of the commits are merges, some of them criss-cross."""
    parents: list[tuple[int, ...]] = []
    tips = [0]
    for position in range(1, length):
        at = random.randrange(len(tips))
        ups = [tips[at]]
        if len(tips) > 1 and random.random() < 0.2:
            ups.append(random.choice([tip for tip in tips if tip != ups[0]]))
            if random.random() < 0.7:
                tips.remove(ups[1])
                at = tips.index(ups[0])
        elif random.random() < 0.1:
            tips.append(position)
            parents.append(tuple(ups))
            continue
        tips[at] = position
        parents.append(tuple(ups))
    left = set(range(1, length)).difference(*parents)
    return (*parents, tuple(sorted(left, reverse=True)) or (0,))


@pytest.mark.deep("searches that are simulated many times")
def test_with_noise_as_many_answers_are_right_as_promised() -> None:
    random = Random(7)
    right = 0
    searches = 20
    for _ in range(searches):
        parents = random_history(40, random)
        culprit = random.randint(1, 40)
        verdict = searched(branched(parents), parents, [culprit], 0.02, random)
        right += (verdict.kind, verdict.suspects) == ("culprit", (culprit,))
    assert right >= 0.95 * searches


def test_thousands_of_candidates_take_about_a_second() -> None:
    random = Random(1)
    parents = random_history(3000, random)
    search = branched(parents)
    search.next()
    began = time.process_time()
    verdict = searched(search, parents, [1700], 0.005, random)
    took = time.process_time() - began
    assert verdict.suspects == (1700,)
    assert took / verdict.rounds < 1.0


def test_two_culprits_on_branches_beside_each_other() -> None:
    # 1 and 2 are one branch, 3 and 4 another; 5 merges them.
    parents = ((0,), (1,), (0,), (3,), (2, 4))
    verdict = searched(branched(parents), parents, [1, 4], 0.005, Random(3))
    assert (verdict.kind, [step.suspects for step in verdict.steps]) == ("two-steps", [(1,), (4,)])


def test_a_count_that_tells_nothing_more_is_not_repeated() -> None:
    """57 commits, two branches and their merge; the counts of three close steps are exact."""
    ancestry = ancestry_of([*((place - 1,) for place in range(1, 59)), (57,), (58, 59)])
    assert ancestry is not None
    levels = np.zeros(61)
    for place, size in ((10, 0.928), (12, 0.97), (14, 1.025)):
        levels[place:] += math.log(size)
    question = a_question("good", "bad", metric="instructions_per_op", direction="either")
    search = BranchedSearch(ancestry, question.rules())
    for place in (60, 60, 9, 10, 11, 12, 13, 14):
        search.observe(Observation(place, float(levels[place])))
    passes = 0
    while isinstance(wanted := search.next(), Measure):
        for place in wanted.positions * wanted.rounds:
            search.observe(Observation(place, float(levels[place])))
            passes += 1
        assert passes <= 12
    assert wanted.kind == "culprit"
    assert wanted.suspects == (10,)


def test_a_commit_that_does_not_compile_leaves_a_range_of_its_branch() -> None:
    parents = ((0,), (1,), (2,), (0,), (3, 4))
    search = branched(parents)
    search.exclude(2)
    verdict = searched(search, parents, [2], 0.005, Random(3))
    assert (verdict.kind, verdict.suspects, verdict.low, verdict.high) == ("range", (2, 3), 1, 3)


def test_a_dip_and_its_fix_on_a_branch_are_no_culprits() -> None:
    parents = ((0,), (1,), (2,), (3,), (0,), (4, 5), (6,))
    search, random = branched(parents), Random(5)
    levels = {1: 0.0, 2: -0.2, 3: 0.0, 4: 0.0, 5: 0.0, 6: 0.0, 7: -0.1}
    for place, level in levels.items():
        for _ in range(6):
            search.observe(Observation(place, level + random.gauss(0, 0.005)))
    verdict = search.next()
    assert isinstance(verdict, SearchVerdict)
    assert (verdict.kind, verdict.suspects) == ("culprit", (7,))


def test_a_merge_whose_parents_are_both_good_is_the_culprit() -> None:
    parents = ((0,), (1,), (0,), (3,), (2, 4), (5,))
    verdict = searched(branched(parents), parents, [5], 0.005, Random(3))
    assert (verdict.kind, verdict.low, verdict.high) == ("culprit", 2, 5)


def test_positions_worth_compiling_halve_the_ancestors() -> None:
    parents = ((0,), (1,), (2,), (3,), (0,), (5,), (6,), (4, 7))
    assert branched(parents).likely_next(3) == (4, 2, 6)


@pytest.mark.parametrize("parents", [((1,),), ((0,), (3,), (2,)), ((0,), (0,))])
def test_parents_that_no_range_has(parents: Parents) -> None:
    with pytest.raises(ValueError, match=r"before it|ancestor of bad"):
        ancestry_of(parents)


def test_a_line_has_no_ancestry() -> None:
    assert ancestry_of(()) is None


def test_rules_of_the_whole_search_hold() -> None:
    ancestry = ancestry_of(((0,), (0,), (1, 2)))
    assert ancestry is not None
    assert np.array_equal(ancestry.contains[3], [True, True, True])
    swapped = BranchedSearch(ancestry, Rules())
    for _ in range(12):
        swapped.observe(Observation(3, 0.1))
    found = swapped.next()
    assert isinstance(found, SearchVerdict)
    assert found.kind == "swapped"
