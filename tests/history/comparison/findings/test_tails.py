"""Slow transactions of a contender that its mean hides, as compare.py tells them and as they set the exit
code."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.findings.tails import slow_tails
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import Comparison
from history.open import open_store
from history.store.records import SessionStatus
from suites.turns.turn import slow_transactions
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"

USUAL = {0.2: 34_000, 0.4: 5600, 0.9: 360, 1.8: 32, 4.0: 8}
"""A round of 40,000 transactions of eight clients, by latency in ms."""

Histogram = Mapping[float, int]


def compared(folder: Path, sides: Mapping[str, Sequence[Histogram]]) -> Comparison:
    """Compare equally fast builds by the latencies of their rounds, whose slowest ended in the round's own
    second."""
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(repetitions=3))
        for version, rounds in sides.items():
            for number, histogram in enumerate(rounds, start=1):
                values = {
                    "qps": 1000.0 + number,
                    "transactions": float(sum(histogram.values())),
                    "latency_max_ms": max(histogram),
                    "latency_max_second": 4.0 * number,
                    **slow_transactions(histogram),
                }
                store.record_run(
                    session, run_record(values, version=version, step="update", repetition=number)
                )
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def told(comparison: Comparison) -> list[str]:
    return [
        found.line
        for contender in comparison.contenders
        for step in contender.steps
        for found in step.findings
    ]


def test_one_commit_in_500_that_waits_is_a_regression(tmp_path: Path) -> None:
    """It moves the mean by 40 µs and p99 not at all."""
    waiting = [{**USUAL, 0.2: 33_920, latency: 80} for latency in (20.4, 21.0, 20.2)]
    found = compared(tmp_path, {BASE: [USUAL] * 3, CONTENDER: waiting})
    assert told(found) == [
        "update: 240 of 120,000 transactions took longer than 20 ms, base 0 of 120,000; "
        "the slowest took 21 ms in second 8 of round 2, base 4 ms in second 4 of round 1"
    ]
    assert exit_code(found) == 1


def test_fewer_slow_transactions_are_told_and_are_no_regression(tmp_path: Path) -> None:
    waiting = [{**USUAL, 20.4: 80}] * 3
    found = compared(tmp_path, {BASE: waiting, CONTENDER: [USUAL] * 3})
    (line,) = told(found)
    assert line.startswith("update: 0 of 120,000 transactions took longer than 20 ms, base 240 of 120,240")
    assert exit_code(found) == 0


def test_a_tail_that_is_twice_as_long_is_a_regression(tmp_path: Path) -> None:
    longer = {2 * latency if latency > 0.5 else latency: count for latency, count in USUAL.items()}
    found = compared(tmp_path, {BASE: [USUAL] * 3, CONTENDER: [longer] * 3})
    (line,) = told(found)
    assert line.startswith(
        "update: 1,200 of 120,000 transactions took longer than 1 ms, base 120 of 120,000;"
    )


def test_one_slow_round_is_an_accident(tmp_path: Path) -> None:
    """A checkpoint or a neighbour of one round slows hundreds of transactions down."""
    slow = {**USUAL, 30.0: 1200}
    found = compared(tmp_path, {BASE: [USUAL] * 3, CONTENDER: [USUAL, slow, USUAL]})
    assert (told(found), exit_code(found)) == ([], 0)


def test_slow_transactions_of_both_are_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, {side: [{**USUAL, 20.4: 80}] * 3 for side in (BASE, CONTENDER)})
    assert told(found) == []


def test_limits_that_a_round_did_not_count_are_not_compared(tmp_path: Path) -> None:
    """A tenth of the contender is beyond 0.5 ms, which percentiles tell; what is beyond 10 ms is compared."""
    slower = {0.3: 36_000, 0.7: 3920, 15.0: 80}
    found = compared(tmp_path, {BASE: [USUAL] * 3, CONTENDER: [slower] * 3})
    assert [line.partition(",")[0] for line in told(found)] == ["update: 240 of 120"]
    assert "240 of 120,000 transactions took longer than 10 ms, base 0 of 120,000" in told(found)[0]


def test_rounds_of_a_program_that_does_not_say_it_have_no_tail() -> None:
    silent = Pair(1, {"transactions": 9.0}, {"transactions": 9.0})
    assert slow_tails([StepPairs("update", (silent,), ())]) == ()


def rounds_of(random: np.random.Generator, scatter: float, slow: float) -> Iterator[Pair]:
    """Three rounds of equal builds, in which the rate of slow transactions moves, and which pauses hold
    up."""
    for number in (1, 2, 3):
        sides: list[dict[str, float]] = []
        for _ in range(2):
            rates = np.array([200.0, 30.0, slow]) * random.gamma(scatter**-2, scatter**2)
            counts = random.poisson(rates) + np.array([0, 0, 4 * random.poisson(0.5)])
            latencies = dict(zip((1.5, 7.0, 30.0), counts.tolist(), strict=True))
            sides.append({"transactions": 20_000.0, **slow_transactions({0.2: 19_700, **latencies})})
        yield Pair(number, sides[0], sides[1])


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize("scatter", [0.1, 0.3])
def test_equal_builds_are_clean(scatter: float) -> None:
    random, found = np.random.default_rng(5), 0
    for _ in range(1000):
        session = [
            StepPairs(f"step {step}", tuple(rounds_of(random, scatter, slow=3.0 * step)), ())
            for step in (1, 2, 3)
        ]
        found += any(events.is_decided for events in slow_tails(session))
    assert found <= 1
