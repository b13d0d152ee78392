"""What a variant has in its database: extensions before anything is loaded into it, and indexes after."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import psycopg
from psycopg import sql

from build.extension import ExtensionError
from suites.additions.variant import ExtraIndexError, parse_index
from suites.checking.queries import QueryError, connected
from suites.engines import engine_of
from suites.postgres.connecting import connect
from suites.postgres.setup_file import with_all_rights
from suites.server import Address


def create_extensions(address: Address, names: Sequence[str]) -> None:
    """Create the extensions of a Postgres server in order, each with those that it requires.

    They belong to the role of clients. Raises ExtensionError, with the server's sentence, and ServerError.
    """
    for name in names:
        statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(name))
        try:
            with with_all_rights(address), connect(address) as connection:
                connection.execute(statement)
        except psycopg.Error as error:
            said = str(error).strip()
            raise ExtensionError(
                f"the extension {name} cannot be created: {said}",
                where=f"extension {name}",
                hint=f"add --with setting.shared_preload_libraries={name}" if "preload" in said else "",
            ) from error


def create_indexes(address: Address, indexes: Sequence[str]) -> None:
    """Create the indexes in the order of their descriptions. Raises ExtraIndexError."""
    if not indexes:
        return
    try:
        with connected(address.of_admin) as connection:
            cursor = connection.cursor()
            cursor.execute(engine_of(address.engine).table_names)
            tables = sorted(str(row[0]) for row in cursor.fetchall())
            for number, text in enumerate(indexes):
                for statement in _statements(number, text, tables):
                    cursor.execute(statement)
    except QueryError as error:
        raise ExtraIndexError(f"the server cannot create an index: {error.what}", where="index") from error


def _statements(number: int, text: str, tables: Sequence[str]) -> list[str]:
    index = parse_index(text)
    chosen = [table for table in tables if fnmatchcase(table, index.tables)]
    if not chosen:
        raise ExtraIndexError(
            f"no table is called {index.tables}", where="index", hint=f"the tables are: {', '.join(tables)}"
        )
    return [f"CREATE INDEX tidemark_{number}_{table} ON {table} {index.columns}" for table in chosen]
