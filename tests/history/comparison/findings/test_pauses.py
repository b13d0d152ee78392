"""Pauses that delay every client at once, in equal builds: one cause, however many transactions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.findings.rare_events import RareEvents, rare_events
from history.comparison.findings.tails import slow_tails
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.open import open_store
from history.store.records import SessionStatus
from suites.turns.turn import slow_transactions
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
TRANSACTIONS = 40_000
PAUSES = 0.5
"""The pauses of a server in a round of ten seconds, in the mean."""


def round_of(failed: int, slow: int) -> dict[str, float]:
    """Transactions of a round, of which some failed and some waited 30 ms."""
    return {
        "transactions": float(TRANSACTIONS),
        "seconds": 10.0,
        "errors": float(failed),
        "latency_max_ms": 30.0 if slow else 0.2,
        **slow_transactions({0.2: TRANSACTIONS - slow, 30.0: slow}),
    }


def sessions(count: int, clients: int, steps: int, more: float = 0.0) -> Iterator[Sequence[StepPairs]]:
    """Sessions of three rounds; the contender has `more` slow and failed transactions a round, one by one."""
    random = np.random.default_rng(clients)
    for _ in range(count):
        pauses = clients * random.poisson(PAUSES, size=(steps, 3, 4))
        alone = random.poisson(more, size=(steps, 3, 2)) if more else np.zeros((steps, 3, 2), dtype=int)
        yield [
            StepPairs(
                f"step {step}",
                tuple(
                    Pair(
                        number + 1,
                        round_of(*map(int, pauses[step, number, :2])),
                        round_of(*map(int, pauses[step, number, 2:] + alone[step, number])),
                    )
                    for number in range(3)
                ),
                (),
                clients=clients,
            )
            for step in range(steps)
        ]


def worse(found: Sequence[RareEvents]) -> bool:
    return any(events.is_worse for events in found)


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize("clients", [2, 8, 64])
def test_equal_builds_whose_server_pauses_are_clean(clients: int) -> None:
    """Ten steps: as single events, 14 % of contenders had more slow transactions with eight clients."""
    for session in sessions(150, clients, steps=10):
        assert not worse(slow_tails(session))
        assert not worse(rare_events(session))


def test_what_is_not_a_pause_is_found_beside_pauses() -> None:
    """One transaction in 125 more, of eight clients: as single events, all of the same sessions had more."""
    found = [(worse(slow_tails(one)), worse(rare_events(one))) for one in sessions(60, 8, steps=1, more=320)]
    assert sum(slow for slow, _ in found) >= 30
    assert sum(failed for _, failed in found) >= 55


def exit_code_of(folder: Path, slow: Sequence[int], options: Mapping[str, object]) -> int:
    """Return the exit code for a contender with so many slow transactions; the base has none."""
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(), options=options))
        for version, rounds in ((BASE, [0] * len(slow)), (CONTENDER, slow)):
            for number, count in enumerate(rounds, start=1):
                values = {"qps": 4000.0 + number, **round_of(0, count)}
                store.record_run(session, run_record(values, version=version, step="pay", repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
        return exit_code(compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions()))


@pytest.mark.parametrize(
    ("slow", "options", "expected"),
    [
        ([8, 8, 8], {"clients": {"pay": 8}}, 0),
        ([16, 8, 8], {"clients": {"pay": 8}}, 0),
        ([8, 8, 8], {"clients": {"pay": 1}}, 1),
        ([80, 80, 80], {"clients": {"pay": 8}}, 1),
        # Of 4,000 that arrive in a second, 120 begin within 30 ms, whoever has to execute them.
        ([120, 120, 120], {"clients": {"pay": 8}, "rates": {"pay": 4000}}, 0),
        ([1200, 1200, 1200], {"clients": {"pay": 8}, "rates": {"pay": 4000}}, 1),
    ],
)
def test_a_pause_a_round_is_no_regression(
    tmp_path: Path, slow: Sequence[int], options: Mapping[str, object], expected: int
) -> None:
    assert exit_code_of(tmp_path, slow, options) == expected
