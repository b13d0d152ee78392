"""Kinds of transactions in a comparison: each judged by its own throughput, with latencies and retries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from history.comparison.intervals import Intervals
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.verdict import Judged, judge_beside, judge_step
from history.store.records import Run
from suites.metric import Role
from suites.metric_names import OVERLOADED, REFUSED, RETRIED, TPS
from suites.metrics import METRICS, of_role

_BETWEEN = "\0"


@dataclass(frozen=True)
class KindComparison:
    """One kind of transactions of a step in base and contender."""

    step: str
    kind: str
    judged: Judged
    latencies: Mapping[str, Judged]
    """The recorded latencies by metric."""
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
    """Compare the kinds of every step, in the order of the steps and of the kinds' names.

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
    return tuple(_compared(step, threshold, intervals) for step in paired)


def _of_whole(run: Run) -> Mapping[str, float]:
    """Return what is true of the whole run and so of its kinds."""
    return {name: value for name, value in run.values.items() if name == OVERLOADED}


def _compared(step: StepPairs, threshold: float, intervals: Intervals) -> KindComparison:
    name, _, kind = step.step.partition(_BETWEEN)
    return KindComparison(
        name,
        kind,
        judge_step(step, METRICS[TPS], threshold, intervals),
        {metric: judge_beside(step, metric, threshold, intervals) for metric in of_role(Role.LATENCY)},
        _per_transaction(step, RETRIED),
        _per_transaction(step, (REFUSED,)),
    )


def _per_transaction(step: StepPairs, metrics: Sequence[str]) -> tuple[float | None, float | None]:
    """Return the sum of metrics over that of transactions, of base and contender; None where not recorded."""
    base, contender = (
        _share([step.values(metric)[side] for metric in metrics], step.values("transactions")[side])
        for side in (0, 1)
    )
    return base, contender


def _share(counted: Sequence[Sequence[float]], transactions: Sequence[float]) -> float | None:
    if not all(counted) or not sum(transactions):
        return None
    return sum(map(sum, counted)) / sum(transactions)
