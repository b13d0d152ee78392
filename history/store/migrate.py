"""Migration of a database to the newest schema: each file of migrations/ is applied in one transaction."""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from string import Template

from sqlalchemy import Connection, func, insert, inspect, select

from history.errors import RESTORE, HistoryError, NewerSchemaError
from history.store.database import Database
from history.store.schema import schema_migrations
from history.store.schema_status import MIGRATIONS, stated_schema
from history.timestamps import now, to_text

PLACEHOLDERS = {
    "sqlite": {
        "id": "INTEGER PRIMARY KEY",
        "integer": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
        "strict": "STRICT",
        # A table stored as its primary key index takes half the space when rows are small.
        "clustered": "STRICT, WITHOUT ROWID",
    },
    "postgresql": {
        "id": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "strict": "",
        "clustered": "",
    },
}
"""What the `$names` in migrations stand for in each dialect."""

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True)
class Migration:
    """One numbered step of the schema, in the SQL of one dialect."""

    number: int
    name: str
    statements: tuple[str, ...]


def load(dialect: str, folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """Return the migrations of a folder in order. Raises ValueError unless they are numbered 1, 2, 3..."""
    migrations = []
    for number, path in enumerate(sorted(folder.glob("*.sql")), start=1):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None or int(match[1]) != number:
            raise ValueError(f"{path.name} must be named {number:04}_name.sql")
        script = Template(path.read_text(encoding="utf-8")).substitute(PLACEHOLDERS[dialect])
        migrations.append(Migration(number, match[2], split_statements(script)))
    return tuple(migrations)


def split_statements(script: str) -> tuple[str, ...]:
    """Return the statements of a script; each must end at the end of a line.

    SQLite's tokenizer finds where a statement is complete, so that a `;` in a string or comment does not end
    it. Raises ValueError when the last statement is not terminated.
    """
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    if re.sub(r"--[^\n]*", "", pending).strip():
        raise ValueError(f"a statement is not terminated by ';': {pending.strip()[:80]}")
    return tuple(statements)


def schema_number(database: Database, supported: int) -> int:
    """Return the number of the last migration that was applied; 0 for an empty database.

    Changes nothing. Raises HistoryError for the database of another program, and NewerSchemaError for a
    number above `supported`.
    """
    number = _readable_number(database)
    if number is None:
        number = _inspected_number(database)
    if number > supported:
        raise NewerSchemaError(
            f"this history has schema {number} of a newer Tidemark, and this one knows up to {supported}",
            where=database.where,
            hint="update this box, or name another history",
        )
    return number


def _readable_number(database: Database) -> int | None:
    """Return the number by the table of migrations alone; None when the database has to be inspected."""
    try:
        with database.reading() as connection:
            return stated_schema(connection)
    except HistoryError:
        return None


def _inspected_number(database: Database) -> int:
    with database.reading() as connection:
        if not _is_ours(connection):
            raise HistoryError(
                "the database contains tables that are not Tidemark's",
                where=database.where,
                hint="name another history, or move this one aside",
            )
        return _applied(connection)


def require_schema(database: Database, number: int) -> None:
    """Raises HistoryError when a history lacks a table or column that its schema number says it has."""
    expected = _columns(number)
    with database.reading() as connection:
        inspected = inspect(connection)
        found = {table: set[str]() for table in inspected.get_table_names()}
        for (_, table), columns in inspected.get_multi_columns().items():
            found[table] = {column["name"] for column in columns}
    if missing := sorted(expected.keys() - found.keys()):
        raise HistoryError(
            f"the history is damaged: it has no table {', '.join(missing)}",
            where=database.where,
            hint=RESTORE,
        )
    lacking = [
        f"{table}.{name}" for table in sorted(expected) for name in sorted(expected[table] - found[table])
    ]
    if lacking:
        raise HistoryError(
            f"the history lacks columns of schema {number}: {', '.join(sorted(lacking))}; it is damaged, or"
            " was written by a state of Tidemark between two schemas",
            where=database.where,
            hint=f"export it with the checkout that wrote it, or {RESTORE}",
        )


def _columns(number: int) -> dict[str, set[str]]:
    """Return the columns of each table of a schema."""
    columns: dict[str, set[str]] = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load("sqlite")[:number]:
            for statement in migration.statements:
                connection.execute(statement)
        query = (
            "SELECT tables.name, info.name FROM sqlite_schema AS tables"
            " JOIN pragma_table_info(tables.name) AS info WHERE tables.type = 'table'"
        )
        for table, column in connection.execute(query):
            columns.setdefault(table, set()).add(column)
    return columns


def migrate(database: Database, folder: Path = MIGRATIONS) -> None:
    """Apply the missing migrations, each with its number in one transaction.

    Raises as `schema_number`, and as `require_schema` for a history that was not what its number says.
    """
    migrations = load(database.dialect, folder)
    number = schema_number(database, len(migrations))
    if number < len(migrations):
        require_schema(database, number)
    for migration in migrations[number:]:
        _apply(database, migration)


def _apply(database: Database, migration: Migration) -> None:
    with database.writing() as connection:
        if _applied(connection) >= migration.number:
            return  # another process was faster
        for statement in migration.statements:
            connection.exec_driver_sql(statement)
        connection.execute(
            insert(schema_migrations).values(
                number=migration.number, name=migration.name, applied_at=to_text(now())
            )
        )


def _is_ours(connection: Connection) -> bool:
    tables = inspect(connection).get_table_names()
    if not tables:
        return True
    if schema_migrations.name not in tables:
        return False
    # Other programs have a table of this name too.
    columns = {column["name"] for column in inspect(connection).get_columns(schema_migrations.name)}
    return columns == set(schema_migrations.c.keys())


def _applied(connection: Connection) -> int:
    if not inspect(connection).has_table(schema_migrations.name):
        return 0
    return connection.execute(select(func.max(schema_migrations.c.number))).scalar() or 0
