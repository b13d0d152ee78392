"""Histories as NDJSON: a line that says what follows, a line for each row, and one that says it was all.

    {"tidemark": "history", "schema": 4}
    {"table": "sessions", "uid": "20260301-020000-f00d", ...}
    {"end": true, "rows": 1}

A file whose name ends in `.gz` is compressed. Bytes are in base64. Lines are read one by one.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from history.store.migrate import load
from history.transfer.atomic_files import written_whole
from history.transfer.portable_schema import PORTABLE, FieldKind, Portable, Row
from history.transfer.row_source import Item, RowSource, TransferError, checked


def _asked(row: Row) -> Row:
    """Return an alert with the columns of 0008_alert_intent.sql."""
    attempted = row.get("attempts", 0) and (row.get("issue") is not None or row.get("wanted") == "open")
    return {"asked_state": row.get("wanted") if attempted else None, "repository": None, **row}


def _with(columns: str) -> Callable[[Row], Row]:
    """Return what adds columns that are null in older rows."""
    return lambda row: {**dict.fromkeys(columns.split()), **row}


def _acknowledged(change: Row) -> Iterator[tuple[str, Row]]:
    """Yield the acknowledgement that 0012_issues.sql gives a change."""
    if change.get("status") == "acknowledged":
        yield (
            "acknowledgements",
            {
                "change": change.get("fingerprint"),
                "happened_at": change.get("updated_at"),
                "kind": "acknowledged",
                "who": "",
                "reason": change.get("reason") or "",
                "until": None,
            },
        )


def _without_guess(night: Row) -> Row:
    """Return a night as 0014_imported_base.sql leaves it."""
    is_imported = str(night.get("session", "")).startswith("imported-")
    return {**night, "is_base": 0} if is_imported else night


COMPLETED: Mapping[str, tuple[tuple[int, Callable[[Row], Row]], ...]] = {
    "alerts": (
        (8, _asked),
        (12, _with("sent_title sent_body asked_after closed_as seen_at resolved_at unmuted_at members")),
        (18, _with("assignee assigned")),
    ),
    "nights": ((14, _without_guess),),
}
"""Table -> the schemas that changed its rows, ascending, each with what makes an earlier row one of it."""

FOLLOWING: Mapping[str, tuple[tuple[int, Callable[[Row], Iterator[tuple[str, Row]]]], ...]] = {
    "changes": ((12, _acknowledged),)
}
"""Table -> the schemas that made rows of other tables from its rows, each with what makes them."""


def completed(table: str, row: Row, schema: int) -> Iterator[tuple[str, Row]]:
    """Yield a row of an export with a schema as it is in the newest one, and rows that follow from it."""
    whole = row
    for number, complete in COMPLETED.get(table, ()):
        if schema < number:
            whole = complete(whole)
    yield table, whole
    for number, follow in FOLLOWING.get(table, ()):
        if schema < number:
            yield from follow(whole)


DROPPED: Mapping[str, int] = {"pool_boxes": 19, "placements": 19}
"""Table -> the schema that dropped it, whose rows in earlier exports say nothing of a result."""

SCHEMA = len(load("sqlite"))
"""The schema number of exports that are written now."""

LONGEST_LINE = 256 * 1024**2
"""The length of a line at most, in bytes, because a line is held in memory as a whole."""

_GZIP_MAGIC = b"\x1f\x8b"


def header() -> dict[str, Any]:
    """Return what an export begins with."""
    return {"tidemark": "history", "schema": SCHEMA}


def known_schema(said: object, where: str) -> int:
    """Return the schema of an export by its header. Raises TransferError for another file, or a newer one."""
    if not isinstance(said, dict) or said.get("tidemark") != "history":
        raise TransferError(
            "this is no history that Tidemark exported",
            where=where,
            hint="see docs/history.md for the formats",
        )
    schema = said.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise TransferError(
            f"it was written by a newer Tidemark (schema {schema}, this one knows {SCHEMA})",
            where=where,
            hint="update this checkout",
        )
    return schema


def write_ndjson(source: RowSource, path: Path) -> int:
    """Write all rows of a source, and return their number. Raises TransferError when the file exists."""
    rows = 0
    with written_whole(path) as part, _writing(part, compressed=path.suffix == ".gz") as file:
        file.write(_line(header()))
        for item in source.items():
            file.write(_line({"table": item.table.name, **_encoded(item)}))
            rows += 1
        file.write(_line({"end": True, "rows": rows}))
    return rows


class NdjsonFile:
    """An exported file as a source."""

    left_out = ()

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The path."""
        return str(self._path)

    def place(self, item: Item) -> str:
        """Return the line of a row."""
        return f"line {item.number}"

    def items(self) -> Iterator[Item]:
        """All rows. Raises TransferError for a line that is none, with its number."""
        rows, ended, schema = 0, False, SCHEMA
        for number, said in self._lines():
            if number == 1:
                schema = known_schema(said, f"{self.where}, line 1")
            elif ended:
                raise self._error(number, "something follows the end of the export")
            elif "end" in said:
                ended = True
                if said.get("rows") != rows:
                    raise self._error(
                        number, f"it holds {rows} rows, and was written with {said.get('rows')}"
                    )
            else:
                rows += 1
                yield from self._items(number, said, schema)
        if not ended:
            raise self._error(rows + 2, "the file ends before the export does: it is truncated")

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        try:
            with _reading(self._path) as file:
                while line := file.readline(LONGEST_LINE):
                    number += 1
                    yield number, self._parsed(number, line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._error(number + 1, f"the compressed file is truncated or damaged: {error}") from error
        except OSError as error:
            raise TransferError(
                f"it cannot be read: {error.strerror or error}", where=self.where, hint="check the path"
            ) from error
        if not number:
            raise self._error(1, "the file is empty")

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            said = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            cut = "" if line.endswith(b"\n") else ": the file is truncated"
            raise self._error(number, f"the line is not JSON{cut}") from error
        if not isinstance(said, dict):
            raise self._error(number, "the line is not a JSON object")
        return said

    def _items(self, number: int, said: dict[str, Any], schema: int) -> Iterator[Item]:
        name = said.pop("table", None)
        if isinstance(name, str) and schema < DROPPED.get(name, 0):
            return
        table = PORTABLE.get(name) if isinstance(name, str) else None
        if table is None:
            raise self._error(number, f"there is no table {name!r}")
        try:
            for table_name, row in completed(table.name, _decoded(table, said), schema):
                yield Item(PORTABLE[table_name], checked(PORTABLE[table_name], row), number)
        except ValueError as error:
            raise self._error(number, str(error)) from error

    def _error(self, number: int, what: str) -> TransferError:
        return TransferError(
            what, where=f"{self.where}, line {number}", hint="export it again; nothing of it was taken"
        )


def _encoded(item: Item) -> dict[str, Any]:
    blobs = (field.name for field in item.table.fields.values() if field.kind is FieldKind.BYTES)
    return item.row | {name: base64.b64encode(item.row[name]).decode() for name in blobs}


def _decoded(table: Portable, said: dict[str, Any]) -> dict[str, Any]:
    for field in table.fields.values():
        if field.kind is FieldKind.BYTES and isinstance(said.get(field.name), str):
            try:
                said[field.name] = base64.b64decode(said[field.name], validate=True)
            except ValueError as error:
                raise ValueError(f"{table.name}: {field.name} is not base64") from error
    return said


def _line(said: dict[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@contextmanager
def _writing(path: Path, *, compressed: bool) -> Iterator[BinaryIO | gzip.GzipFile]:
    with path.open("xb") as plain:
        if not compressed:
            yield plain
            return
        # Without name and time, so that the same history gives the same file.
        with gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0) as file:
            yield file


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    with path.open("rb") as plain:
        magic = plain.read(len(_GZIP_MAGIC))
        plain.seek(0)
        if magic != _GZIP_MAGIC:
            yield plain
            return
        with gzip.GzipFile(fileobj=plain) as file:
            yield file
