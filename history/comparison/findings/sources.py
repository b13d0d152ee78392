"""The sources of findings: what is looked at beside the verdict, each by a rule of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from history.comparison.beside.censored import beyond_limit
from history.comparison.beside.work_done import own_failures
from history.comparison.finding import Bearing, Finding
from history.comparison.findings import left_behind, starts
from history.comparison.findings.memory_growth import memory_growth
from history.comparison.findings.moved_metrics import SOURCE, moved_metrics
from history.comparison.findings.plans import changed_plans
from history.comparison.findings.rare_events import rare_events
from history.comparison.findings.tails import told_tails
from history.comparison.intervals import Intervals
from history.comparison.result import ContenderComparison
from suites.metrics import SERVER_MEMORY

FAILURES, LIMITS, EVENTS, METRICS, MEMORY, STARTS, WITHIN, LEFT, PLANS = (
    "failures",
    "limits",
    "events",
    SOURCE,
    "memory",
    starts.SOURCE,
    "within rounds",
    left_behind.SOURCE,
    "plans",
)
"""The names of sources."""

Source = Callable[[ContenderComparison, Intervals], Iterable[Finding]]
"""Yields findings of a contender whose steps have been judged, by the intervals that judged them."""


def _failures(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    for failure in own_failures(contender):
        text = f"failed on {contender.contender} alone: {failure.gist}"
        yield Finding(FAILURES, failure.step, "", Bearing.WORSE, text)


def _limits(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    for step, is_worse, text in beyond_limit(contender):
        yield Finding(LIMITS, step, "", Bearing.WORSE if is_worse else Bearing.BETTER, text)


def _events(contender: ContenderComparison, intervals: Intervals) -> Iterator[Finding]:
    for events in (*rare_events(contender.paired), *told_tails(contender.paired)):
        if events.is_told:
            bearing = Bearing.WORSE if events.is_worse else Bearing.BETTER
            bearing = bearing if events.is_decided else Bearing.TOLD
            yield Finding(EVENTS, events.step, events.metric, bearing, events.text(intervals.round_name))


def _within_rounds(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    yield from contender.within_rounds


def _memory(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    for growth in memory_growth(contender.paired):
        bearing = Bearing.WORSE if growth.is_worse else Bearing.BETTER
        yield Finding(MEMORY, growth.pairs.step, SERVER_MEMORY, bearing, growth.text)


def _starts(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    yield from starts.moved_starts(contender)


def _left_behind(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    yield from left_behind.left_behind(contender)


def _plans(contender: ContenderComparison, _intervals: Intervals) -> Iterator[Finding]:
    for plan in changed_plans(contender):
        yield Finding(PLANS, plan.step, "", Bearing.TOLD, plan.text)


SOURCES: Mapping[str, Source] = {
    FAILURES: _failures,
    LIMITS: _limits,
    EVENTS: _events,
    METRICS: moved_metrics,
    MEMORY: _memory,
    WITHIN: _within_rounds,
    LEFT: _left_behind,
    STARTS: _starts,
    PLANS: _plans,
}
"""Source -> the function that yields its findings, in the order in which they are told.

Each may have a false one in at most a tenth of a per cent of sessions of equal builds, the metrics and the
events, which are many, in a quarter for each contender."""


def with_findings(contender: ContenderComparison, intervals: Intervals) -> ContenderComparison:
    """Return a contender with what all sources found in its steps."""
    found = [finding for source in SOURCES.values() for finding in source(contender, intervals)]
    steps = tuple(
        replace(step, findings=tuple(finding for finding in found if finding.step == step.step))
        for step in contender.steps
    )
    return replace(contender, steps=steps)
