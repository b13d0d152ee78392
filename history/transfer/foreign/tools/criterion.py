"""The estimates.json of Criterion.rs, in nanoseconds. Only its folders have the name of the benchmark."""

from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import number, parts
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import Given, Location
from suites.metric_names import OPERATION_TIME

_METRICS = {"mean": OPERATION_TIME, "median": "latency_p50_ms"}
_MILLISECONDS = 1e-6


def _recognises(document: Document) -> bool:
    return {"mean", "median"} <= parts(document.json).keys()


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    whole = parts(document.json)
    estimates = {
        metric: number(parts(whole[name]).get("point_estimate")) for name, metric in _METRICS.items()
    }
    values = {metric: value * _MILLISECONDS for metric, value in estimates.items() if value is not None}
    if OPERATION_TIME in values:
        yield Result(values, Location(document.name, "the estimates"))
    else:
        notes.append("it has no mean.point_estimate")


CRITERION = ToolFormat(
    "the estimates of Criterion.rs",
    "criterion",
    _recognises,
    _read,
    '{"mean": {"point_estimate": 125500.0}, "median": {"point_estimate": 124900.0}}',
)
