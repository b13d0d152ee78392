"""Metrics beside the judged one whose whole interval is beyond their threshold."""

from collections.abc import Iterator
from dataclasses import replace

from history.comparison.exact import is_exact
from history.comparison.finding import Bearing, Finding
from history.comparison.intervals import Intervals
from history.comparison.pairs import StepPairs
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.verdict import Gap, Judged, MetricChange, Verdict, verdict_of
from history.metric_words import label_of
from history.numbers import change_text, percents
from history.stats.estimators import Interval
from suites.metrics import INSTRUCTIONS, Better, Role

SOURCE = "metrics"

FALSE_FINDINGS = 0.0025
"""How often a contender that equals the base may have a finding by any metric in any step, good or bad.

It is 1 % in a session of a base and four of them."""


def moved_metrics(contender: ContenderComparison, intervals: Intervals) -> Iterator[Finding]:
    """Yield the judged metrics that certainly moved by more than their threshold, by step.

    Their intervals are wider than those of the table, because all metrics share one error. Instructions have
    lines and an exit code of their own.
    """
    names = {judged.metric for step in contender.steps for judged in _candidates(step)}
    if not names:
        return
    strict = replace(intervals, confidence=1 - FALSE_FINDINGS / len(names))
    pairs = {step.step: step for step in intervals.steps}
    for step in contender.steps:
        for judged in _candidates(step):
            change = _beyond(judged.interval, judged.threshold)
            if change is None or judged.change is MetricChange.UNKNOWN:
                continue
            if not is_exact(judged.metric):
                wider = [strict.of(step_pairs, judged.metric) for step_pairs in _by(pairs[step.step], judged)]
                if any(_beyond(interval, judged.threshold) is not change for interval in wider):
                    continue
            verdict = verdict_of(judged.change, judged.better)
            if verdict is Verdict.REGRESSION and judged.row.buys_speed and is_faster(step):
                continue
            bearing = Bearing.WORSE if verdict is Verdict.REGRESSION else Bearing.BETTER
            yield Finding(SOURCE, step.step, judged.metric, bearing, moved_text(judged))


def is_faster(step: StepComparison) -> bool:
    """Whether the step is an improvement by the metric that judges it."""
    return step.judged.verdict is Verdict.IMPROVEMENT


def _candidates(step: StepComparison) -> Iterator[Judged]:
    if step.judged.gap is Gap.OVERLOADED:
        return
    for judged in step.beside:
        row = judged.row
        if row.judged and row.better is not Better.NEITHER and judged.pairs and row.name != INSTRUCTIONS:
            yield judged


def _by(step: StepPairs, judged: Judged) -> tuple[StepPairs, ...]:
    """Return the pairs by which a metric must have moved: all, and of a reset per transaction.

    A version that did more work in its round has more to clean up for that reason."""
    return (step, step.per_transaction(judged.metric)) if judged.row.role is Role.RESET else (step,)


def _beyond(interval: Interval | None, threshold: float) -> MetricChange | None:
    """Return on which side the whole interval is beyond the threshold; None if it is not."""
    if interval is not None and interval.low > 1 + threshold:
        return MetricChange.MORE
    return MetricChange.LESS if interval is not None and interval.high < 1 - threshold else None


def moved_text(judged: Judged) -> str:
    """Return how a metric moved, with its interval: `WAL or redo +41.0 % (+38.2 to +44.1)`."""
    return ratio_text(judged.metric, judged.value or 1, judged.interval)


def ratio_text(metric: str, value: float, interval: Interval | None) -> str:
    """Return how a metric moved by a ratio, with its interval if it has one."""
    size = f"{percents(value)} %" if interval is None else change_text(value, interval.low, interval.high)
    return f"{label_of(metric)} {size}"
