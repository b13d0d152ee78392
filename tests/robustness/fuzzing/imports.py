"""What comes into a history, exports and foreign tables, and the texts that a history keeps."""

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, text

from benchmarks.scale.years import HistoryScale, write
from build.home import ROOT
from history.errors import HistoryError
from history.open import open_store
from history.store.profiles import packed, unpacked
from history.store.session_reads import runs_of, session_of
from history.transfer.database_source import opened
from history.transfer.foreign.csv_table import read_csv
from history.transfer.foreign.document import Document
from history.transfer.foreign.formats import ForeignFormat, not_importable, recognised
from history.transfer.foreign.mytools import read_per_op, read_qps
from history.transfer.foreign.reading import Incoming, read_files
from history.transfer.foreign.results import numbered
from history.transfer.foreign.sessions import ImportedRows
from history.transfer.foreign.values import Given, Read
from history.transfer.format_detection import format_of
from history.transfer.merging import impossible
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.row_source import TransferError
from suites.metrics import PRIMARY
from tests.robustness.fuzzing.campaign import FuzzTarget, Number, Parse

FACTS = ROOT / "tests/golden/facts/postgres-sysbench-40threads-2025-11"

RESULTS = ROOT / "tests/golden/imports"
"""A file of each format that tools write."""

REFUSED = ROOT / "tests/golden/conversions"
"""Files of programs that are told by name, and do not come in as they are."""

LINES = 12
"""Of a foreign table: enough for every kind of line."""

SMALL = HistoryScale(nights=1, boxes=1, branches=1, steps=1, nights_with_rounds=1, rounds=1)


# --- foreign tables


def _table(name: str, read: Callable[[Document, Given], Read], given: Given) -> Callable[[Path], Parse]:
    def opened_in(folder: Path) -> Parse:
        file = folder / name

        def parse(data: bytes) -> Iterable[Number]:
            file.write_bytes(data)
            values = read(Document(file), given).values
            rows = sum(1 for _ in ImportedRows(values, given.cores).items()) if values else 0
            yield Number("rows", rows, 1e6)
            # Which numbers are plausible is the metric's own rule, which merging applies.
            yield from (Number("value", value.number, 1e308, -1e308) for value in values)

        return parse

    return opened_in


def _results(folder: Path) -> Parse:
    """A file of results of any tool: what it is taken for, what it holds, and the rows that this makes."""
    file = folder / "results"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        document = Document(file)
        if (known := recognised(document)) is not None:
            read = _read_as_needed(document, known)
            values = [*read.values, *numbered(read.results, {})]
            yield Number("rows", sum(1 for _ in ImportedRows(values).items()), 1e6)
            yield from (Number("value", value.number, 1e308, -1e308) for value in values)

    return parse


def _read_as_needed(document: Document, known: ForeignFormat) -> Incoming:
    """What a file holds, with the options that its format needs: some take none, and some lack a step."""
    for given in (replace(GIVEN, version=BRANCH), replace(GIVEN, version=BRANCH, step="read-write")):
        try:
            return read_files([(document, known)], given)
        except TransferError:
            continue
    return read_files([(document, known)], replace(GIVEN, version=BRANCH, metrics=COLUMNS))


