"""The tables of mdcallag/mytools: QPS by test and version, and what an operation cost.

`*.qps.tsv` first says which version each column is, then has a row for each test. `qps.abs.*.csv` is the same
without a head, the test first. `*.per-op.txt` has a block for each test; its second half, relative to the
first version, is derived and not taken. Costs there are those of the whole machine, the load generator
included: vmstat and iostat see nothing less. Columns of engines or versions that are not known are left out
with a note.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from build.version import Version, VersionError, parse_version
from history.timestamps import moment_of
from history.transfer.foreign.document import Document
from history.transfer.foreign.values import Given, Location, Occasion, Read, Value, refuse
from history.transfer.foreign.version_names import (
    UnknownEngineError,
    UnreadableVersionError,
    rest_of,
    version_of,
)
from suites.metrics import QPS

QPS_BEGINS = re.compile(r"col-1 : ")
PER_OP_BEGINS = re.compile(r"[^\n]+\n--- absolute\n")
RELATIVE_BEGINS = re.compile(r"Relative to: ")
HEADLESS_BEGINS = re.compile(r"[^\s,;]+(?:,[-+]?[0-9][0-9.eE+-]*)+\r?(?:\n|$)")

_COLUMN = re.compile(r"col-(\d+) : (\S+)")
_TEST = re.compile(r"sb\.(prepare\.)?met\.(.+)\.range(\d+)\.pk\d+(?:\.dop\d+)?")
_KINDS = ("qps", "o")
"""What mytools calls its tables: this names no machine."""

_DATED = re.compile(r"(.+?)[-_](\d{4}-\d{2}(?:-\d{2})?)")

_METRICS = {
    "cs/o": "machine_cs_per_op",
    "r/o": "machine_reads_per_op",
    "rKB/o": "machine_read_kb_per_op",
    "wKB/o": "machine_written_kb_per_op",
    "o/s": QPS,
}
_CPU = "cpu/o"  # percent of all cores, over operations per second


def read_qps(document: Document, given: Given) -> Read:
    """The QPS of a `.qps.tsv`. Raises TransferError that names the line."""
    columns: list[str] = []
    rows: list[tuple[Location, str, list[str]]] = []
    for place, line in _lines(document):
        if match := _COLUMN.fullmatch(line):
            columns.append(match[2])
            continue
        cells = line.split("\t")
        if cells != [f"col-{number}" for number in range(1, len(columns) + 1)]:
            rows.append((place, cells[-1], cells[:-1]))
    return _qps(columns, rows, document, given)


def read_headless_qps(document: Document, given: Given) -> Read:
    """The QPS of a `qps.abs.*.csv`, whose columns are those of the `.tsv` beside it, or are given.

    Raises TransferError that names the line, or says that nothing names the columns or what they are.
    """
    place = Location(document.name, "its name")
    if "qps" not in document.name.split("."):
        what = "the table has no head, and its name does not say that it holds QPS"
        raise refuse(place, what, "name it as mytools does, such as qps.abs.NAME.csv")
    rows = [(place, *_first(line.split(","))) for place, line in _lines(document)]
    return _qps(given.columns or _columns_beside(document), rows, document, given)


def _first(cells: list[str]) -> tuple[str, list[str]]:
    return cells[0], cells[1:]


def _columns_beside(document: Document) -> Sequence[str]:
    """The versions of the columns, from the table with a head beside one without."""
    beside = document.path.with_suffix(".tsv")
    if not beside.is_file():
        raise refuse(
            Location(document.name, "line 1"),
            f"it does not say of which versions its columns are, and there is no {beside.name} beside it",
            "give them in their order: --columns pg177,pg181",
        )
    matches = (_COLUMN.fullmatch(line) for _, line in _lines(Document(beside)))
    return [match[2] for match in matches if match]


def _qps(
    columns: Sequence[str], rows: Sequence[tuple[Location, str, list[str]]], document: Document, given: Given
) -> Read:
    """The values of rows, each with its place, its test and a cell for each column."""
    occasion = occasion_of(document, given)
    read = Read()
    for place, step, cells in rows:
        if len(cells) != len(columns):
            raise refuse(
                place, f"{len(cells) + 1} fields, where {len(columns)} versions and a test are expected"
            )
        versions = _versions(columns, place, read)
        for version, name, cell in zip(versions, columns, cells, strict=True):
            number = _number(cell, place)
            if version:
                read.values.append(Value(occasion, version, step, QPS, number, place, configuration=name))
    read.note_left_out(document.name)
    return read


def read_per_op(document: Document, given: Given) -> Read:
    """The costs of a `.per-op.txt`. Raises TransferError that names the line."""
    occasion = occasion_of(document, given)
    read = Read()
    for step, block in _blocks(document):
        names = [cells["dbms"] for _, cells in block]
        for version, (place, cells) in zip(_versions(names, block[0][0], read), block, strict=True):
            numbers = {
                metric: _number(cells[head], place) for head, metric in _METRICS.items() if head in cells
            }
            if not version:
                continue
            if given.cores and _CPU in cells:
                numbers["machine_cpu_us_per_op"] = _number(cells[_CPU], place) / 100 * given.cores * 1e6
            read.values += (
                Value(occasion, version, step, metric, number, place, configuration=cells["dbms"])
                for metric, number in numbers.items()
            )
    if not given.cores:
        read.notes.append(
            f"{document.name}: CPU per operation is left out: it is a share of the machine; give --cores"
        )
    read.note_left_out(document.name)
    return read


def step_name(test: str) -> str:
    """A test of a `.per-op.txt` as the `.qps.tsv` calls it: `update-index_range=100`."""
    match = _TEST.fullmatch(test)
    return f"{'prepare.' if match[1] else ''}{match[2]}_range={match[3]}" if match else test


def occasion_of(document: Document, given: Given) -> Occasion:
    """Where and when a table was measured: as given, else by its name, `NAME-2025-11.qps.tsv`.

    Raises TransferError when neither says on which machine, with which suite and when: tables of several
    machines would be taken for one.
    """
    match = _DATED.fullmatch(document.plain_name.partition(".")[0])
    name = match[1] if match and match[1] not in _KINDS else None
    asked = {
        "--machine": given.machine or name,
        "--suite": given.suite or name,
        "--when": given.when or (match and match[2]),
    }
    place = Location(document.name, "its name")
    if missing := [option for option, value in asked.items() if not value]:
        said = {"--machine": "on which machine", "--suite": "with which suite", "--when": "when"}
        what = " and ".join(said[option] for option in missing)
        hint = f"give {', '.join(missing)}, or name the file NAME-2025-11.qps.tsv"
        raise refuse(place, f"it does not say {what} this was measured", hint)
    machine, suite, when = asked.values()
    try:
        moment = given.when or moment_of(str(when))
    except ValueError as error:
        raise refuse(place, str(error), "give --when 2025-11") from error
    return Occasion(str(machine), str(suite), moment)


def _blocks(document: Document) -> Iterator[tuple[str, list[tuple[Location, dict[str, str]]]]]:
    """The absolute half of each block: the step, and rows of cells by head."""
    test, heads, part = "", [""], ""
    block: list[tuple[Location, dict[str, str]]] = []
    for place, line in _lines(document):
        if line.startswith("---"):
            part, heads = line.strip("- "), []
        elif part == "absolute" and not heads:
            heads = line.split()
            if not {"dbms", "o/s"} <= set(heads):
                raise refuse(place, "the heads of the columns are not there")
        elif part == "absolute" and len(line.split()) == len(heads):
            block.append((place, dict(zip(heads, line.split(), strict=True))))
        elif "\t" not in line and " " not in line:
            if block:
                yield step_name(test), block
            test, part, block = line, "", []
        elif not part.startswith("relative"):
            raise refuse(place, f"'{line[:40]}' is neither a test nor a row of its table")
    if block:
        yield step_name(test), block


def _lines(document: Document) -> Iterator[tuple[Location, str]]:
    for number, line in enumerate(document.text.splitlines(), start=1):
        if line.strip():
            yield document.place(number), line.strip()


def _versions(names: Sequence[str], place: Location, read: Read) -> list[str]:
    """The version of each name, empty where it is unknown or none is named, which is noted.

    Where several are of one version, the rest of the name is the variant.
    """
    found: list[Version | None] = []
    for name in names:
        try:
            found.append(version_of(name))
        except UnknownEngineError as error:
            read.unknown[error.version] = None
            found.append(None)
        except UnreadableVersionError as error:
            read.unreadable[name] = str(error)
            found.append(None)
    counted = Counter(found)
    return [
        "" if version is None else str(version if counted[version] == 1 else _variant(version, name, place))
        for version, name in zip(found, names, strict=True)
    ]


def _variant(version: Version, name: str, place: Location) -> Version:
    variant = rest_of(name) or "plain"
    try:
        return parse_version(f"{version}#{variant}")
    except VersionError as error:
        raise refuse(
            place, f"'{name[:80]}' names no variant of {version}: {error.hint or error.what}"
        ) from error


def _number(text: str, place: Location) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise refuse(place, f"'{text}' is no number")
    return number
