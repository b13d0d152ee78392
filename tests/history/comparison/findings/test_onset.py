"""A slow-down that begins within rounds, as compare.py tells it and as it sets the exit code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.intervals import Intervals
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import Comparison
from history.comparison.rounds.onset import Onset, onsets
from history.open import open_store
from history.store.records import SessionStatus
from suites.metrics import FIRST_THIRD, LAST_THIRD, QPS, SECONDS, VARIATION
from suites.turns.turn import spread, thirds
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
LENGTH = 60

Rates = NDArray[np.float64]


def rates(
    random: np.random.Generator, shape: Sequence[int], cv: float = 0.05, correlation: float = 0.0
) -> Rates:
    """Throughput of seconds, along the last axis, whose deviations are correlated from one to the next."""
    noise = random.normal(0, cv, size=shape)
    for second in range(1, shape[-1]):
        noise[..., second] *= (1 - correlation**2) ** 0.5
        noise[..., second] += correlation * noise[..., second - 1]
    return 4000 * np.exp(noise)


def values(seconds: Sequence[float]) -> dict[str, float]:
    return {QPS: float(np.mean(seconds)), SECONDS: float(len(seconds)), **spread(seconds), **thirds(seconds)}


def compared(folder: Path, factors: Rates, rounds: int = 5) -> Comparison:
    """Compare builds of which the contender has these factors of the base's throughput, by second."""
    random = np.random.default_rng(2)
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(repetitions=rounds))
        for version, own in ((BASE, np.ones(LENGTH)), (CONTENDER, factors)):
            for number in range(1, rounds + 1):
                seconds = tuple((rates(random, [LENGTH]) * own).tolist())
                run = run_record(
                    values(seconds), version=version, step="update", repetition=number, per_second=seconds
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def told(comparison: Comparison) -> list[str]:
    found = (
        found for contender in comparison.contenders for step in contender.steps for found in step.findings
    )
    return [finding.line for finding in found if finding.source == "onset"]


def from_second(second: int, factor: float) -> Rates:
    return np.where(np.arange(LENGTH) < second - 1, 1.0, factor)


def test_a_slow_down_that_begins_late_is_a_regression_with_its_second(tmp_path: Path) -> None:
    found = compared(tmp_path, from_second(31, 0.82))
    (line,) = told(found)
    assert line.startswith("update: slower from second 31 on: last third -1")
    assert line.endswith("first -0.1 %")
    assert exit_code(found) == 1


def test_a_slow_down_from_the_first_second_on_has_no_onset(tmp_path: Path) -> None:
    assert told(compared(tmp_path, from_second(1, 0.82))) == []


def test_a_step_that_gets_slower_all_the_time_has_no_second(tmp_path: Path) -> None:
    (line,) = told(compared(tmp_path, np.linspace(1.0, 0.7, LENGTH)))
    assert line.startswith("update: slower the longer a round lasts: last third -2")


@pytest.mark.parametrize(
    ("first", "later", "word"), [(1.0, 1.25, "faster"), (0.8, 1.0, "faster"), (1.25, 1.0, "slower")]
)
def test_what_ends_no_slower_is_told_and_no_regression(
    tmp_path: Path, first: float, later: float, word: str
) -> None:
    found = compared(tmp_path, from_second(31, later / first) * first)
    (line,) = told(found)
    assert line.startswith(f"update: {word} from second 31 on: last third ")
    (step,) = found.contenders[0].steps
    assert not any(finding.is_worse for finding in step.findings)


def session_of(sides: Rates) -> list[StepPairs]:
    """The steps of a session by throughput of step, round, side and second."""
    third = sides.shape[-1] // 3
    by_name = {
        FIRST_THIRD: sides[..., :third].mean(axis=-1),
        LAST_THIRD: sides[..., -third:].mean(axis=-1),
        VARIATION: sides.std(axis=-1, ddof=1) / sides.mean(axis=-1),
        SECONDS: np.full(sides.shape[:-1], float(sides.shape[-1])),
    }

    def pair(step: int, number: int) -> Pair:
        base, contender = (
            {name: float(found[step, number, side]) for name, found in by_name.items()} for side in (0, 1)
        )
        return Pair(number + 1, base, contender)

    steps, rounds = sides.shape[:2]
    return [
        StepPairs(f"{step}", tuple(pair(step, number) for number in range(rounds)), ())
        for step in range(steps)
    ]


def found_in(sides: Rates) -> Sequence[Onset]:
    session = session_of(sides)
    return onsets(Intervals(session, 0.98, None), [step.step for step in session], lambda step: ())


def test_rounds_whose_seconds_were_not_kept_are_told_without_the_second() -> None:
    sides = rates(np.random.default_rng(2), (1, 5, 2, LENGTH))
    sides[:, :, 1] *= from_second(41, 0.7)
    (onset,) = found_in(sides)
    assert onset.text.startswith("slower in the last third: last third -2")
    assert onset.is_worse


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize(
    ("steps", "rounds", "seconds", "correlation"),
    [(1, 3, 9, 0.5), (3, 3, 30, 0.5), (3, 3, 60, 0.8), (3, 5, 30, 0.8), (1, 20, 9, 0.8)],
)
def test_equal_builds_are_clean(steps: int, rounds: int, seconds: int, correlation: float) -> None:
    """Also where slow seconds follow each other, so that thirds differ by more than seconds let expect."""
    random, found = np.random.default_rng(13), 0
    for _ in range(1000):
        cv = random.choice((0.03, 0.1))
        found += bool(found_in(rates(random, (steps, rounds, 2, seconds), cv, correlation)))
    assert found <= 1
