"""Kinds of transactions in a comparison: each judged by its own mean latency.

A kind may be a transaction of a mix, a script, or a statement of a file. All kinds of a client take turns, so
that each has the throughput that the slowest ones leave, and only its time is its own.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from history.comparison.intervals import Intervals
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.verdict import Judged, judge_beside, judge_step
from history.store.records import Run
from suites.metrics import (
    MEAN_LATENCY,
    METRICS,
    OVERLOADED,
    REFUSED,
    RETRIED,
    TPS,
    TRANSACTIONS,
    Role,
    of_role,
)

_BETWEEN = "\0"


@dataclass(frozen=True)
class KindComparison:
    """One kind of transactions of a step in base and contender."""

    step: str
    kind: str
    judged: Judged
    """Its mean latency."""
    latencies: Mapping[str, Judged]
    """The recorded latencies by metric."""
    throughput: Judged
    retried: tuple[float | None, float | None]
    """Transactions rolled back by the server and begun again, per transaction, in base and contender."""
    refused: tuple[float | None, float | None]
    """Transactions that the application ended without committing, per committed one."""


def compare_kinds(
    runs: Sequence[Run],
    values: Mapping[int, Mapping[str, Mapping[str, float]]],
    versions: tuple[str, str],
    threshold: float,
    confidence: float,
    layouts: int = 0,
    bursts: Collection[int] = (),
) -> tuple[KindComparison, ...]:
    """Compare the kinds of every step, in the order of the steps and of the kinds' names and numbers.

    `values` are those of runs by id, kind and metric, `versions` base and contender. `threshold` and
    `confidence` are fractions; all intervals of kinds hold together with the confidence. `layouts` are those
    of the session, `bursts` the runs with background work that comes in bursts.
    """
    by_kind = [
        replace(run, step=f"{run.step}{_BETWEEN}{kind}", values={**_of_whole(run), **own})
        for run in runs
        for kind, own in sorted(values.get(run.id, {}).items())
    ]
    paired = pair_steps(by_kind, *versions, bursts)
    intervals = Intervals(paired, confidence, None, layouts=layouts)
    steps = [*dict.fromkeys(_names(step)[0] for step in paired)]
    compared = (_compared(step, threshold, intervals) for step in paired)
    return tuple(sorted(compared, key=lambda kind: (steps.index(kind.step), _in_order(kind.kind))))


def _names(step: StepPairs) -> tuple[str, str]:
    """Return the names of step and kind."""
    name, _, kind = step.step.partition(_BETWEEN)
    return name, kind


def _in_order(kind: str) -> list[tuple[str, int]]:
    """Return what sorts names as people number them: `line-9` before `line-10`."""
    return [(words, int(number or 0)) for words, number in re.findall(r"(\D*)(\d{0,15})", kind)]


def _of_whole(run: Run) -> Mapping[str, float]:
    """Return what is true of the whole run and so of its kinds."""
    return {name: value for name, value in run.values.items() if name == OVERLOADED}


def _compared(step: StepPairs, threshold: float, intervals: Intervals) -> KindComparison:
    return KindComparison(
        *_names(step),
        judge_step(step, METRICS[MEAN_LATENCY], threshold, intervals),
        {metric: judge_beside(step, metric, threshold, intervals) for metric in of_role(Role.LATENCY)},
        judge_beside(step, TPS, threshold, intervals),
        _per_transaction(step, RETRIED),
        _per_transaction(step, (REFUSED,)),
    )


def _per_transaction(step: StepPairs, metrics: Sequence[str]) -> tuple[float | None, float | None]:
    """Return the sum of metrics over that of transactions, of base and contender; None where not recorded."""
    base, contender = (
        _share([step.values(metric)[side] for metric in metrics], step.values(TRANSACTIONS)[side])
        for side in (0, 1)
    )
    return base, contender


def _share(counted: Sequence[Sequence[float]], transactions: Sequence[float]) -> float | None:
    if not all(counted) or not sum(transactions):
        return None
    return sum(map(sum, counted)) / sum(transactions)
