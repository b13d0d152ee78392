"""The costs of a query that changed with the commits that a bisect names."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby

from history.comparison.intervals import Intervals
from history.comparison.options import CompareOptions, threshold_of
from history.comparison.pairs import WORK_METRICS, pair_steps
from history.comparison.verdict import Judged, MetricChange, judge_beside
from history.metric_words import label_of
from history.numbers import amount, bounds
from history.rendering.table import decimal, decimals
from history.stats.estimators import MINIMUM_REPETITIONS
from history.store.reader import Reader
from history.store.records import Run
from runners.bisect.domain.ancestry import ancestry_of
from runners.bisect.run.event_log import Log, named_changes
from suites.metrics import METRICS, Role, beside_verdict

BEFORE, AFTER = "before", "after"

COSTS = frozenset(
    name for name, metric in METRICS.items() if metric.role is Role.COST and not metric.is_counted
)

MOST = 8
"""The most costs of a change that are told."""

CostRow = tuple[str, str, str, str, str, str]
"""A label, the unit, what a query costs before and after, the ratio and its interval."""


def changed_costs(store: Reader, log: Log) -> Mapping[int, Sequence[Judged]]:
    """Return the costs that moved for certain with each change that the verdict names, largest ratio first.

    They are by the position of the commit. Those rounds count in which a commit with the change ran beside
    one without it, and both have the same other changes; of each side the one nearest to the change. Where
    there are too few of them, rounds of either side are compared by their ratios to good. Counts for fixed
    work are left out: the functions of the change explain them.
    """
    changes = named_changes(log)
    if not changes or log.question.is_counted:  # passes time nothing
        return {}
    rounds = [measured for uid in log.bisect.sessions for measured in _rounds(store, log, uid)]
    has = _changes_of(log, [high for _, high in changes])
    found = {}
    for _, high in changes:
        without = has[high] - {high}
        before, after = (
            {place for place, there in has.items() if there == side} for side in (without, has[high])
        )
        if moved := _moved(log, list(_paired(rounds, before, after))):
            found[high] = moved
    return found


def cost_rows(costs: Sequence[Judged]) -> Iterator[CostRow]:
    """Yield a row of each cost, as many as are told."""
    for cost in costs[:MOST]:
        yield (
            label_of(cost.metric),
            cost.unit,
            amount(cost.base),
            amount(cost.contender),
            decimal(cost.metric, cost.value),
            bounds(cost.interval, decimals(cost.metric)),
        )


def _changes_of(log: Log, changes: Sequence[int]) -> Mapping[int, frozenset[int]]:
    """Return which of the changes each position has: on a line, those up to it."""
    ancestry = ancestry_of(log.span.parents)
    return {
        place: frozenset(
            change
            for change in changes
            if (place >= change if ancestry is None else ancestry.contains[place, change - 1])
        )
        for place in range(log.span.length + 1)
    }


def _rounds(store: Reader, log: Log, uid: str) -> Iterator[Mapping[int, Run]]:
    """Yield the finished runs of each round of a session that has one of good, by position."""
    session = store.latest_session((), uid=uid)
    runs = () if session is None else store.runs(session.id, (), {*COSTS, *WORK_METRICS})
    places = {version: place for place, version in enumerate(log.span.versions)}
    known = [run for run in runs if run.step == log.question.step and run.version in places and run.values]
    for _, of_round in groupby(sorted(known, key=_number), _number):
        measured = {places[run.version]: run for run in of_round}
        if 0 in measured:
            yield measured


def _number(run: Run) -> int:
    return run.repetition


def _paired(rounds: Sequence[Mapping[int, Run]], before: Set[int], after: Set[int]) -> Iterator[Run]:
    """Yield pairs of runs, one of either side, as the versions BEFORE and AFTER of one session."""
    sides = [[_nearest(measured, before, last=True), _nearest(measured, after)] for measured in rounds]
    pairs = [(old, new) for old, new in sides if old and new]
    if len(pairs) < MINIMUM_REPETITIONS:
        # A second change is seldom probed beside a commit before it: good is in the rounds of both.
        olds, news = (
            [(run, measured[0]) for measured, side in zip(rounds, sides, strict=True) if (run := side[place])]
            for place in (0, 1)
        )
        pairs = [
            (old, _as_beside(new, good_then, good))
            for (old, good), (new, good_then) in zip(olds, news, strict=False)
        ]
    for number, (old, new) in enumerate(pairs, 1):
        for version, run in ((BEFORE, old), (AFTER, new)):
            yield replace(run, version=version, repetition=number, step_position=0)


def _nearest(measured: Mapping[int, Run], side: Set[int], *, last: bool = False) -> Run | None:
    places = sorted(measured.keys() & side, reverse=last)
    return measured[places[0]] if places else None


def _as_beside(run: Run, good_then: Run, good: Run) -> Run:
    """Return a run with its costs as they would be in the round of `good`, by the ratios to good's."""
    both = good_then.values.keys() & good.values.keys()
    values = {
        name: value * good.values[name] / good_then.values[name] if name in COSTS else value
        for name, value in run.values.items()
        if name not in COSTS or (name in both and good_then.values[name] > 0)
    }
    return replace(run, values=values)


def _moved(log: Log, runs: Sequence[Run]) -> list[Judged]:
    steps, options = pair_steps(runs, BEFORE, AFTER), CompareOptions()
    engines = {log.question.engine}
    intervals = Intervals(steps, log.question.confidence, looks=None)
    judged = (
        judge_beside(step, name, threshold_of(name, options), intervals)
        for step in steps
        for name in beside_verdict(engines)
        if name in COSTS and name != log.question.metric
    )
    moved = [cost for cost in judged if cost.change in (MetricChange.MORE, MetricChange.LESS)]
    return sorted(moved, key=_size, reverse=True)


def _size(cost: Judged) -> float:
    return abs(math.log(cost.value)) if cost.value else math.inf
