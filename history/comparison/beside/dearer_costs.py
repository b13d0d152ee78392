"""Costs that certainly grew in a step that is not faster for it."""

from history.comparison.explanation import is_cost
from history.comparison.result import StepComparison
from history.comparison.verdict import Judged, Verdict
from suites.metrics import INSTRUCTIONS


def dearer_costs(step: StepComparison) -> tuple[Judged, ...]:
    """Return the costs of a query whose whole interval is beyond their threshold, instructions aside.

    Such a cost is a regression of its own. A step that is faster may pay for it.
    """
    if step.judged.verdict is Verdict.IMPROVEMENT:
        return ()
    return tuple(
        cost
        for cost in step.beside
        if is_cost(cost.metric)
        and cost.metric != INSTRUCTIONS
        and cost.verdict is Verdict.REGRESSION
        and cost.interval is not None
        and cost.interval.low > 1 + cost.threshold
    )
