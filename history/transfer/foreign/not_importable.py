"""Files that people try to import and that cannot come in: what each of them is, and what to do instead."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from history.transfer.foreign.csv_table import CSV_EXAMPLE, DELIMITERS, NEEDED
from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import number, parts
from history.transfer.foreign.units import OTHER_THROUGHPUTS
from history.transfer.foreign.values import NAMED, Location, refuse
from history.transfer.foreign.version_names import names_version, version_of
from history.transfer.row_source import TransferError
from suites.metrics import METRICS


@dataclass(frozen=True)
class OtherFormat:
    """A format whose files hold no result, or do not say what their numbers are."""

    name: str
    recognises: Callable[[Document], bool]
    lacks: str
    """What is not in it, as the rest of a sentence that begins with its name."""

    hint: str


_AS_CSV = f"write a row for each number:\n{CSV_EXAMPLE}"


def _begins(pattern: str) -> Callable[[Document], bool]:
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda document: compiled.match(document.head) is not None


def _is_asv(document: Document) -> bool:
    return {"commit_hash", "results"} <= parts(document.json).keys()


def _is_bencher(document: Document) -> bool:
    measures = [measure for name in parts(document.json).values() for measure in parts(name).values()]
    return bool(measures) and all("value" in parts(measure) for measure in measures)


_OTHERS = (
    OtherFormat(
        "a table of benchstat",
        _begins(r"(?:name\s+(?:old |new )?\S+/op\b|(?:goos: .*\n|goarch: .*\n|pkg: .*\n|cpu: .*\n)*\s+│ )"),
        "which compares and does not hold the single results",
        "import the outputs of go test -bench that it was made of, with lines such as:\n"
        "BenchmarkInsert-8  1000  1234567 ns/op",
    ),
    OtherFormat(
        "a file of BenchBase with raw latencies",
        _begins("Transaction Type Index,Transaction Name,"),
        "which does not say what the run was",
        "import its summary, which lies beside it: ./tidemark history import NAME.summary.json",
    ),
    OtherFormat(
        "an output of perf script, with stacks",
        _begins(r"\S[^\n]*? \d+(?:/\d+)? +(?:\[\d+\] +)?\d+\.\d+: +(?:\d+ +)?[\w-]+(?::\w+)*:"),
        "which holds no result",
        f"import what the benchmark wrote, or {_AS_CSV}",
    ),
    OtherFormat(
        "the output of YCSB",
        lambda document: re.search(r"^\[OVERALL\], \w+", document.head, re.MULTILINE) is not None,
        "which does not say of which version it is, and is not read",
        f"write a row for each number, with a column unit for latencies in us:\n{CSV_EXAMPLE}",
    ),
    OtherFormat("the JSON of asv", _is_asv, "which does not say in which unit its results are", _AS_CSV),
    OtherFormat(
        "Bencher's metric format", _is_bencher, "which does not say in which unit its values are", _AS_CSV
    ),
)


def not_importable(document: Document) -> TransferError | None:
    """Return why a file without a format of `formats.py` cannot come in; None if it is not known."""
    found = next((other for other in _OTHERS if other.recognises(document)), None)
    if found:
        return refuse(Location(document.name, "line 1"), f"this is {found.name}, {found.lacks}", found.hint)
    return _table_text(document)


def _table_text(document: Document) -> TransferError | None:
    """Return why a table cannot come in; None for a file that is no table."""
    lines = [line for line in document.head.splitlines() if line.strip()][:2]
    if not lines:
        return None
    delimiter = max(DELIMITERS, key=lines[0].count)
    first, *others = ([cell.strip().strip('"') for cell in line.split(delimiter)] for line in lines)
    place = Location(document.name, "row 1")
    if len(first) < 3 or document.is_json:
        return None
    if any(number(cell) is not None for cell in first):
        what = "this is a table without a first row that names its columns"
        return refuse(place, what, _AS_CSV)
    row = others[0] if others else []
    if len(row) != len(first) or not any(number(cell) is not None for cell in row):
        return None
    names = ", ".join(first[:NAMED])
    if all(map(names_version, first[1:])):
        what = (
            f"this is a table with a column for each version, and does not say what its numbers are: {names}"
        )
    else:
        missing = ", ".join(name for name in NEEDED if name not in map(str.lower, first))
        what = f"this is a table with the columns {names}, and lacks the columns {missing}"
    return refuse(place, what, f"write a row for each number, such as:\n{_as_row(first, row)}")


def _as_row(first: Sequence[str], row: Sequence[str]) -> str:
    """Return a number of a table as the row of a CSV that is accepted."""
    for name, cell in zip(first, row, strict=True):
        if number(cell) is None:
            continue
        if names_version(name):
            step, version, metric = row[0], str(version_of(name)), "qps"
        elif name in {*METRICS, *OTHER_THROUGHPUTS}:
            step, version, metric = "insert", "postgres@18.1", name
        else:
            continue
        return f"{','.join(NEEDED)}\ndb1,sysbench,{step},{version},{metric},{cell},2026-11-25"
    return CSV_EXAMPLE
