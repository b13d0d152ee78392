"""The overhead of what a variant has and its base has not: settings, indexes, companion processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from history.comparison.result import ContenderComparison
from history.series.variants import definition_in
from suites.additions.variant import EXTENSIONS
from suites.metrics import METRICS, Role


@dataclass(frozen=True)
class Overhead:
    """The overhead of one step, as a fraction: 1 - with / without. Below zero the step is faster with it."""

    step: str
    value: float
    low: float | None
    """The bounds of its interval; None if there are too few rounds for one."""

    high: float | None

    @property
    def is_none(self) -> bool:
        """Whether the step is certainly faster with it."""
        return self.high is not None and self.high < 0


def overheads(contender: ContenderComparison) -> list[Overhead]:
    """Return the overhead of each step of a pair: two variants of one version, compiled alike.

    It is empty for other comparisons, and for those of another metric than throughput.
    """
    options = contender.session.options
    base, new = contender.base, contender.contender
    without, changed = (definition_in(options, version.variant) for version in (base, new))
    if base.plain != new.plain or _compiled(without) != _compiled(changed) or without == changed:
        return []
    if EXTENSIONS in without and without[EXTENSIONS] != changed.get(EXTENSIONS):
        return []  # two refs of an extension, neither of which is without it
    return [
        Overhead(
            step.step,
            1 - step.judged.value,
            None if step.judged.interval is None else 1 - step.judged.interval.high,
            None if step.judged.interval is None else 1 - step.judged.interval.low,
        )
        for step in contender.steps
        if step.judged.value is not None and METRICS[step.judged.metric].role is Role.THROUGHPUT
    ]


def _compiled(definition: Mapping[str, Any]) -> tuple[Any, Any]:
    return definition.get("build"), definition.get("patches")
