"""The benchmark of the search: plain bisect as it is reckoned, and figures that can miss their target."""

import math
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import bisect
from benchmarks.counting import exact_bisect
from benchmarks.output.figures import Figure
from benchmarks.simulation.bisects import bisect_ranges, guided_bisect, simulated_bisect
from benchmarks.simulation.bisects.bisect_ranges import SimulatedRange
from benchmarks.simulation.bisects.plain_bisect import FIXED, PLANNERS, PlainBisectPlan, fewest
from benchmarks.simulation.bisects.simulated_bisect import (
    BUILD_MINUTES,
    SearchCell,
    case_figure,
    cell_of,
    culprit_figures,
)
from build.errors import TidemarkError
from runners.bisect.domain import rules
from runners.bisect.inference import sequential_test


@pytest.mark.parametrize("share", [1.0, 4.0, math.inf])
def test_the_accuracy_of_plain_bisect_is_that_of_plain_bisects(share: float) -> None:
    length, size, noise, reruns = 16, 0.05, 0.035, 6
    rng = np.random.default_rng(1)
    right = 0
    for _ in range(4000):
        culprit = int(rng.integers(1, length + 1))
        difference = math.log1p(-size)
        half = rng.normal(difference, noise / math.sqrt(reruns * share)) / 2
        low, high = 0, length
        while high - low > 1:
            middle = (low + high) // 2
            measured = rng.normal(difference if middle >= culprit else 0.0, noise / math.sqrt(reruns))
            low, high = (low, middle) if measured < half else (middle, high)
        right += high == culprit
    assert PlainBisectPlan(reruns, share).accuracy(length, size, noise) == pytest.approx(
        right / 4000, abs=0.03
    )


def test_the_fewest_reruns_that_are_enough() -> None:
    plan = fewest(0.97, 64, 0.05, 0.05)
    less = PlainBisectPlan(plan.reruns - 1, plan.bad_share)
    assert plan.accuracy(64, 0.05, 0.05) >= 0.97 > less.accuracy(64, 0.05, 0.05)
    assert PlainBisectPlan(10, 1.0).spent(64) == (70, 8)
    assert PlainBisectPlan(10, math.inf).spent(64) == (60, 8)


def test_plans_in_their_order() -> None:
    fixed, any_size, best, told = (plan(0.98, 256, 0.05, 0.05).spent(256)[0] for plan in PLANNERS.values())
    assert told < best < fixed < any_size


def test_what_is_right() -> None:
    levels = np.array([0, 0, 0, -0.1, -0.1])

    def verdict(kind: rules.Kind, low: int, high: int) -> rules.SearchVerdict:
        return rules.SearchVerdict(kind, low, high, 0.99, 0.9, (0.88, 0.92), 0.02, 9)

    whole, holed = SimulatedRange(levels, (3,)), SimulatedRange(levels, (3,), frozenset({2}))
    assert whole.right(verdict("culprit", 2, 3))
    assert not whole.right(verdict("range", 2, 3))
    assert not whole.right(verdict("culprit", 3, 4))
    assert holed.right(verdict("range", 1, 3))
    assert not holed.right(verdict("culprit", 2, 3))


def test_seeds_are_fixed() -> None:
    assert cell_of(16, 0.1, 0.035, 3) == cell_of(16, 0.1, 0.035, 3)


def figures_of(cells: list[SearchCell]) -> dict[str, Figure]:
    return {figure.name: figure for figure in culprit_figures(cells)}


@pytest.mark.deep("a whole command on a whole history")
def test_a_careless_search_misses_the_target() -> None:
    """Figures can fail: verdicts at a posterior of one half are wrong too often."""
    strict = rules.Rules(confidence=0.51)
    with (
        patch.object(rules.Rules, "stop", 0.3),
        patch.object(sequential_test, "CLAIMED_SHARE", 1.9),
        patch.object(bisect_ranges, "Rules", lambda: strict),
    ):
        careless = figures_of([cell_of(64, 0.03, 0.035, 8)])["right where there is a culprit"]
    assert not careless.met


def test_machine_time_is_rounds_and_builds() -> None:
    cell = cell_of(16, 0.1, 0.02, 3)
    slow = SearchCell(
        16,
        0.1,
        0.02,
        cell.right,
        [bisect_ranges.SearchOutcome(outcome.verdict, 1000, 6) for outcome in cell.outcomes],
    )
    name = f"machine time / {FIXED}, builds of {BUILD_MINUTES[1]:g} min"
    assert not figures_of([slow])[name].met
    assert figures_of([slow])[name].note.startswith("1015 of")


def test_a_case_counts_what_it_says() -> None:
    quiet = next(case for case in simulated_bisect.CASES if case.name == "none, stalls")
    figure = case_figure(quiet, 0, trials=3)
    assert figure.value == 100
    assert "3 none" in figure.note


def test_parts_and_exit_codes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", "simulated")
    missed = Figure("wrong", 2.0, "%", at_most=1)
    with patch.object(bisect, "PARTS", {"simulated": lambda: [missed]}):
        assert bisect.main() == 1
    assert "MISSED" in capsys.readouterr().out
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", "imagined")
    with pytest.raises(TidemarkError, match="imagined"):
        bisect.main()


def test_guided_searches_count_and_others_do_not() -> None:
    found = guided_bisect.outcomes_of(guided_bisect.CASES[2], 2, trials=1)
    (guided,), (alone,) = found[True], found[False]
    assert guided.right
    assert alone.right
    assert guided.passes > 4 > alone.passes == 0
    assert guided.duration == guided.rounds + 0.5 * guided.passes + 2.5 * guided.builds


def test_what_was_tried_is_read_from_the_log() -> None:
    built = {"kind": "built", "detail": {"positions": [3, 4]}}
    excluded = {"kind": "excluded", "detail": {"position": 7, "reason": "does not compile"}}
    session = {"kind": "session", "detail": {}}
    assert [exact_bisect.positions(event) for event in (built, excluded, session)] == [[3, 4], [7], []]
