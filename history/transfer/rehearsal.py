"""Rows tried out before any is written: what the database would refuse is known beforehand."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from history.store.migrate import load
from history.transfer.portable_schema import PLACE, Portable, Row


class Rehearsal:
    """An empty history of its own, whose rules are those of the migrations.

    It is a temporary database of SQLite, which lies in memory as long as it is small. References are not
    followed: ids are those of the history, or promised ones below zero, one for each row that is to come.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        for migration in load("sqlite"):
            for statement in migration.statements:
                connection.execute(statement)

    @contextmanager
    def group(self, uid: str) -> Iterator[None]:
        """Try out rows that belong together; those of a session, with its `uid`, are forgotten after it."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK" if uid else "COMMIT")

    def try_out(self, table: Portable, row: Row, local: Row) -> None:
        """Insert a row, whose columns in the history are `local`. Raises ValueError when that is refused."""
        # A dropped round is named by its place within the session alone.
        values = local | ({"id": row[PLACE]} if PLACE in row else {})
        statement = (
            f"INSERT INTO {table.name} ({', '.join(values)}) VALUES ({', '.join(map(':{}'.format, values))})"
        )
        try:
            self._connection.execute(statement, values)
        except sqlite3.IntegrityError as error:
            rule, _, which = str(error).partition(" constraint failed: ")
            if rule == "UNIQUE":
                key = " ".join(map(str, table.key_of(row)))
                raise ValueError(f"a row of {table.name} is there twice: {key}") from error
            raise ValueError(f"a row of {table.name} breaks a rule of the history: {which}") from error


@contextmanager
def rehearsal() -> Iterator[Rehearsal]:
    """A rehearsal, whose database is gone afterwards."""
    # An empty name is a temporary file, which SQLite begins to write when its cache is full.
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        yield Rehearsal(connection)
