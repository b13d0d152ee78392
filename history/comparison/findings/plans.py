"""Plans beside verdicts: a step whose statements base and contender carry out differently."""

from collections.abc import Iterator
from dataclasses import dataclass

from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.store.records import LIMIT_SECONDS, PLANS
from suites.keys.levels import plain_name
from suites.plans.trees import difference

DECIDED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)


@dataclass(frozen=True)
class ChangedPlan:
    """The plans of one step that differ."""

    step: str
    base: str
    contender: str


def changed_plans(contender: ContenderComparison) -> Iterator[ChangedPlan]:
    """Yield the steps whose plan changed, within one session and engine.

    They are those with a verdict of a change, and in a session of long queries all, with those that were
    over their limit and have no ratio.
    """
    plans = contender.session.options.get(PLANS)
    if contender.nights is not None or len(contender.engines) > 1 or not isinstance(plans, dict):
        return
    old, new = (plans.get(str(version)) for version in (contender.base, contender.contender))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    long_queries = LIMIT_SECONDS in contender.session.options
    for step in contender.steps:
        if long_queries or step.judged.verdict in DECIDED:
            base, other = (side.get(plain_name(step.step)) for side in (old, new))
            if isinstance(base, str) and isinstance(other, str) and difference(base, other):
                yield ChangedPlan(step.step, base, other)
