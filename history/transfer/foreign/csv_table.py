"""A table with a row for each number: what people have in spreadsheets (docs/history.md).

machine,suite,step,version,metric,value,when[,unit,repetition,profile,configuration]
"""

import csv
import difflib
import io
from collections.abc import Iterator, Mapping

from history.transfer.foreign.cells import (
    OTHER_THROUGHPUTS,
    factor,
    has_decimal_comma,
    may_be_thousands,
    number_of,
    time_of,
)
from history.transfer.foreign.document import Document
from history.transfer.foreign.values import PROFILE, Given, Location, Occasion, Read, Value, refuse
from history.transfer.foreign.version_names import UnknownEngineError, UnreadableVersionError, version_of
from suites.metrics import METRICS

NEEDED = ("machine", "suite", "step", "version", "metric", "value", "when")
FURTHER = ("unit", "repetition", "profile", "configuration")
CSV_EXAMPLE = f"{','.join(NEEDED)}\ndb1,sysbench,insert,postgres@18.1,qps,331125,2026-11-25"
"""A table that is accepted."""

NAME = "a CSV with a row per number"
_MEND = f"mend the row; nothing was taken. What is accepted looks like this:\n{CSV_EXAMPLE}"

DELIMITERS = ",;\t"


def looks_like_csv(document: Document) -> bool:
    """Whether a first line names columns of ours, if not all of them."""
    return len({"step", "version", "metric", "value"} & set(_columns(document.head.partition("\n")[0]))) > 1


def read_csv(document: Document, given: Given) -> Read:
    """All values of a table. Raises TransferError that names the row."""
    read = Read()
    empty = 0
    with_comma: list[Location] = []
    with_point: list[tuple[Location, str]] = []
    for place, row in _rows(document, given):
        if not row["value"]:
            empty += 1
            continue
        try:
            read.values.append(_value(row, place))
        except UnknownEngineError as error:
            read.unknown[error.version] = None
        except UnreadableVersionError as error:
            read.unreadable[row["version"]] = str(error)
        except ValueError as error:
            raise refuse(place, f"this is {NAME}: {error}", _MEND) from error
        if has_decimal_comma(row["value"]):
            with_comma.append(place)
        elif may_be_thousands(row["value"]):
            with_point.append((place, row["value"]))
    if with_comma and with_point:
        place, value = with_point[0]
        what = f"{value} may be thousands, since {with_comma[0]} has a decimal comma"
        raise refuse(place, what, "write all numbers with the same mark: 1234.5")
    if empty:
        read.notes.append(f"{document.name}: {empty} rows without a value are left out")
    read.note_left_out(document.name)
    return read


def _rows(document: Document, given: Given) -> Iterator[tuple[Location, dict[str, str]]]:
    defaults = {"machine": given.machine, "suite": given.suite}
    defaults |= {"step": given.step, "version": given.version}
    defaults["when"] = given.when.isoformat() if given.when else None
    known = {name: value for name, value in defaults.items() if value}
    file = io.StringIO(document.text, newline="")
    try:
        first = file.readline()
        columns = _columns(first)
        _require_columns(columns, known, Location(document.name, "row 1"))
        for row in (rows := csv.reader(file, delimiter=_delimiter(first), strict=True)):
            # Rows may span lines; what people see in their editor is the line.
            place = Location(document.name, f"row {rows.line_num + 1}")
            if any(cell.strip() for cell in row):
                yield place, known | _named(columns, row, place)
    except csv.Error as error:
        raise refuse(
            Location(document.name, f"row {rows.line_num + 1}"), f"this is no CSV: {error}"
        ) from error


def _columns(first: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in first.strip().split(_delimiter(first))]


def _delimiter(first: str) -> str:
    return max(DELIMITERS, key=first.count)


def _require_columns(columns: list[str], known: Mapping[str, str], place: Location) -> None:
    missing = [name for name in NEEDED if name not in columns and name not in known]
    unknown = [name for name in columns if name not in (*NEEDED, *FURTHER)]
    twice = [name for name in columns if columns.count(name) > 1]
    for what, names in (
        ("there is no column", missing),
        ("an unknown column", unknown),
        ("a column twice", twice),
    ):
        if names:
            hint = f"what is accepted, with {', '.join(FURTHER)} as further columns:\n{CSV_EXAMPLE}"
            raise refuse(place, f"this is {NAME}, and {what}: {', '.join(names)}", hint)


def _named(columns: list[str], row: list[str], place: Location) -> dict[str, str]:
    if len(row) != len(columns):
        raise refuse(place, f"{len(row)} fields, where the first row names {len(columns)} columns")
    cells = {name: cell.strip() for name, cell in zip(columns, row, strict=True)}
    empty = [name for name in NEEDED if name != "value" and cells.get(name) == ""]
    if empty:
        raise refuse(place, f"{', '.join(empty)} is empty")
    return cells


def _value(row: Mapping[str, str], place: Location) -> Value:
    """Raises ValueError that says what is wrong."""
    name, unit = row["metric"], row.get("unit")
    if other := OTHER_THROUGHPUTS.get(name.lower()):
        name, unit = other[0], unit or other[1]
    metric = METRICS.get(name)
    if metric is None:
        close = difflib.get_close_matches(name, METRICS, 1)
        meant = f"; did you mean {close[0]}?" if close else ": see suites/metrics.py"
        raise ValueError(f"unknown metric '{name}'{meant}")
    return Value(
        Occasion(row["machine"], row["suite"], time_of(row["when"]), row.get("profile") or PROFILE),
        version=str(version_of(row["version"])),
        step=row["step"],
        metric=name,
        number=number_of(row["value"]) * factor(metric, unit or metric.unit),
        place=place,
        repetition=_repetition(row.get("repetition") or "1"),
        configuration=row.get("configuration", ""),
    )


def _repetition(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**6):
        raise ValueError(f"'{text}' is no repetition: rounds are numbered from 1")
    return int(text)
