"""What a query costs, whether that explains a change of throughput, and how the throughput varied."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from build.version import Engine
from history.comparison.query_time import CPU_COSTS, QueryTime
from history.comparison.verdict import Judged, MetricChange, Verdict, verdict_of
from suites.metrics import METRICS, Role, beside_verdict

if TYPE_CHECKING:
    from history.comparison.profile_diff import FunctionChange

MIN_SHARE = 0.5
"""The share of a change of throughput with which CPU time explains it, and that of the growth of the server's
CPU time per query with which a function explains a regression.

Also that of the change of client time with which a wait explains one, or an improvement."""


def imported_stand_ins() -> Mapping[str, str]:
    """Return metric -> the metric that replaces it in imported sessions in which it was not recorded."""
    return {metric.imported_for: name for name, metric in METRICS.items() if metric.imported_for}


def beside_imported(recorded: Collection[str], engines: Collection[Engine]) -> tuple[str, ...]:
    """What stands beside a verdict in a session that was imported.

    The whole machine's metric where nothing of the server is among `recorded`, the metrics of the session.
    """
    stand_ins = imported_stand_ins()
    return tuple(name if name in recorded else stand_ins.get(name, name) for name in beside_verdict(engines))


class Variation(StrEnum):
    """How the variation of throughput within a step changed."""

    WORSE = "worse"
    """One of its metrics is a regression by the rules of a verdict."""

    BETTER = "better"
    """None is a regression, and one is an improvement."""

    SAME = "same"
    """All of its metrics that were recorded are unchanged."""

    UNKNOWN = "unknown"


def explained_by(metric: str, verdict: Verdict | None, beside: Sequence[Judged]) -> tuple[str, ...] | None:
    """The costs among `beside` that moved the way that explains a verdict on `metric`, in their order.

    More of a cost explains a regression of throughput, less of it an improvement; one that moved the other
    way explains nothing, and neither does one that is not known to have moved. None when there is nothing to
    explain (`metric` is no throughput, or the verdict is no change), and when no cost was recorded.
    """
    explaining = {Verdict.REGRESSION: MetricChange.MORE, Verdict.IMPROVEMENT: MetricChange.LESS}
    if METRICS[metric].role is not Role.THROUGHPUT or verdict not in explaining:
        return None
    costs = [judged for judged in beside if is_cost(judged.metric) and judged.pairs]
    return tuple(cost.metric for cost in costs if cost.change is explaining[verdict]) if costs else None


class Explanation(StrEnum):
    """Whether a change of throughput is explained."""

    COST = "cost"
    """A cost moved the way that explains it, and far enough where its size is known."""

    PROFILE = "profile"
    """No cost is known to have moved so, but the profile names a function that takes more time per query."""

    WAIT = "wait"
    """No cost is known to have moved so, but queries wait for one thing longer, or shorter, and that is most
    of the change."""

    UNDECIDED = "undecided"
    """No cost is known to have moved so, and of a cost or a function it is not known whether it did."""

    PARTLY = "partly"
    """Costs moved the way that explains it, but CPU time explains less than MIN_SHARE of it: the rest is
    waiting."""

    NONE = "none"
    """All recorded costs stayed the same or moved the other way, and no function and no wait is named."""


def explanation(
    costs: tuple[str, ...] | None,
    beside: Sequence[Judged],
    gained: Sequence["FunctionChange"],
    waits: Sequence["FunctionChange"] = (),
    time: QueryTime | None = None,
) -> Explanation | None:
    """Whether a change of throughput is explained, by `explained_by`'s `costs`, the profile and the waits.

    `gained` are the functions that gained most CPU time per query, `waits` those events in which queries
    wait longer, or shorter, as the change has it. `time` says how far CPU time explains the change; None if
    its size is not known. None when there is nothing to explain.
    """
    if costs is None:
        return None
    if costs and (time is None or time.explained_share >= MIN_SHARE):
        return Explanation.COST
    unknown = unknown_costs(costs, beside, time)
    # Where CPU time is known not to explain it, no part of it does.
    named = explaining_functions(gained) if time is None or unknown else ()
    if any(function.own_interval is None or function.is_certain for function in named):
        return Explanation.PROFILE
    if any(wait.is_certain and (wait.own_share or 0.0) >= MIN_SHARE for wait in waits):
        return Explanation.WAIT
    if unknown or named:
        return Explanation.UNDECIDED
    return Explanation.PARTLY if costs else Explanation.NONE


def unknown_costs(
    costs: Collection[str] | None, beside: Sequence[Judged], time: QueryTime | None
) -> tuple[Judged, ...]:
    """The costs of which it is not known whether they moved, beside those that explain a part.

    No cost but CPU time has a size, so that none else is asked for the rest.
    """
    return tuple(
        judged
        for judged in beside
        if is_cost(judged.metric) and judged.pairs and judged.change is MetricChange.UNKNOWN
        if judged.base or judged.contender  # zero on both sides explains nothing
        if time is None or not costs or judged.metric in CPU_COSTS
    )


def explaining_functions(gained: Sequence["FunctionChange"]) -> tuple["FunctionChange", ...]:
    """The functions that make up MIN_SHARE of the growth of the server's CPU time per query or more."""
    return tuple(
        function
        for function in gained
        if function.own_change > 0 and function.own_share is not None and function.own_share >= MIN_SHARE
    )


def is_cost(metric: str) -> bool:
    """Whether a metric says what a query costs the server, or the machine that stands for it."""
    return METRICS[metric].role is Role.COST


def variation(metrics: Sequence[Judged]) -> Variation:
    """How the variation of throughput changed, from those of that role among `metrics`."""
    verdicts = {
        verdict_of(metric.change, METRICS[metric.metric].better)
        for metric in metrics
        if METRICS[metric.metric].role is Role.VARIATION and metric.pairs
    }
    if Verdict.REGRESSION in verdicts:
        return Variation.WORSE
    if Verdict.IMPROVEMENT in verdicts:
        return Variation.BETTER
    return Variation.SAME if verdicts == {Verdict.UNCHANGED} else Variation.UNKNOWN
