"""Histories as Parquet: a folder with a file for each table, and `history.json`, which is written last.

The columns are the fields of NDJSON, with bytes as they are. Rows of one session stand together in each file,
and sessions in the same order in all.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build.files import json_value
from history.transfer.atomic_files import written_whole
from history.transfer.ndjson import header, known_schema
from history.transfer.older_exports import completed
from history.transfer.portable_schema import (
    PORTABLE,
    FieldKind,
    Portable,
    Row,
    after_sessions,
    before_sessions,
    of_sessions,
)
from history.transfer.row_source import Item, RowSource, TransferError, checked

if TYPE_CHECKING:  # loading it takes longer than most commands
    import pyarrow

HEADER = "history.json"

GROUP_ROWS = 50_000
"""Rows that are held, and written as one row group."""

READ_ROWS = 5_000
"""Rows that are read at once of each table."""


def write_parquet(source: RowSource, folder: Path) -> int:
    """Write all rows of a source; returns how many. Raises TransferError when the folder is there already."""
    with written_whole(folder, folder=True) as part:
        with ExitStack() as stack:
            tables = {name: stack.enter_context(_Writer(table, part)) for name, table in PORTABLE.items()}
            for item in source.items():
                tables[item.table.name].add(item.row)
        rows = {name: table.rows for name, table in tables.items()}
        (part / HEADER).write_text(json.dumps(header() | {"rows": rows}, indent=1) + "\n", encoding="utf-8")
    return sum(rows.values())


class ParquetFolder:
    """An exported folder as a source."""

    left_out = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def where(self) -> str:
        """The path."""
        return str(self._folder)

    def place(self, item: Item) -> str:
        """The row of a table's file."""
        return f"row {item.number} of {item.table.name}.parquet"

    def items(self) -> Iterator[Item]:
        """All rows, session by session. Raises TransferError."""
        rows, schema = self._header()
        with ExitStack() as stack:
            tables = {
                name: stack.enter_context(_Reader(table, self._folder, rows.get(name, 0), schema))
                for name, table in PORTABLE.items()
            }
            for table in before_sessions():
                yield from tables[table.name]
            for session in tables["sessions"]:
                yield session
                for table in of_sessions():
                    yield from tables[table.name].of(session.row["uid"])
            for table in of_sessions():
                for item in tables[table.name]:
                    raise self._error(
                        self.place(item),
                        f"session {item.row['session']} is not in the order of sessions.parquet",
                    )
            for table in after_sessions():
                yield from tables[table.name]

    def _header(self) -> tuple[dict[str, int], int]:
        """Return the number of rows by table, and the schema."""
        path = self._folder / HEADER
        try:
            said = json_value(path.read_bytes())
        except (OSError, ValueError) as error:
            raise self._error(
                HEADER, f"it cannot be read, so that the export is not whole: {error}"
            ) from error
        schema = known_schema(said, str(path))
        rows = said.get("rows")
        if not isinstance(rows, dict) or not all(type(each) is int for each in rows.values()):
            raise self._error(HEADER, "it does not say how many rows there are")
        unknown = sorted(rows.keys() - PORTABLE.keys())
        if unknown:
            raise self._error(HEADER, f"there is no table {', '.join(unknown)}")
        return rows, schema

    def _error(self, place: str, what: str) -> TransferError:
        return _damaged(what, f"{self._folder}, {place}")


class _Writer:
    """The file of one table, written a row group at a time."""

    def __init__(self, table: Portable, folder: Path) -> None:
        self._table = table
        self._folder = folder
        self._held: list[Row] = []
        self.rows = 0

    def __enter__(self) -> "_Writer":
        import pyarrow.parquet

        self._schema = _schema(self._table)
        path = self._folder / f"{self._table.name}.parquet"
        self._file = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._flush()
        finally:
            self._file.close()

    def add(self, row: Row) -> None:
        """One more row."""
        self._held.append(row)
        self.rows += 1
        if len(self._held) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow

        if self._held:
            self._file.write_table(pyarrow.Table.from_pylist(self._held, schema=self._schema))
            self._held = []


class _Reader:
    """The rows of one table, in order, each given once."""

    def __init__(self, table: Portable, folder: Path, rows: int, schema: int) -> None:
        self._table, self._of_schema = table, schema
        self._path = folder / f"{table.name}.parquet"
        self._expected = rows
        self._read = 0
        self._next: Item | None = None

    def __enter__(self) -> "_Reader":
        self._items = self._checked() if self._expected or self._path.exists() else iter(())
        return self

    def __exit__(self, *_: object) -> None:
        self._items = iter(())

    def __iter__(self) -> Iterator[Item]:
        while (item := self._peek()) is not None:
            self._next = None
            yield item

    def of(self, session: str) -> Iterator[Item]:
        """The next rows, as long as they belong to a session."""
        while (item := self._peek()) is not None and item.row["session"] == session:
            self._next = None
            yield item

    def _peek(self) -> Item | None:
        if self._next is None:
            self._next = next(self._items, None)
        return self._next

    def _checked(self) -> Iterator[Item]:
        for number, row in enumerate(self._raw(), start=1):
            try:
                for name, whole in completed(self._table.name, row, self._of_schema):
                    yield Item(PORTABLE[name], checked(PORTABLE[name], whole), number)
            except ValueError as error:
                raise _damaged(str(error), f"{self._path}, row {number}") from error
            self._read = number
        if self._read != self._expected:
            raise _damaged(
                f"it holds {self._read} rows, and was written with {self._expected}", str(self._path)
            )

    def _raw(self) -> Iterator[dict[str, Any]]:
        import pyarrow
        import pyarrow.parquet

        try:
            with pyarrow.parquet.ParquetFile(self._path) as file:
                for batch in file.iter_batches(batch_size=READ_ROWS):
                    yield from batch.to_pylist()
        except Exception as error:  # damaged files make pyarrow raise what it does not document
            raise _damaged(f"it cannot be read: {error}", str(self._path)) from error


def _damaged(what: str, where: str) -> TransferError:
    return TransferError(what, where=where, hint="export it again; nothing of it was taken")


def _schema(table: Portable) -> "pyarrow.Schema":
    import pyarrow

    kinds = {
        FieldKind.INTEGER: pyarrow.int64(),
        FieldKind.REAL: pyarrow.float64(),
        FieldKind.BYTES: pyarrow.binary(),
    }
    return pyarrow.schema(
        [
            pyarrow.field(field.name, kinds.get(field.kind, pyarrow.string()), nullable=field.optional)
            for field in table.fields.values()
        ]
    )
