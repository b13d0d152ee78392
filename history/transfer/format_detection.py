"""Which format a file that should come in has: what is in it decides, not its name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from history.store.database import Database
from history.store.writer import Store
from history.transfer.database_source import opened
from history.transfer.foreign.csv_table import looks_like_csv, read_csv
from history.transfer.foreign.imported_base import (
    known_bases,
    named_bases,
    record_bases,
    stored_bases,
    versions_by_occasion,
)
from history.transfer.foreign.mytools import (
    HEADLESS_BEGINS,
    PER_OP_BEGINS,
    QPS_BEGINS,
    RELATIVE_BEGINS,
    read_headless_qps,
    read_per_op,
    read_qps,
)
from history.transfer.foreign.sessions import ImportedRows, known_positions, uid_of
from history.transfer.foreign.values import Given, Occasion, Read, Value
from history.transfer.ndjson import NdjsonFile
from history.transfer.row_source import RowSource, TransferError

PARQUET_HEADER = "history.json"
"""The file that marks a folder as an export as Parquet, which older Tidemarks wrote."""

PARQUET_IS_GONE = (
    "use NDJSON; the section Export of docs/history.md says how a folder of Parquet files comes in, and how "
    "NDJSON becomes Parquet"
)

LOOKED_AT = 4096
"""Bytes of a file that say what it is."""


class Format(Enum):
    """What a file or folder is."""

    NDJSON = auto()
    SQLITE = auto()
    CSV = auto()
    QPS = auto()
    HEADLESS_QPS = auto()
    PER_OP = auto()


EXPORTS: Mapping[Format, Callable[[Path], RowSource]] = {Format.NDJSON: NdjsonFile}
TABLES: Mapping[Format, Callable[[Path, Given], Read]] = {
    Format.CSV: read_csv,
    Format.QPS: read_qps,
    Format.HEADLESS_QPS: read_headless_qps,
    Format.PER_OP: read_per_op,
}


@dataclass(frozen=True)
class ImportSources:
    """What is to be merged, and what people should know of it."""

    sources: tuple[RowSource, ...]
    notes: tuple[str, ...]
    measured: tuple[tuple[str, str], ...] = ()
    """Machines and suites of foreign tables."""

    bases: Mapping[str, str] = field(default_factory=dict)
    """The versions that are the bases of sessions of foreign tables, by uid."""

    def record_bases(self, database: Database) -> None:
        """Record the bases of sessions that the history had without one, or with another one."""
        if self.bases:
            with database.writing() as connection:
                record_bases(connection, self.bases)


def format_of(path: Path) -> Format:
    """What is at a path. Raises TransferError when that is nothing we read."""
    if path.is_dir():
        if (path / PARQUET_HEADER).is_file():
            raise TransferError("it is an export as Parquet", where=str(path), hint=PARQUET_IS_GONE)
        raise _unknown(path, "it is a folder")
    try:
        with path.open("rb") as file:
            head = file.read(LOOKED_AT)
    except OSError as error:
        raise TransferError(
            f"it cannot be read: {error.strerror or error}", where=str(path), hint="check the path"
        ) from error
    if head.startswith(b"SQLite format 3\0"):
        return Format.SQLITE
    if head.startswith((b"\x1f\x8b", b"{")):
        return Format.NDJSON
    text = head.decode("utf-8-sig", errors="replace")
    if RELATIVE_BEGINS.match(text) or path.name.startswith("qps.rel."):
        raise TransferError(
            "the table is relative to one of its versions, and does not hold the rates themselves",
            where=str(path),
            hint="import the table of rates, which mytools calls qps.abs.* instead of qps.rel.*",
        )
    for recognised, kind in (
        (QPS_BEGINS.match(text), Format.QPS),
        (PER_OP_BEGINS.match(text), Format.PER_OP),
        (looks_like_csv(text.partition("\n")[0]), Format.CSV),
        (HEADLESS_BEGINS.match(text), Format.HEADLESS_QPS),
    ):
        if recognised:
            return kind
    raise _unknown(path, "this is neither a history nor a table that can be imported")


def open_files(paths: Sequence[Path], given: Given, store: Store) -> ImportSources:
    """Exports, and foreign tables: those of one occasion become one session. Raises TransferError."""
    sources: list[RowSource] = []
    notes: list[str] = []
    values: list[Value] = []
    files: dict[Occasion, list[str]] = {}
    for path in paths:
        kind = format_of(path)
        if kind is Format.SQLITE:
            hint = f"./tidemark history merge {path}"
            raise TransferError("this is a database, not an export", where=str(path), hint=hint)
        if export := EXPORTS.get(kind):
            sources.append(export(path))
            continue
        read = TABLES[kind](path, given)
        if not read.values:
            raise _unknown(path, "; ".join(["the table holds no value that can be taken", *read.notes]))
        values += read.values
        notes += read.notes
        for occasion in dict.fromkeys(value.occasion for value in read.values):
            files.setdefault(occasion, []).append(str(path))
    if given.columns and Format.HEADLESS_QPS not in map(format_of, paths):
        raise TransferError(
            "--columns is for tables without a head", hint="leave it out: the tables name their columns"
        )
    if given != Given() and not values:
        raise TransferError(
            "--machine, --suite, --when, --cores, --columns and --base are for tables, not for exports",
            hint="leave them out: an export says all of it",
        )
    notes += [_joined(occasion, names) for occasion, names in files.items() if len(names) > 1]
    bases: Mapping[str, str] = {}
    if values:
        rows, bases = _imported(values, given, store)
        sources.append(rows)
        notes += rows.notes
    measured = dict.fromkeys((occasion.machine, occasion.suite) for occasion in files)
    return ImportSources(tuple(sources), tuple(notes), tuple(measured), bases)


def _imported(values: Sequence[Value], given: Given, store: Store) -> tuple[ImportedRows, Mapping[str, str]]:
    """The rows of tables, and the base of each session, as said now or with an earlier table. By uid."""
    measured = versions_by_occasion(values)
    with store.database.reading() as connection:
        found = named_bases(given.base, measured) if given.base else known_bases(connection, measured)
        bases = {uid_of(occasion): version for occasion, version in found.items()}
        stored = stored_bases(connection, map(uid_of, measured))
        positions = known_positions(connection)
    return ImportedRows(values, given.cores, positions, {**bases, **stored}), bases


@contextmanager
def open_histories(targets: Sequence[str]) -> Iterator[ImportSources]:
    """Databases by path or URL, and exports. Raises HistoryError."""
    with ExitStack() as stack:
        sources: list[RowSource] = []
        for target in targets:
            kind = Format.SQLITE if "://" in target else format_of(Path(target))
            if kind in TABLES:
                hint = f"./tidemark history import {target}"
                raise TransferError("this is a table, not a history", where=target, hint=hint)
            export = EXPORTS.get(kind)
            sources.append(export(Path(target)) if export else stack.enter_context(opened(target)))
        yield ImportSources(tuple(sources), ())


def _joined(occasion: Occasion, names: Sequence[str]) -> str:
    """That several tables make up one session: whether they are of one machine is for people to see."""
    where = f"machine {occasion.machine}, suite {occasion.suite}, {occasion.when:%Y-%m-%d}"
    return f"{', '.join(names)}: one session, {where}"


def _unknown(path: Path, what: str) -> TransferError:
    return TransferError(what, where=str(path), hint="docs/history.md says what can come in")
