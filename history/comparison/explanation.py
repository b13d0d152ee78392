"""What a query costs, whether that explains a change of throughput, and how the throughput varied."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from history.comparison.verdict import MetricChange, Ratio, Verdict, verdict_of
from suites.measurement import COSTS, METRICS

WHOLE_MACHINE = {
    "server_cpu_us_per_op": "machine_cpu_us_per_op",
    "server_cs_per_op": "machine_cs_per_op",
    "server_read_kb_per_op": "machine_read_kb_per_op",
    "server_written_kb_per_op": "machine_written_kb_per_op",
}
"""What stands for a cost of the server in tables of others, who look at the whole machine with vmstat and
iostat: the load generator is in it."""

VARIATION = ("qps_cv", "qps_p1_over_median")
"""How much throughput varies within a step, from second to second."""

BESIDE = (*COSTS, "latency_p99_ms", *VARIATION)
"""Metrics that are compared beside the judged one."""


def beside_imported(recorded: Collection[str]) -> tuple[str, ...]:
    """The same in a session that was imported: the machine, where nothing of the server was recorded."""
    return tuple(each if each in recorded else WHOLE_MACHINE.get(each, each) for each in BESIDE)


THROUGHPUT = ("qps", "tps")
"""Metrics whose change a cost per query can explain."""


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
    """The costs among `beside` that moved the way that explains a verdict on `metric`, in the order of COSTS.

    More of a cost explains a regression of throughput, less of it an improvement; one that moved the other
    way explains nothing, and neither does one that is not known to have moved. None when there is nothing to
    explain (`metric` is no throughput, or the verdict is no change), and when no cost was recorded.
    """
    explaining = {Verdict.REGRESSION: MetricChange.MORE, Verdict.IMPROVEMENT: MetricChange.LESS}
    if metric not in THROUGHPUT or verdict not in explaining:
        return None
    costs = [each for each in beside if is_cost(each.metric) and each.pairs]
    return tuple(each.metric for each in costs if each.change is explaining[verdict]) if costs else None


def is_cost(metric: str) -> bool:
    """Whether a metric says what a query costs the server, or the machine that stands for it."""
    return metric in COSTS or metric in WHOLE_MACHINE.values()


def variation(metrics: Sequence[Ratio]) -> Variation:
    """How the variation of throughput changed, from those of VARIATION that are among `metrics`."""
    verdicts = {
        verdict_of(each.change, METRICS[each.metric].better)
        for each in metrics
        if each.metric in VARIATION and each.pairs
    }
    if Verdict.REGRESSION in verdicts:
        return Variation.WORSE
    if Verdict.IMPROVEMENT in verdicts:
        return Variation.BETTER
    return Variation.SAME if verdicts == {Verdict.UNCHANGED} else Variation.UNKNOWN
