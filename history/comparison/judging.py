"""The verdicts on the steps of a base and a contender, by the metric that was asked for and all others."""

from collections.abc import Collection, Mapping, Sequence

from build.version import Engine
from history.comparison.beside.clients import waiting_clients
from history.comparison.explanation import beside_imported
from history.comparison.intervals import Intervals
from history.comparison.options import CompareOptions, threshold_of
from history.comparison.pairs import StepPairs
from history.comparison.result import StepComparison, groups_of
from history.comparison.verdict import judge_beside, judge_step
from history.errors import ComparisonError
from history.stats.estimators import median
from history.stats.noise_model import Noise
from history.store.records import Session
from suites.metrics import METRICS, PRIMARY, beside_verdict


def judge_all(
    chosen: Sequence[StepPairs],
    options: CompareOptions,
    intervals: Intervals,
    noise: Mapping[str, Noise],
    session: Session,
    engines: Collection[Engine],
) -> tuple[StepComparison, ...]:
    """Judge the chosen steps; `session` determines their groups and the metrics beside the verdict.

    `noise` is the calibrated noise by step; `engines` are those of base and contender.
    """
    metric = METRICS[options.metric]
    threshold = threshold_of(metric.name, options)
    recorded = {name for step in chosen for pair in step.pairs for name in (*pair.base, *pair.contender)}
    shown = beside_verdict(engines, session.primary)
    if session.is_imported:
        shown = beside_imported(recorded, engines)
    beside = [name for name in shown if name != metric.name]
    groups = groups_of(session)
    return tuple(
        StepComparison(
            step.step,
            judge_step(step, metric, threshold, intervals),
            tuple(judge_beside(step, name, threshold_of(name, options), intervals) for name in beside),
            intervals.smallest_visible(step, metric, threshold, noise.get(step.step)),
            _base_drift(step),
            group=groups.get(step.step, ""),
            clients=waiting_clients(session, step.step),
            cores=session.machine.cores,
        )
        for step in chosen
    )


def choose_steps(paired: Sequence[StepPairs], steps: Sequence[str], where: str) -> Sequence[StepPairs]:
    """Return the requested steps, or all without a request. Raises ComparisonError for an unknown step."""
    names = [pairs.step for pairs in paired]
    unknown = [step for step in steps if step not in names]
    if unknown:
        raise ComparisonError(
            f"{where} has no step {', '.join(unknown)}", hint=f"its steps: {', '.join(names)}"
        )
    return [pairs for pairs in paired if not steps or pairs.step in steps]


def _base_drift(step: StepPairs) -> float | None:
    """Return by how much the base moved; one block with an autovacuum at either end is not all of it."""
    rates, _ = step.values(PRIMARY)
    if len(rates) < 2:
        return None
    third = max(1, len(rates) // 3)
    first, last = median(rates[:third]), median(rates[-third:])
    return last / first if first > 0 else None
