"""A comparison as CSV, for spreadsheets. Columns are only ever added at the end."""

from collections.abc import Iterator
from typing import Any

from history.comparison.explanation import Explanation
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.escaping.csv_cells import csv_text
from history.numbers import rounded
from suites.metrics import METRICS

_HEADS = (
    *("session", "suite", "profile", "base", "contender", "step", "metric", "unit", "better"),
    *("base_value", "contender_value", "ratio", "low", "high", "pairs", "verdict", "gap", "reason"),
    *("change", "explained_by", "variation", "smallest_visible", "base_drift"),
    *("group", "group_steps"),
)

NOT_EXPLAINED = "not explained by cost"


def render_csv(comparison: Comparison) -> str:
    """Return one line per contender, step and metric, with its interval and change.

    They are followed by one line per group and metric, without a step, with the mean ratio and the number of
    steps. Only the judged metric has a verdict, and the metrics that explain it, separated by spaces.
    """
    rows = (row for contender in comparison.contenders for row in _rows(comparison, contender))
    return csv_text([_HEADS, *rows])


def _rows(comparison: Comparison, contender: ContenderComparison) -> Iterator[list[Any]]:
    session = contender.session
    origin = [session.uid, session.suite, session.profile, str(contender.base), str(contender.contender)]
    for step in contender.steps:
        for ratio in step.metrics:
            metric, interval, judged = METRICS[ratio.metric], ratio.interval, ratio is step.judged
            values = map(rounded, (ratio.base, ratio.contender, ratio.value))
            bounds = (rounded(interval.low), rounded(interval.high)) if interval else (None, None)
            verdict = (ratio.verdict, ratio.gap, ratio.reason) if judged else (None,) * 3
            step_values = _step_values(step) if judged else (None,) * 4
            subject = (step.step, ratio.metric, metric.unit, metric.better)
            measured = [*values, *bounds, ratio.pairs, *verdict, ratio.change, *step_values]
            yield [*origin, *subject, *measured, step.group or None, None]
    for mean in contender.group_means():
        for name, value in mean.ratios.items():
            metric = METRICS[name]
            row = [*origin, "", name, metric.unit, metric.better, None, None, rounded(value)]
            yield [*row, *[None] * (len(_HEADS) - len(row) - 2), mean.group, mean.steps]


def _step_values(step: StepComparison) -> tuple[str | float | None, ...]:
    return _explained(step), step.variation, rounded(step.smallest_visible), rounded(step.base_drift)


def _explained(step: StepComparison) -> str | None:
    without_costs = {
        Explanation.NONE: NOT_EXPLAINED,
        Explanation.UNDECIDED: str(Explanation.UNDECIDED),
        Explanation.PROFILE: str(Explanation.PROFILE),
        Explanation.WAIT: str(Explanation.WAIT),
        Explanation.PARTLY: str(Explanation.PARTLY),
    }
    if step.explanation in without_costs:
        return without_costs[step.explanation]
    return " ".join(step.explained_by or ()) or None
