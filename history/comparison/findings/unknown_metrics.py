"""Judged metrics of which it is not known that they are no worse: which are named, and in which words."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.comparison.result import StepComparison
from history.comparison.verdict import Judged
from history.numbers import percent_bounds
from history.stats.estimators import Interval
from suites.metric import Better
from suites.metrics import METRICS, label_of

COLUMNS = 100
"""The columns of the line that names them."""


@dataclass(frozen=True)
class Unknown:
    """A metric of which it is not known in some steps that it is no worse."""

    metric: str
    steps: tuple[str, ...]
    widest: Interval | None
    """The widest of their intervals; None where no step has any."""

    is_rather_worse: bool
    """Whether an interval of a step lies on the bad side, but not certainly beyond the threshold."""

    @property
    def text(self) -> str:
        """The metric in a few words: `WAL or redo (-3.1 to +12.0 %)`."""
        width = f" ({percent_bounds(self.widest)})" if self.widest else ""
        return f"{label_of(self.metric)}{width}"

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """What is named first: what is rather worse, what is counted, then the widest interval."""
        width = 0.0 if self.widest is None else math.log(self.widest.high / self.widest.low)
        return not self.is_rather_worse, not METRICS[self.metric].is_counted, -width


def unknown_metrics(steps: Iterable[StepComparison]) -> tuple[Unknown, ...]:
    """Return the judged metrics that may be worse without being known to be, in the order of their ranks.

    A metric that is part of another one is left out beside it.
    """
    found: dict[str, list[tuple[str, Judged]]] = {}
    for step in steps:
        for judged in step.unknown:
            found.setdefault(judged.metric, []).append((step.step, judged))
    unknown = (
        Unknown(
            name,
            tuple(step for step, _ in found[name]),
            _widest([judged for _, judged in found[name]]),
            any(_is_rather_worse(judged) for _, judged in found[name]),
        )
        for name in METRICS
        if name in found and METRICS[name].part_of not in found
    )
    return tuple(sorted(unknown, key=lambda metric: metric.rank))


def may_be_worse(unknown: Sequence[Unknown], most: int = len(METRICS)) -> str:
    """Return a line on at least one metric: `may be worse in insert: WAL or redo (-3.1 to +12.0 %); 2 more`.

    As many are named as the line holds, at least one and at `most` so many.
    """
    steps = list(dict.fromkeys(step for metric in unknown for step in metric.steps))
    line = f"may be worse in {steps[0] if len(steps) == 1 else f'{len(steps)} steps'}: {unknown[0].text}"
    named = 1
    for metric in unknown[1:most]:
        longer = f"{line}, {metric.text}"
        if len(longer) + len("; 10 more") > COLUMNS:
            break
        line, named = longer, named + 1
    rest = len(unknown) - named
    return f"{line}; {rest} more" if rest else line


def _is_rather_worse(judged: Judged) -> bool:
    interval = judged.interval
    if interval is None:
        return False
    return interval.high < 1 if judged.better is Better.HIGHER else interval.low > 1


def _widest(judged: Sequence[Judged]) -> Interval | None:
    intervals = (metric.interval for metric in judged)
    known = [interval for interval in intervals if interval is not None and interval.low > 0]
    return max(known, key=lambda interval: interval.high / interval.low, default=None)
