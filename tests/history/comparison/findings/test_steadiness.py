"""Variation without trend, as compare.py judges it over rounds, and over blocks of a long run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.finding import Finding
from history.comparison.intervals import Intervals
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import Comparison
from history.comparison.rounds.steadiness import steadiness
from history.open import open_store
from history.store.records import SessionStatus
from suites.metrics import QPS, SECONDS
from suites.turns.detrended import detrended
from suites.turns.turn import spread, thirds
from tests.history.comparison.findings.test_onset import BASE, CONTENDER, Rates, rates
from tests.history.handmade import NIGHT, run_record, session_start

LENGTH = 60


def compared(folder: Path, sides: Sequence[Rates]) -> Comparison:
    """Compare two versions by the throughput of their rounds' seconds."""
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(repetitions=len(sides[0])))
        for version, rounds in zip((BASE, CONTENDER), sides, strict=True):
            for number, round_ in enumerate(rounds, start=1):
                seconds = tuple(round_.tolist())
                values = {QPS: float(np.mean(seconds)), SECONDS: float(len(seconds))}
                values |= {**spread(seconds), **thirds(seconds), **detrended(seconds)}
                run = run_record(
                    values, version=version, step="delete", repetition=number, per_second=seconds
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def told(comparison: Comparison) -> list[Finding]:
    (contender,) = comparison.contenders
    return [finding for step in contender.steps for finding in step.findings if finding.source == "variation"]


def test_a_version_that_swings_has_regressed_at_the_same_throughput(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    swings = rates(random, [5, LENGTH]) * np.where(np.arange(LENGTH) % 6 < 3, 0.5, 1.5)
    found = compared(tmp_path, (rates(random, [5, LENGTH]), swings))
    (finding,) = told(found)
    assert finding.text.startswith("cv without trend +2111.1 % (+651.0 to ")
    assert finding.text.endswith(", 0.039 to 0.83")
    assert finding.is_worse
    assert exit_code(found) == 1


def test_a_cache_that_warms_is_no_variation(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    warming = rates(random, [5, LENGTH]) * (1 - 0.8 * np.exp(-np.arange(LENGTH) / 15))
    assert told(compared(tmp_path, (rates(random, [5, LENGTH]), warming))) == []


def test_a_long_run_without_rounds_is_judged_by_its_blocks(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    base, contender = rates(random, [1, 900]), rates(random, [1, 900], cv=0.15)
    (finding, *_) = told(compared(tmp_path, (base, contender)))
    assert finding.text.startswith("cv without trend +219.2 % (+136.1 to ")
    assert finding.is_worse


def test_a_stall_of_one_run_is_told_as_the_reason_of_a_change(tmp_path: Path) -> None:
    """As the delete of 17.6 against 17.7 in a published table: one run each, +47 % at the same CPU."""
    random = np.random.default_rng(1)
    base, contender = rates(random, [1, 900]), rates(random, [1, 900])
    base[0, 400:700] *= 0.04
    (finding,) = [finding for finding in told(compared(tmp_path, (base, contender))) if not finding.is_worse]
    assert finding.text == (
        "throughput +47.6 %, and +0.4 % without seconds below half of the median: 0 of 900, base 300 of 900"
    )


def test_a_run_that_is_slower_throughout_has_no_stall_to_tell(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    assert told(compared(tmp_path, (rates(random, [1, 900]), 0.6 * rates(random, [1, 900])))) == []


def found_in(sides: Rates) -> list[Finding]:
    """What is found in a session by throughput of step, round, side and second."""

    def pair(number: int, round_: Rates) -> Pair:
        base, contender = ({SECONDS: float(len(side)), **detrended(side.tolist())} for side in round_)
        return Pair(number, base, contender)

    by_step = {f"{place}": step for place, step in enumerate(sides)}
    steps = [
        StepPairs(name, tuple(pair(number, round_) for number, round_ in enumerate(step, start=1)), ())
        for name, step in by_step.items()
    ]

    def seconds(name: str) -> list[tuple[list[float], list[float]]]:
        return [(base.tolist(), contender.tolist()) for base, contender in by_step[name]]

    found = steadiness(Intervals(steps, 0.98, None), by_step, seconds)
    return [finding for finding in found if finding.is_worse or finding.bearing == "better"]


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize(
    ("steps", "rounds", "seconds", "stalls"),
    [(3, 5, 20, 0.05), (1, 5, 30, 0.02), (1, 10, 30, 0.01), (1, 1, 300, 0.01)],
)
def test_equal_builds_are_clean(steps: int, rounds: int, seconds: int, stalls: float) -> None:
    """Also where seconds are correlated, and where now and then one stalls, on either side."""
    random, found = np.random.default_rng(7), 0
    for _ in range(100 if rounds == 1 else 300):
        sides = rates(random, (steps, rounds, 2, seconds), random.choice((0.03, 0.1)), 0.5)
        sides *= np.where(random.random(sides.shape) < stalls, random.uniform(0, 0.6, sides.shape), 1.0)
        found += bool(found_in(sides))
    assert found == 0
