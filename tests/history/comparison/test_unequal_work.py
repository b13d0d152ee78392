"""Rounds of older versions of Tidemark, whose costs were not recorded at equal work."""

import pytest

from history.comparison.intervals import Intervals
from history.comparison.pairs import pair_steps
from history.comparison.verdict import Gap, Judged, judge_beside
from history.store.records import Run, RunStatus
from suites.metrics import EQUAL_WORK, QPS, TRANSACTIONS

WAL, CPU, BINLOG = "wal_bytes_per_op", "server_cpu_us_per_op", "binlog_bytes_per_op"


def judged(metric: str, works: list[dict[str, float]], rounds: int = 3) -> Judged:
    """Judge a metric of two versions that cost the same, from their recorded work."""
    costs = {QPS: 1000.0, WAL: 400.0, CPU: 20.0, BINLOG: 300.0}
    runs = [
        Run(0, version, "", "insert", 1, number, 0, RunStatus.FINISHED, None, {**costs, **work})
        for number in range(1, rounds + 1)
        for version, work in zip(("base", "new"), works, strict=True)
    ]
    (step,) = pair_steps(runs, "base", "new")
    return judge_beside(step, metric, 0.02, Intervals((step,), 0.99, None))


@pytest.mark.parametrize(
    ("works", "pairs"),
    [
        ([{TRANSACTIONS: 1000}, {TRANSACTIONS: 1031}], 0),
        ([{TRANSACTIONS: 1031}, {TRANSACTIONS: 1000}], 0),
        ([{TRANSACTIONS: 1000}, {TRANSACTIONS: 1029}], 3),  # moves WAL by less than the threshold
        ([{}, {}], 3),  # as of an imported table
        ([{TRANSACTIONS: 1000, EQUAL_WORK: 900}, {TRANSACTIONS: 2000, EQUAL_WORK: 900}], 3),
        ([{TRANSACTIONS: 1000, EQUAL_WORK: 900}, {TRANSACTIONS: 1000, EQUAL_WORK: 1000}], 0),
        ([{TRANSACTIONS: 1000}, {TRANSACTIONS: 2000, EQUAL_WORK: 900}], 0),
    ],
)
def test_costs_of_unequal_work_are_left_out(works: list[dict[str, float]], pairs: int) -> None:
    assert judged(WAL, works).pairs == pairs
    # What does not depend on the work since the start stays.
    assert judged(CPU, works).pairs == judged(BINLOG, works).pairs == judged(QPS, works).pairs == 3


def test_why_they_are_left_out_is_said() -> None:
    found = judged(WAL, [{TRANSACTIONS: 1000}, {TRANSACTIONS: 2000}])
    assert (found.gap, found.value) == (Gap.MISSING, None)
    assert found.reason == "recorded at unequal work, as older versions of Tidemark did: measure again"
