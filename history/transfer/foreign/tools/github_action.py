"""The data.js of github-action-benchmark, `window.BENCHMARK_DATA = {...}`: results of commits over time.

Each benchmark of a commit has a name, a value and a unit. A unit of time is the time of an operation, and
operations per second are throughput; `--metric NAME=METRIC` says what another one is.
"""

from collections.abc import Iterator, Mapping, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import date, date_of_milliseconds, items, number, parts, text
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.units import by_unit, factor
from history.transfer.foreign.values import Given, Location, refuse, require_named
from suites.metrics import METRICS

_VARIABLE = "window.BENCHMARK_DATA"
_NAMED = 6
"""The benchmarks that a note names."""


def _recognises(document: Document) -> bool:
    return document.head.lstrip().startswith(_VARIABLE) or (
        document.is_json and {"entries", "lastUpdate"} <= parts(document.json).keys()
    )


def _read(documents: Sequence[Document], given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    entries = parts(_data(document).get("entries"))
    left_out: dict[str, str] = {}
    runs = [parts(run) for of_suite in entries.values() for run in items(of_suite)]
    benches = [parts(bench) for run in runs for bench in items(run.get("benches"))]
    names = dict.fromkeys(text(bench.get("name")) for bench in benches)
    require_named(Location(document.name, "its benchmarks"), given, names, "benchmark")
    for suite, of_suite in entries.items():
        for number_, run in enumerate(items(of_suite), start=1):
            place = Location(document.name, f"{suite}, entry {number_}")
            yield from _run(parts(run), text(suite), place, given, left_out)
    if left_out:
        shown = ", ".join(f"{name} ({unit or 'no unit'})" for name, unit in list(left_out.items())[:_NAMED])
        more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
        notes.append(
            f"{document.name}: left out, because the unit does not say what they are: {shown}{more}; "
            "--metric NAME=METRIC or --metric NAME=METRIC:UNIT says it"
        )


def _data(document: Document) -> Mapping[str, object]:
    if document.is_json:
        return parts(document.json)
    begin = document.text.find("{")
    end = document.text.rstrip().rstrip(";")
    if begin < 0:
        raise GITHUB_ACTION.refusal(
            Location(document.name, "line 1"), "nothing follows the name of the variable"
        )
    return parts(document.json_from(begin, len(end)))


def _run(
    run: Mapping[str, object], suite: str, place: Location, given: Given, left_out: dict[str, str]
) -> Iterator[Result]:
    commit = parts(run.get("commit"))
    when = date_of_milliseconds(run.get("date")) or date(commit.get("timestamp"))
    for bench in map(parts, items(run.get("benches"))):
        name, unit, value = text(bench.get("name")), text(bench.get("unit")), number(bench.get("value"))
        if value is None or not name:
            continue
        if when is None:
            raise GITHUB_ACTION.refusal(place, "it has neither a date nor the time of its commit")
        measured = _metric(name, unit, given, place)
        if measured is None:
            left_out.setdefault(name, unit)
            continue
        metric, scale = measured
        yield Result(
            {metric: value * scale}, place, name, suite=suite, when=when, commit=text(commit.get("id"))
        )


def _metric(name: str, unit: str, given: Given, place: Location) -> tuple[str, float] | None:
    if name not in given.metrics:
        return by_unit(unit)
    metric, said = given.metrics[name]
    try:
        return metric, factor(METRICS[metric], said or unit or METRICS[metric].unit)
    except ValueError as error:
        raise refuse(place, f"{name}: {error}", f"name its unit: --metric '{name}={metric}:UNIT'") from error


GITHUB_ACTION = ToolFormat(
    "the data.js of github-action-benchmark",
    "github-action-benchmark",
    _recognises,
    _read,
    """window.BENCHMARK_DATA = {"lastUpdate": 1764028800000, "entries": {"Benchmark": [
 {"commit": {"id": "aaa0"}, "date": 1764028800000, "tool": "customBiggerIsBetter",
  "benches": [{"name": "insert", "value": 15402, "unit": "ops/sec"}]}]}}""",
    takes_metrics=True,
    is_series=True,
)
