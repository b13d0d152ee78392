"""What hyperfine exports: times of commands in seconds, by `--export-json` or `--export-csv`."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import items, parts, scaled, text
from history.transfer.foreign.results import Result, ToolFormat, aborted
from history.transfer.foreign.values import Given, Location, refuse
from suites.metric_names import OPERATION_TIME

_METRICS = {"mean": OPERATION_TIME, "median": "latency_p50_ms", "max": "latency_max_ms"}
_MILLISECONDS = 1000.0
_COLUMNS = ("command", "mean", "stddev")


def _is_json(document: Document) -> bool:
    return any({"command", "mean"} <= parts(result).keys() for result in _results(document))


def _results(document: Document) -> Sequence[object]:
    return items(parts(document.json).get("results"))


def _read_json(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    for number, result in enumerate(_results(document), start=1):
        place = Location(document.name, f"result {number}")
        if failed := [code for code in items(parts(result).get("exit_codes")) if code != 0]:
            raise aborted(place, f"exit code {failed[0]}")
        yield from _result(parts(result), place, notes)


def _result(values: Mapping[str, object], place: Location, notes: list[str]) -> Iterator[Result]:
    found = scaled(values, _METRICS, _MILLISECONDS)
    if OPERATION_TIME in found:
        yield Result(found, place, text(values.get("command")) or None)
    else:
        notes.append(f"{place} has no mean")


def _is_csv(document: Document) -> bool:
    return tuple(document.head.partition("\n")[0].strip().split(",")[: len(_COLUMNS)]) == _COLUMNS


def _read_csv(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    rows = csv.DictReader(io.StringIO(document.text, newline=""), strict=True)
    try:
        for row in rows:
            yield from _result(row, Location(document.name, f"row {rows.line_num}"), notes)
    except csv.Error as error:
        place = Location(document.name, f"row {rows.line_num + 1}")
        raise refuse(place, f"this is no CSV: {error}") from error


HYPERFINE_JSON = ToolFormat(
    "hyperfine's JSON",
    "hyperfine",
    _is_json,
    _read_json,
    '{"results": [{"command": "psql -f q1.sql", "mean": 1.25, "median": 1.24, "max": 1.31}]}',
)

HYPERFINE_CSV = ToolFormat(
    "hyperfine's CSV",
    "hyperfine",
    _is_csv,
    _read_csv,
    """command,mean,stddev,median,user,system,min,max
psql -f q1.sql,1.25,0.02,1.24,0.01,0.01,1.22,1.31""",
)
