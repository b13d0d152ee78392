"""What a query costs, whether that explains a change of throughput, and how the throughput varied."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from build.version import Engine
from history.comparison.verdict import MetricChange, Ratio, Verdict, verdict_of
from suites.metrics import METRICS, Role, beside_verdict, imported_stand_ins


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


def explained_by(metric: str, verdict: Verdict | None, beside: Sequence[Ratio]) -> tuple[str, ...] | None:
    """The costs among `beside` that moved the way that explains a verdict on `metric`, in their order.

    More of a cost explains a regression of throughput, less of it an improvement; one that moved the other
    way explains nothing, and neither does one that is not known to have moved. None when there is nothing to
    explain (`metric` is no throughput, or the verdict is no change), and when no cost was recorded.
    """
    explaining = {Verdict.REGRESSION: MetricChange.MORE, Verdict.IMPROVEMENT: MetricChange.LESS}
    if METRICS[metric].role is not Role.THROUGHPUT or verdict not in explaining:
        return None
    costs = [each for each in beside if is_cost(each.metric) and each.pairs]
    return tuple(each.metric for each in costs if each.change is explaining[verdict]) if costs else None


def is_cost(metric: str) -> bool:
    """Whether a metric says what a query costs the server, or the machine that stands for it."""
    return METRICS[metric].role is Role.COST


def variation(metrics: Sequence[Ratio]) -> Variation:
    """How the variation of throughput changed, from those of that role among `metrics`."""
    verdicts = {
        verdict_of(each.change, METRICS[each.metric].better)
        for each in metrics
        if METRICS[each.metric].role is Role.VARIATION and each.pairs
    }
    if Verdict.REGRESSION in verdicts:
        return Variation.WORSE
    if Verdict.IMPROVEMENT in verdicts:
        return Variation.BETTER
    return Variation.SAME if verdicts == {Verdict.UNCHANGED} else Variation.UNKNOWN
