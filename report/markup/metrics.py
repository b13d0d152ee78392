"""The choice of a metric: parts of a page, one for each metric, of which a script shows the chosen one.

The address has the choice, as in `#metric=qps`, so that a link says which numbers it is about. Without a
script all parts are there, one below the other.
"""

from collections.abc import Iterable, Sequence

import htpy as h

from report.markup.formats import metric_name
from suites.metrics import METRICS, Metric


def named(metric: str) -> h.Node:
    """Return what a metric is called in a table; its title says what it is."""
    name = metric_name(metric)
    return h.abbr(title=METRICS[metric].description)[name] if metric in METRICS else name


def described(metric: Metric) -> str:
    """Return a metric with its unit and direction: `qps (queries/s), more is better`."""
    words = (f"{metric_name(metric.name)} ({metric.unit})", metric.better.words)
    return ", ".join(filter(None, words))


def metric_choice(metrics: Sequence[Metric]) -> h.Node:
    """Return links to the parts of several metrics; nothing for a single one."""
    if len(metrics) < 2:
        return None
    return h.nav(".metrics", aria_label="Metrics")[
        h.span(".quiet")["by"],
        h.ul(".inline")[
            (
                h.li[h.a(href=f"#metric={metric.name}", title=metric.description)[_label(metric)]]
                for metric in metrics
            )
        ],
    ]


def metric_part(metric: Metric, *content: h.Node, is_target: bool = True) -> h.Node:
    """Return what is shown when a metric is chosen; links lead to that with `is_target`, one of each page."""
    return h.div(id=f"metric={metric.name}" if is_target else None, data_metric=metric.name)[list(content)]


def metric_parts(parts: Iterable[tuple[Metric, h.Node]]) -> h.Node:
    """Return the choice and the parts of a page that has one for each metric."""
    listed = list(parts)
    return [
        metric_choice([metric for metric, _ in listed]),
        [metric_part(metric, content) for metric, content in listed],
    ]


def _label(metric: Metric) -> str:
    return f"{metric_name(metric.name)}, {metric.unit}"
