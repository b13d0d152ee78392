"""Growth of memory with the queries: a leak is told with its bytes, and equal servers are not accused."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from history.comparison.compare import exit_code
from history.comparison.findings.memory_growth import FALSE_FINDINGS, MemoryGrowth
from history.comparison.pairs import Pair, StepPairs
from suites.metrics import BUFFER_POOL, EQUAL_WORK, MEMORY_GROWTH
from tests.history.comparison.findings.test_rare_events import compared

WORK = 4000.0
WORSE, BETTER = "worse", "better"

POSTGRES = (*(-211, -167, -139, -40, -38, -23, -13, 18, 27, 71, 118), *[0] * 28)
MYSQL = (-290, -196, -138, -125, -117, -97, -47, -44, -19, -4, -2, 0, 0, 0, 53, 96, 109, 161)
"""Growth over the queries of a round in KiB, of contender less base, of equal servers on a busy machine:
Postgres 18.6 and MySQL 9.7.2 in steps of write-heavy, pgbench, payments, shop and oltp-sweep, profile
smoke."""


def rounds(base: Sequence[float], contender: Sequence[float], pool: Mapping[str, float]) -> StepPairs:
    beside = {EQUAL_WORK: WORK, **pool}
    pairs = (
        Pair(number, {MEMORY_GROWTH: old, **beside}, {MEMORY_GROWTH: new, **beside})
        for number, (old, new) in enumerate(zip(base, contender, strict=True), start=1)
    )
    return StepPairs("insert", tuple(pairs), ())


def bearing_of(step: StepPairs) -> str:
    """What is told of one of ten steps."""
    growth = MemoryGrowth(step, FALSE_FINDINGS / 10)
    return WORSE if growth.is_worse else BETTER if growth.is_better else ""


@pytest.mark.parametrize(
    ("base", "contender", "bearing"),
    [
        ((0, 1, -1), (136, 133, 138), WORSE),
        ((136, 133, 138), (0, 1, -1), BETTER),
        ((0, 1, -1), (15, 14, 16), ""),
        ((0, 1, -1), (0, 136, 0), ""),
        ((400, 380, 420), (480, 470, 490), ""),
        ((-300, -280, -310), (-290, -280, -300), ""),
        ((-30, -28, -31), (100, 104, 99), WORSE),
    ],
    ids=["leak", "no leak any more", "too little", "one round", "filling caches", "shrinking", "both"],
)
def test_a_leak_is_what_grows_in_every_round(
    base: Sequence[float], contender: Sequence[float], bearing: str
) -> None:
    assert bearing_of(rounds(base, contender, {})) == bearing


def test_a_leak_is_a_line_and_a_regression(tmp_path: Path) -> None:
    work = {EQUAL_WORK: [20_000.0] * 3}
    none, some = {MEMORY_GROWTH: [0.0, 1.5, -2.0], **work}, {MEMORY_GROWTH: [410.0, 414.0, 412.0], **work}
    found = compared(tmp_path, {"insert": (none, some), "delete": (none, none)})
    (contender,) = found.contenders
    lines = [finding.line for step in contender.steps for finding in step.findings]
    assert lines == [
        "insert: server memory grows by 412 bytes a query (407 to 417), base 0 (-5 to 5)",
    ]
    assert exit_code(found) == 1


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize(
    ("noise", "pool"), [(POSTGRES, {}), (MYSQL, {BUFFER_POOL: 3e7})], ids=["postgres", "mysql"]
)
def test_equal_servers_are_told_apart_in_at_most_one_of_a_thousand_sessions(
    noise: Sequence[float], pool: Mapping[str, float]
) -> None:
    """Sessions of five builds, ten steps and three to twenty rounds, with the noise of real servers."""
    draw = np.random.default_rng(3)
    sessions, false = 500, 0
    for _ in range(sessions):
        count = int(draw.integers(3, 21))
        steps = draw.choice(noise, (40, count)) * 1024 / WORK
        false += any(bearing_of(rounds([0.0] * count, list(step), pool)) for step in steps)
    assert false == 0, "of 20,000 steps"


@pytest.mark.parametrize(
    ("noise", "pool", "leak"),
    [(POSTGRES, {}, 100), (MYSQL, {BUFFER_POOL: 3e7}, 200)],
    ids=["postgres", "mysql"],
)
def test_a_leak_is_found_in_three_rounds_of_4000_queries(
    noise: Sequence[float], pool: Mapping[str, float], leak: int
) -> None:
    draw = np.random.default_rng(4)
    sessions = draw.choice(noise, (300, 3)) * 1024 / WORK
    found = [bearing_of(rounds([0.0] * 3, list(leak + drawn), pool)) for drawn in sessions]
    assert found.count(WORSE) > 0.7 * len(found)
