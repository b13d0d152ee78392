"""Judged metrics of which it is not known that they are no worse: which are named, and in which words."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from history.comparison.result import StepComparison
from history.comparison.verdict import Judged
from history.metric_words import label_of
from history.numbers import percent_bounds
from history.stats.estimators import Interval
from suites.metrics import METRICS

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
    """Whether the intervals of these steps lie on the bad side: what is certain of one metric alone, among so
    many is not, or not beyond the threshold."""

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

    A metric that is rather worse in some steps is returned of these alone. One that is part of another is
    left out beside it.
    """
    found: dict[str, list[tuple[str, Judged]]] = {}
    for step in steps:
        for judged in step.unknown:
            found.setdefault(judged.metric, []).append((step.step, judged))
    unknown = (
        _unknown(name, found[name])
        for name in METRICS
        if name in found and METRICS[name].part_of not in found
    )
    return tuple(sorted(unknown, key=lambda metric: metric.rank))


def _unknown(metric: str, found: Sequence[tuple[str, Judged]]) -> Unknown:
    rather = [(step, judged) for step, judged in found if _is_rather_worse(judged)]
    steps = tuple(step for step, _ in rather or found)
    return Unknown(metric, steps, _widest([judged for _, judged in rather or found]), bool(rather))


def may_be_worse(unknown: Sequence[Unknown], most: int = len(METRICS)) -> str:
    """Return a line on at least one metric: `may be worse in insert: WAL or redo (-3.1 to +12.0 %); 2 more`.

    What lies on the bad side is `probably worse`, and comes first. As many are named as the line holds, at
    least one and at `most` so many.
    """
    line, named = "", 0
    for word, is_rather in (("probably worse", True), ("may be worse", False)):
        group = [metric for metric in unknown if metric.is_rather_worse is is_rather]
        steps = list(dict.fromkeys(step for metric in group for step in metric.steps))
        where = steps[0] if len(steps) == 1 else f"{len(steps)} steps"
        for place, metric in enumerate(group):
            link = ", " if place else f"{'; ' if line else ''}{word} in {where}: "
            longer = f"{line}{link}{metric.text}"
            rest = len(unknown) - named
            most_columns = COLUMNS - (len("; 10 more") if rest > 1 else 0)
            if named == most or (named and len(longer) > most_columns):
                return f"{line}; {rest} more"
            line, named = longer, named + 1
    return line


def _is_rather_worse(judged: Judged) -> bool:
    interval = judged.interval
    if interval is None:
        return False
    return all(judged.better.gain(end - 1) < 0 for end in (interval.low, interval.high))


def _widest(judged: Sequence[Judged]) -> Interval | None:
    intervals = (metric.interval for metric in judged)
    known = [interval for interval in intervals if interval is not None and interval.low > 0]
    return max(known, key=lambda interval: interval.high / interval.low, default=None)
