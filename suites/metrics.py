"""The metric registry: all rows by name, and lists and words that are derived from them."""

from collections.abc import Collection, Mapping

from build.version import Engine
from suites.metric import Better, Detection, Metric, Role
from suites.metric_names import PRIMARIES, PRIMARY
from suites.metric_rows import ROWS

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in ROWS}
"""Every metric that a step can record, by name. A step records those of its engine and generator."""


EVENTS: tuple[str, ...] = tuple(name for name, metric in METRICS.items() if metric.counted_in)
"""The metrics of events that are rare or absent, judged by counts."""


def of_role(*roles: Role) -> tuple[str, ...]:
    """Return the metrics with one of these roles, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.role in roles)


def followed_metrics() -> tuple[str, ...]:
    """Return the metrics that have a series over nights, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.followed)


def judged_metrics(*detections: Detection) -> tuple[str, ...]:
    """Return the metrics whose series are searched for changes, in the order of the rows.

    With `detections` only those that are searched in one of these ways.
    """
    wanted = detections or tuple(Detection)
    return tuple(name for name, metric in METRICS.items() if metric.judged and metric.detection in wanted)


def metrics_at_equal_work() -> tuple[str, ...]:
    """Return the metrics of which a query costs less the longer a server works, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.at_equal_work)


def beside_verdict(engines: Collection[Engine] = tuple(Engine), primary: str = PRIMARY) -> tuple[str, ...]:
    """Return the metrics shown beside a verdict that at least one of `engines` has.

    They are those of suites with this `primary` metric, ordered by role, then as the rows are.
    """
    shown = [
        metric
        for metric in METRICS.values()
        if _is_beside(metric) and metric.beside_of == primary and not metric.engines.isdisjoint(engines)
    ]
    order = list(Role)
    return tuple(metric.name for metric in sorted(shown, key=lambda metric: order.index(metric.role)))


def _is_beside(metric: Metric) -> bool:
    return metric.followed and metric.name not in PRIMARIES


def moved_by(name: str, ratio: float) -> str:
    """Return how a metric moved, to follow its size: `slower`, `more instructions per query`."""
    metric = METRICS.get(name)
    if metric is not None and (metric.role is Role.THROUGHPUT or metric.subject):
        return "slower" if (ratio < 1) is (metric.better is Better.HIGHER) else "faster"
    noun = metric.noun if metric is not None else ""
    per_query = " per query" if metric is not None and metric.unit.endswith("/query") else ""
    few = "fewer" if noun else "less"
    return f"{few if ratio < 1 else 'more'} {noun or label_of(name)}{per_query}"


def subject_of(name: str, steps: str) -> str:
    """Return what moved by a metric, to precede how: `insert`, `reset of insert and 3 more`."""
    subject = METRICS[name].subject if name in METRICS else ""
    return f"{subject} of {steps}" if subject else steps


def label_of(name: str) -> str:
    """Return the label of a metric, or its name if it has no label or is unknown to this version."""
    return (METRICS[name].label if name in METRICS else "") or name
