"""What a file of another program is: a format that comes in, or one that does not, and what to do instead."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from history.transfer.foreign.cells import OTHER_THROUGHPUTS, number
from history.transfer.foreign.csv_table import CSV_EXAMPLE, DELIMITERS, NAME, NEEDED, looks_like_csv, read_csv
from history.transfer.foreign.document import Document
from history.transfer.foreign.mytools import (
    HEADLESS_BEGINS,
    PER_OP_BEGINS,
    QPS_BEGINS,
    read_headless_qps,
    read_per_op,
    read_qps,
)
from history.transfer.foreign.otava import OTAVA
from history.transfer.foreign.pgbench import PGBENCH, PGBENCH_INTERVALS, PGBENCH_LOG
from history.transfer.foreign.results import Recogniser, ToolFormat
from history.transfer.foreign.sysbench import SYSBENCH
from history.transfer.foreign.values import NAMED, Given, Location, Read, refuse
from history.transfer.foreign.version_names import names_version, version_of
from history.transfer.row_source import TransferError
from suites.metrics import METRICS

CONVERSIONS = "docs/conversions.md"
"""The page with a command for each program whose results come in as a CSV."""


@dataclass(frozen=True)
class TableFormat:
    """A table whose rows say which version, step and round they are of."""

    name: str
    """What files of it are called in messages."""

    recognises: Recogniser
    read: Callable[[Document, Given], Read]
    example: str
    """A table that is accepted."""

    takes_versions: bool = False
    """Whether `--version` and `--step` can stand for columns."""

    def values(self, documents: Sequence[Document], given: Given) -> Read:
        """Return the values of a table. Raises TransferError."""
        (document,) = documents
        if not self.takes_versions and (given.version or given.step):
            place = Location(document.name, "the whole file")
            raise refuse(place, f"this is {self.name}, which name versions and steps", "leave --version out")
        return self.read(document, given)


ForeignFormat = TableFormat | ToolFormat
"""A format of results that Tidemark did not write."""

HEADLESS_QPS = TableFormat(
    "a table of mytools without a head",
    lambda document: HEADLESS_BEGINS.match(document.head) is not None,
    read_headless_qps,
    "insert_range=100,1000,990",
)

FORMATS: tuple[ForeignFormat, ...] = (
    TableFormat(
        "mytools' QPS",
        lambda document: QPS_BEGINS.match(document.head) is not None,
        read_qps,
        "col-1 : pg177\ncol-2 : pg181\ncol-1\tcol-2\n1000\t990\tinsert_range=100",
    ),
    TableFormat(
        "mytools' costs",
        lambda document: PER_OP_BEGINS.match(document.head) is not None,
        read_per_op,
        "insert\n--- absolute\ncs/o\to/s\tdbms\n1.5\t1000\tx.pg177.x10a.pk1",
    ),
    TableFormat(NAME, looks_like_csv, read_csv, CSV_EXAMPLE, takes_versions=True),
    *(OTAVA, HEADLESS_QPS, PGBENCH_LOG, PGBENCH_INTERVALS, SYSBENCH, PGBENCH),
)
"""In the order in which a file is tried on them."""


def recognised(document: Document) -> ForeignFormat | None:
    """Return the format of a file, or None. Raises TransferError for a damaged file.

    The output of a tool may have something in front of each line, such as the time of a log.
    """
    cut = ((known, other) for other in document.without_prefix() for known in FORMATS)
    tools = (known for known, other in cut if isinstance(known, ToolFormat) and known.recognises(other))
    return next((known for known in FORMATS if known.recognises(document)), None) or next(tools, None)


# --- what does not come in


@dataclass(frozen=True)
class OtherFormat:
    """A format whose files do not come in as they are."""

    name: str
    pattern: str
    """What the beginning of a file of it has."""

    lacks: str
    """Why it does not come in, as the rest of a sentence that begins with its name."""

    hint: str

    def recognises(self, document: Document) -> bool:
        """Return whether a file has the format, or is meant to."""
        return re.search(self.pattern, document.head, re.MULTILINE) is not None


_AS_CSV = f"write a row for each number:\n{CSV_EXAMPLE}"
_COMMAND = f"{CONVERSIONS} has the command"


def _converted(program: str, pattern: str) -> OtherFormat:
    """A format that a command of the page of conversions makes a table of."""
    lacks = "which does not come in as it is"
    return OtherFormat(f"a result of {program}", pattern, lacks, f"make a table of it: {_COMMAND}")


_OTHERS = (
    OtherFormat(
        "a table of benchstat",
        r"\A(?:name\s+(?:old |new )?\S+/op\b|(?:goos: .*\n|goarch: .*\n|pkg: .*\n|cpu: .*\n)*\s+│ )",
        "which compares and does not hold the single results",
        f"make a table of the outputs of go test -bench that it was made of: {_COMMAND}",
    ),
    OtherFormat(
        "a file of BenchBase with raw latencies",
        r"\ATransaction Type Index,Transaction Name,",
        "which does not say what the run was",
        f"make a table of its summary, NAME.summary.json, which lies beside it: {_COMMAND}",
    ),
    OtherFormat(
        "an output of perf script, with stacks",
        r"\A\S[^\n]*? \d+(?:/\d+)? +(?:\[\d+\] +)?\d+\.\d+: +(?:\d+ +)?[\w-]+(?::\w+)*:",
        "which holds no result",
        f"import what the benchmark wrote, or {_AS_CSV}",
    ),
    OtherFormat(
        "the output of YCSB",
        r"^\[OVERALL\], \w+",
        "which does not say of which version it is, and is not read",
        f"write a row for each number, with a column unit for latencies in us:\n{CSV_EXAMPLE}",
    ),
    OtherFormat(
        "the JSON of asv",
        r'"commit_hash"\s*:',
        "which does not say in which unit its results are",
        _AS_CSV,
    ),
    OtherFormat(
        "Bencher's metric format",
        r'\A\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*\{\s*"(?:lower_|upper_)?value"\s*:',
        "which does not say in which unit its values are",
        _AS_CSV,
    ),
    _converted("BenchBase", r'"(?:Benchmark Type|Latency Distribution|Goodput \(|Throughput \()'),
    _converted("Criterion.rs", r'"point_estimate"\s*:'),
    _converted("github-action-benchmark", r'\A\s*window\.BENCHMARK_DATA|"lastUpdate"\s*:'),
    _converted("Go's benchmarks", r"\bBenchmark\S+[ \t]+\d+[ \t]+\S+ \S+"),
    _converted("Google Benchmark", r'\A\s*\{\s*"context"\s*:'),
    _converted("HammerDB", r"Hammerdb Log @|HammerDB|Vuser 1:|TEST RESULT : System achieved"),
    _converted("hyperfine", r'\A(?:command,mean,stddev|\s*\{\s*"results"\s*:\s*\[\s*\{\s*"command"\s*:)'),
    _converted("JMH", r'"(?:jmhVersion|primaryMetric)"\s*:'),
    _converted("mysqlslap", r"number of seconds to run all queries:"),
    _converted("pytest-benchmark", r'"machine_info"\s*:'),
    OtherFormat(
        "JSON",
        r'\A\s*(?:\[\s*)?\{\s*["}]',
        "which does not say what its numbers are",
        f"make a table of it, as {CONVERSIONS} does of the JSON of others, with a row for each number:\n"
        f"{CSV_EXAMPLE}",
    ),
)


def not_importable(document: Document) -> TransferError | None:
    """Return why a file without a format cannot come in; None if it is not known."""
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
    if len(first) < 3:
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
