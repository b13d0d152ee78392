"""The JSON of pytest-benchmark (`--benchmark-json`), with times in seconds."""

from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import date, items, parts, scaled, text
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import Given, Location
from suites.metric_names import OPERATION_TIME

_METRICS = {"mean": OPERATION_TIME, "median": "latency_p50_ms", "max": "latency_max_ms"}


def _recognises(document: Document) -> bool:
    return {"machine_info", "benchmarks"} <= parts(document.json).keys()


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    whole = parts(document.json)
    for number, benchmark in enumerate(map(parts, items(whole.get("benchmarks"))), start=1):
        place = Location(document.name, f"benchmark {number}")
        values = scaled(parts(benchmark.get("stats")), _METRICS, 1000.0)
        if OPERATION_TIME not in values:
            notes.append(f"{place} has no stats.mean")
            continue
        yield Result(
            values,
            place,
            text(benchmark.get("name")) or None,
            machine=text(parts(whole.get("machine_info")).get("node")) or None,
            when=date(whole.get("datetime")),
            commit=text(parts(whole.get("commit_info")).get("id")),
        )


PYTEST_BENCHMARK = ToolFormat(
    "the JSON of pytest-benchmark",
    "pytest-benchmark",
    _recognises,
    _read,
    """{"machine_info": {"node": "db1"}, "datetime": "2026-11-25T02:00:00+00:00",
 "benchmarks": [{"name": "test_insert", "stats": {"mean": 0.0125, "median": 0.0124, "max": 0.0131}}]}""",
)
