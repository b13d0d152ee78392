"""Questions in plain SQL, as SQLite and Postgres both read it, and a quick way to ask them of a SQLite file.

What `compare` asks is written this way, because importing SQLAlchemy takes longer than comparing
(docs/decisions/0021-compare-in-a-blink.md). Values are named in a question as `:name`.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from history.errors import refusal

BUSY_TIMEOUT_MS = 30_000
"""How long is waited for whoever has the history locked. A record takes milliseconds; a migration seconds."""

Row = Sequence[Any]


class Source(ABC):
    """An open transaction that can be asked."""

    @abstractmethod
    def answer(self, question: str, values: Mapping[str, object]) -> tuple[Sequence[str], Sequence[Row]]:
        """The names of the columns, and the rows. `values` are what the question names, and nothing else."""

    def rows(self, question: str, **values: object) -> Sequence[Row]:
        """The rows, their fields by place."""
        return self.answer(question, values)[1]

    def records(self, question: str, **values: object) -> list[dict[str, Any]]:
        """The rows, their fields by name."""
        names, rows = self.answer(question, values)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def column(self, question: str, **values: object) -> list[Any]:
        """The first field of each row."""
        return [row[0] for row in self.rows(question, **values)]

    def value(self, question: str, **values: object) -> Any:
        """The first field of the first row; None when there is no row."""
        return next(iter(self.column(question, **values)), None)


def among(column: str, wanted: Collection[str]) -> tuple[str, dict[str, object]]:
    """The condition that a column is one of at least one value, and these by the names it has for them."""
    name = column.rpartition(".")[2]
    values: dict[str, object] = {f"{name}_{number}": each for number, each in enumerate(wanted)}
    return f"{column} IN ({', '.join(f':{each}' for each in values)})", values


class SqliteTransaction(Source):
    """An open transaction of a SqliteFile."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def answer(self, question: str, values: Mapping[str, object]) -> tuple[Sequence[str], Sequence[Row]]:
        """As Source says."""
        cursor = self._connection.execute(question, values)
        return [each[0] for each in cursor.description], cursor.fetchall()


class SqliteFile:
    """A SQLite file that is asked without SQLAlchemy. Not even its header or write-ahead log is touched.

    Raises HistoryError when it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=ro",
                uri=True,
                timeout=BUSY_TIMEOUT_MS / 1000,
                isolation_level=None,  # transactions are begun below
            )
        except sqlite3.Error as error:
            raise refusal(str(error), self.where) from error

    @contextmanager
    def asking(self) -> Iterator[Source]:
        """A transaction that blocks no writer. Raises HistoryError for what SQLite refuses."""
        try:
            self._connection.execute("BEGIN")
            try:
                yield SqliteTransaction(self._connection)
            finally:
                if self._connection.in_transaction:  # SQLite itself ends it at some errors
                    self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise refusal(str(error), self.where) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
