"""The JSON of Google Benchmark (`--benchmark_format=json`): the wall-clock time of each repetition."""

from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import date, items, number, parts, text
from history.transfer.foreign.results import Result, ToolFormat, aborted
from history.transfer.foreign.units import factor
from history.transfer.foreign.values import Given, Location, refuse
from suites.metric_names import OPERATION_TIME
from suites.metrics import METRICS


def _recognises(document: Document) -> bool:
    return {"context", "benchmarks"} <= parts(document.json).keys()


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    whole = parts(document.json)
    context = parts(whole.get("context"))
    for place_, benchmark in enumerate(map(parts, items(whole.get("benchmarks"))), start=1):
        place = Location(document.name, f"benchmark {place_}")
        if benchmark.get("run_type") == "aggregate":
            continue
        if benchmark.get("error_occurred") is True:
            raise aborted(place, text(benchmark.get("error_message")) or "error_occurred")
        time = number(benchmark.get("real_time"))
        if time is None:
            notes.append(f"{place} has no real_time")
            continue
        try:
            scale = factor(METRICS[OPERATION_TIME], text(benchmark.get("time_unit")) or "ns")
        except ValueError as error:
            raise refuse(place, str(error)) from error
        name = text(benchmark.get("run_name")) or text(benchmark.get("name"))
        yield Result(
            {OPERATION_TIME: time * scale},
            place,
            name or None,
            machine=text(context.get("host_name")) or None,
            when=date(context.get("date")),
        )


GOOGLE_BENCHMARK = ToolFormat(
    "the JSON of Google Benchmark",
    "google-benchmark",
    _recognises,
    _read,
    """{"context": {"date": "2026-11-25T02:00:00+00:00", "host_name": "db1"},
 "benchmarks": [{"name": "BM_Insert/8", "run_type": "iteration", "real_time": 125.5, "time_unit": "us"}]}""",
)
