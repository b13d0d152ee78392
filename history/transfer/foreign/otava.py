"""The CSV of Otava, which was Hunter: a row for each commit, with its time and any columns of numbers.

time,commit,branch,insert,p99
2026.01.01 3:00:00 +0100,aaa0,main,15402,10.4

What a column holds is in the configuration of Otava, not in the file: `--metric insert=qps` says it here.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from build.errors import did_you_mean
from history.transfer.foreign.cells import factor, number, number_of, time_of
from history.transfer.foreign.document import Document
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import NAMED, Given, Location, refuse
from history.transfer.foreign.version_names import names_version
from suites.metrics import METRICS

_TIMES = ("time", "timestamp", "date", "datetime")
_ATTRIBUTES = {*_TIMES, "commit", "branch", "version", "id"}


def _recognises(document: Document) -> bool:
    columns = _columns(document.head.partition("\n")[0])
    if not any(name in columns for name in _TIMES) or len(set(columns)) < len(columns):
        return False
    others = [name for name in columns if name not in _TIMES]
    return bool(others) and not all(map(names_version, others))


def _columns(first: str) -> list[str]:
    return [name.strip().strip("\"'") for name in first.strip().split(",")]


def _read(documents: Sequence[Document], given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    columns = _columns(document.head.partition("\n")[0])
    rows = list(_rows(document, columns))
    metrics = _metrics(columns, rows, given, document)
    when = next(name for name in _TIMES if name in columns)
    branch = given.version.partition("@")[2].partition("#")[0] if given.version else ""
    said = [*dict.fromkeys(row["branch"] for _, row in rows if row.get("branch"))]
    if said and not branch:
        raise refuse(
            Location(document.name, "its column branch"),
            f"this is {OTAVA.name}, with rows of {', '.join(said)}; it does not say of which engine",
            f"import one branch at a time: --version postgres@{said[0]}",
        )
    others: Counter[str] = Counter()
    for place, row in rows:
        if branch and row.get("branch", branch) != branch:
            others[row["branch"]] += 1
            continue
        moment = _moment(row[when], place)
        by_step: dict[str, dict[str, float]] = {}
        for column, (metric, scale) in metrics.items():
            if row[column]:
                by_step.setdefault(given.step or column, {})[metric] = _value(column, row, place) * scale
        for step, values in by_step.items():
            yield Result(values, place, step, when=moment, commit=row.get("commit", ""))
    if others and sum(others.values()) == len(rows):
        names = ", ".join(others)
        raise refuse(
            Location(document.name, "its column branch"),
            f"no row is of the branch {branch}, which --version says: they are of {names}",
            f"name one of them: --version {(given.version or '').partition('@')[0]}@{next(iter(others))}",
        )
    if others:
        names = ", ".join(f"{name} ({count})" for name, count in others.items())
        notes.append(f"{document.name}: rows of other branches than {branch} are left out: {names}")


def _rows(document: Document, columns: Sequence[str]) -> Iterator[tuple[Location, Mapping[str, str]]]:
    quote = "'" if document.head.startswith("'") else '"'
    reader = csv.reader(io.StringIO(document.text, newline=""), quotechar=quote, strict=True)
    try:
        next(reader)
        for cells in reader:
            place = Location(document.name, f"row {reader.line_num}")
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise refuse(place, f"{len(cells)} fields, where the first row names {len(columns)} columns")
            yield place, {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
    except (csv.Error, StopIteration) as error:
        place = Location(document.name, f"row {reader.line_num + 1}")
        raise refuse(place, f"this is no CSV: {error}") from error


def _metrics(
    columns: Sequence[str],
    rows: Sequence[tuple[Location, Mapping[str, str]]],
    given: Given,
    document: Document,
) -> Mapping[str, tuple[str, float]]:
    """The columns with a number that is known: metric, and the factor to its unit."""
    place = Location(document.name, "row 1")
    if missing := [name for name in given.metrics if name not in columns]:
        hint = f"{did_you_mean(missing[0], columns)} there are {', '.join(columns[:NAMED])}".strip()
        raise refuse(place, f"--metric names no column of the file: {', '.join(missing)}", hint)
    named = {
        name: given.metrics.get(name, (name, "")) for name in columns if name in {*given.metrics, *METRICS}
    }
    if not named:
        numbers = [
            name
            for name in columns
            if name not in _ATTRIBUTES and any(number(row[name]) is not None for _, row in rows)
        ]
        if not numbers:
            raise OTAVA.refusal(place, "it has no column of numbers beside the time")
        raise refuse(
            place,
            f"this is {OTAVA.name}: nothing says what its columns hold: {', '.join(numbers)}",
            f"say it: --metric {numbers[0]}=qps, or with a unit --metric {numbers[-1]}=latency_p99_ms:s",
        )
    found = {}
    for name, (metric, unit) in named.items():
        try:
            found[name] = metric, factor(METRICS[metric], unit or METRICS[metric].unit)
        except ValueError as error:
            raise refuse(
                place, f"column {name}: {error}", "name another one: --metric NAME=METRIC:UNIT"
            ) from error
    twice = [metric for metric, count in Counter(metric for metric, _ in found.values()).items() if count > 1]
    if given.step and twice:
        raise refuse(
            place,
            f"several columns are {twice[0]} of the step {given.step}",
            "leave --step out: each column is then a step of its name",
        )
    return found


def _value(column: str, row: Mapping[str, str], place: Location) -> float:
    try:
        return number_of(row[column])
    except ValueError as error:
        hint = "mend the row, or name another column by --metric"
        raise refuse(place, f"column {column}: {error}", hint) from error


def _moment(text: str, place: Location) -> datetime:
    try:
        return time_of(text)
    except ValueError as error:
        raise refuse(place, str(error)) from error


OTAVA = ToolFormat(
    "a CSV as Otava reads it",
    "otava",
    _recognises,
    _read,
    """time,commit,qps,latency_p99_ms
2026-01-01T03:00:00Z,aaa0,15402,10.4
2026-01-02T03:00:00Z,aaa1,15391,10.6""",
    is_series=True,
)