def _lines_of(suffix: str) -> Sequence[bytes]:
    lines = Path(f"{FACTS}{suffix}").read_bytes().splitlines(keepends=True)
    return [b"".join(lines[:LINES]), b"".join(lines[: LINES // 2 + 5])]


def _kind(folder: Path) -> Parse:
    file = folder / "something"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        format_of(file)
        return ()

    return parse


def _refused(folder: Path) -> Parse:
    """A file without a format: what it is told for."""
    file = folder / "result"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        not_importable(Document(file))
        return ()

    return parse


# --- exports


@cache
def _exported() -> bytes:
    """A small history as NDJSON."""
    with TemporaryDirectory(prefix="tidemark-fuzzing-") as name:
        folder = Path(name)
        write(folder / "history.db", SMALL, 1)
        with opened(str(folder / "history.db")) as source:
            write_ndjson(source, folder / "history.ndjson")
        return (folder / "history.ndjson").read_bytes()


def _ndjson(folder: Path) -> Parse:
    file = folder / "history.ndjson"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        return [Number("rows", sum(not impossible(item) for item in NdjsonFile(file).items()), 1e6)]

    return parse


# --- what a history keeps


_CELLS = (
    ("sessions", "options"),
    ("sessions", "tools"),
    ("sessions", "started_at"),
    ("sessions", "ended_at"),
    ("sessions", "uid"),
    ("machines", "details"),
    ("machines", "hostname"),
    ("runs", "version"),
    ("runs", "warnings"),
    ("runs", "step"),
)
"""Texts of a history that are read back as something else, or shown."""


def _stored(folder: Path) -> Parse:
    """One text of a history is the input, whatever bytes it has; the session is read with its runs."""
    path = folder / "history.db"
    write(path, SMALL, 1)
    store = open_store(path)

    def parse(data: bytes) -> Iterable[Number]:
        place, content = data[:1], data[1:]
        table, column = _CELLS[(place or b"\0")[0] % len(_CELLS)]
        with store.database.reading() as connection:
            try:
                cell = text(f"UPDATE {table} SET {column} = CAST(:content AS TEXT) WHERE id = 1")
                connection.execute(cell, {"content": content})
                yield from _of_session(connection)
            finally:
                connection.rollback()

    return parse


def _of_session(connection: Connection) -> Iterable[Number]:
    session = session_of(connection, 1)
    yield Number("year", session.started_at.year, 9999, 1)
    yield from (Number("round", run.repetition, 1e6, 1) for run in runs_of(connection, 1, ()))


def _stored_captures() -> Sequence[bytes]:
    texts = (
        b'{"mode": "rounds", "versions": ["postgres@13.1"], "settings": {}}',
        *(b'{"sysbench": "1.0"}', b"2026-01-01T02:00:00.000Z", b"2026-01-01T02:00:00.000Z", b"session-1"),
        *(b'{"settings": {"governor": "performance"}}', b"box", b"postgres@13.1", b"[]", b"step"),
    )
    return [bytes([place]) + content for place, content in enumerate(texts)]


def _profile(_folder: Path) -> Parse:
    """The content of a profile is compressed; half of the inputs are damaged before that, half after."""

    def parse(data: bytes) -> Iterable[Number]:
        content = data if data[:1] == b"x" else zlib.compress(data)
        return [Number(stack[:40], count) for stack, count in unpacked(content).items()]

    return parse


def _profile_captures() -> Sequence[bytes]:
    stacks = {"client backend;main;loop;work": 950, "checkpointer;main;a;b": 20}
    return [json.dumps(stacks).encode(), packed(stacks)]


GIVEN = Given(machine="box", suite="write-heavy", when=datetime(2026, 1, 1, tzinfo=UTC), cores=48)

BRANCH = "postgres@main"
COLUMNS = {"inserts": (PRIMARY, ""), "p99": ("latency_p99_ms", "")}
"""What the columns of the CSV of Otava hold."""

_CSV = (
    b"machine,suite,step,version,metric,value,when,unit,repetition\n"
    b"box,write-heavy,insert,postgres@18.6,qps,1000.5,2026-01-01,,1\n"
    b"box,write-heavy,insert,pg1711,qps,990,2026-01-01T02:00:00Z,,2\n"
)
_TABLE_ERRORS = (TransferError,)

TARGETS = (
    FuzzTarget("CSV table", lambda: [_CSV], _table("table.csv", read_csv, Given()), _TABLE_ERRORS),
    FuzzTarget(
        "qps table", lambda: _lines_of(".qps.tsv"), _table("x.qps.tsv", read_qps, GIVEN), _TABLE_ERRORS
    ),
    FuzzTarget(
        "per-op table",
        lambda: _lines_of(".per-op.txt"),
        _table("x.per-op.txt", read_per_op, GIVEN),
        _TABLE_ERRORS,
    ),
    FuzzTarget(
        "results of a tool",
        lambda: [path.read_bytes() for path in sorted(RESULTS.iterdir())],
        _results,
        _TABLE_ERRORS,
    ),
    FuzzTarget("kind of file", lambda: [_CSV, b"SQLite format 3\0"], _kind, _TABLE_ERRORS),
    FuzzTarget(
        "file that is refused",
        lambda: [path.read_bytes() for path in sorted(REFUSED.iterdir())],
        _refused,
        _TABLE_ERRORS,
    ),
    FuzzTarget("NDJSON export", lambda: [_exported()], _ndjson, _TABLE_ERRORS),
    FuzzTarget("stored text", _stored_captures, _stored, (HistoryError,)),
    FuzzTarget("stored profile", _profile_captures, _profile, (HistoryError,)),
)
