"""Which format a file that should come in has: what is in it decides, not its name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from build.errors import shell_line
from history.store.database import Database
from history.store.writer import Store
from history.transfer.database_source import opened
from history.transfer.foreign.csv_table import CSV_EXAMPLE
from history.transfer.foreign.document import Document
from history.transfer.foreign.formats import (
    CONVERSIONS,
    FORMATS,
    ForeignFormat,
    not_importable,
    recognised,
)
from history.transfer.foreign.mytools import RELATIVE_BEGINS
from history.transfer.foreign.reading import joined_text, read_files
from history.transfer.foreign.results import ToolFormat
from history.transfer.foreign.sessions import imported_rows, record_bases
from history.transfer.foreign.values import Given
from history.transfer.ndjson import NdjsonFile
from history.transfer.row_source import RowSource, TransferError

PARQUET_HEADER = "history.json"
"""The file that marks a folder as an export as Parquet, which older Tidemarks wrote."""

PARQUET_IS_GONE = (
    "use NDJSON; the section Export of docs/history.md says how a folder of Parquet files comes in, and how "
    "NDJSON becomes Parquet"
)

EXPORTED = re.compile(r'\s*\{[^\n]{0,200}?"(?:tidemark|table)"\s*:')
"""How an export begins: with its header, or with a row if the header was lost."""

SHOWN = 60
"""Characters of the first line that a refusal shows."""


class OwnFormat(Enum):
    """What a file that Tidemark itself wrote is."""

    NDJSON = auto()
    SQLITE = auto()


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


def format_of(path: Path) -> OwnFormat | ForeignFormat:
    """What is at a path. Raises TransferError when that is nothing we read."""
    if path.is_dir():
        if (path / PARQUET_HEADER).is_file():
            raise TransferError("it is an export as Parquet", where=str(path), hint=PARQUET_IS_GONE)
        raise _unknown(path, "it is a folder")
    document = Document(path)
    head = document.head
    if head.startswith("SQLite format 3\0"):
        return OwnFormat.SQLITE
    if EXPORTED.match(head):
        return OwnFormat.NDJSON
    if RELATIVE_BEGINS.match(head) or path.name.startswith("qps.rel."):
        raise TransferError(
            "the table is relative to one of its versions, and does not hold the rates themselves",
            where=str(path),
            hint="import the table of rates, which mytools calls qps.abs.* instead of qps.rel.*",
        )
    known = recognised(document)
    if known is None:
        if why := not_importable(document):
            raise why
        raise _unknown(
            path, f"this is neither a history nor results that can be imported: {_first_line(document)}"
        )
    return known


def open_files(paths: Sequence[Path], given: Given, store: Store) -> ImportSources:
    """Exports, and foreign results: those of one occasion become one session. Raises TransferError."""
    exports: list[RowSource] = []
    foreign: list[tuple[Document, ForeignFormat]] = []
    for path in paths:
        kind = format_of(path)
        if kind is OwnFormat.SQLITE:
            hint = shell_line("./tidemark", "history", "merge", path)
            raise TransferError("this is a database, not an export", where=str(path), hint=hint)
        if isinstance(kind, OwnFormat):
            exports.append(NdjsonFile(path))
        else:
            foreign.append((Document(path), kind))
    if not foreign and given != Given():
        raise TransferError(
            "the options that say where, when and what was measured are for results of other tools",
            hint="leave them out: an export says all of it",
        )
    if not foreign:
        return ImportSources(tuple(exports), ())
    incoming = read_files(foreign, given)
    with store.database.reading() as connection:
        rows = imported_rows(incoming.numbered(connection), given, connection)
    return ImportSources(
        (*exports, rows),
        (*incoming.notes, *joined_text(incoming.files), *rows.notes),
        tuple(dict.fromkeys((occasion.machine, occasion.suite) for occasion in incoming.files)),
        rows.bases,
    )


@contextmanager
def open_histories(targets: Sequence[str]) -> Iterator[ImportSources]:
    """Databases by path or URL, and exports. Raises HistoryError."""
    with ExitStack() as stack:
        sources: list[RowSource] = []
        for target in targets:
            kind = OwnFormat.SQLITE if "://" in target else format_of(Path(target))
            if not isinstance(kind, OwnFormat):
                hint = shell_line("./tidemark", "history", "import", target)
                raise TransferError(f"this is {kind.name}, not a history", where=target, hint=hint)
            exported = kind is OwnFormat.NDJSON
            sources.append(NdjsonFile(Path(target)) if exported else stack.enter_context(opened(target)))
        yield ImportSources(tuple(sources), ())


def _unknown(path: Path, what: str) -> TransferError:
    tools = ", ".join(dict.fromkeys(known.suite for known in FORMATS if isinstance(known, ToolFormat)))
    hint = (
        f"what can come in (docs/history.md): exports, tables of mytools, results of {tools}; "
        f"and anything as a CSV, which {CONVERSIONS} makes of the results of others:\n{CSV_EXAMPLE}"
    )
    return TransferError(what, where=str(path), hint=hint)


def _first_line(document: Document) -> str:
    """The beginning of a file, for people."""
    line = next((line.strip() for line in document.head.splitlines() if line.strip()), "")
    return f"it begins with '{line[:SHOWN]}'" if line else "it is empty"
