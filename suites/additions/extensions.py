"""The extensions of a build, created in the database before anything is loaded into it."""

from collections.abc import Sequence

import psycopg
from psycopg import sql

from build.extension import ExtensionError
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
                where="--extension",
                hint=f"add --set shared_preload_libraries={name}" if "preload" in said else "",
            ) from error
