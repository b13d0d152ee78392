"""Running a SQL file of a suite in a Postgres server with psql, and trying scripts on a copy of its data."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from build.accounts import server_account
from suites.postgres.client_options import client_database, client_options
from suites.postgres.configuration import NAME
from suites.postgres.connecting import connect
from suites.processes import ProcessError, require_files, run
from suites.server import SETUP_SECONDS, Address, ServerError, SetupError

_TRIAL, _BESIDE = "tidemark_trial", "template1"
"""A database that exists for a moment, and one from which it can be made."""

_COPY_SETTINGS = """
    INSERT INTO pg_db_role_setting (setdatabase, setrole, setconfig)
    SELECT copy.oid, setting.setrole, setting.setconfig
    FROM pg_db_role_setting setting
    JOIN pg_database original ON original.oid = setting.setdatabase AND original.datname = %s
    JOIN pg_database copy ON copy.datname = %s
"""
"""CREATE DATABASE leaves out what ALTER DATABASE SET and ALTER ROLE IN DATABASE SET say of its template. They
are copied as rows, because a list such as search_path is not stored as ALTER DATABASE takes it."""

_ERROR = re.compile(
    r"^psql:(?P<file>.+?):(?P<line>\d+): (?:(?:ERROR|FATAL|PANIC|error): *)?(?P<said>.+)$", re.M
)


_NO_EXTENSION = re.compile(
    r"""extension "([^"]+)" is not available"""
    r"""|could not open extension control file "(?:[^"]*/)?([^"/]+)\.control\""""
    r"""|could not access file "([^"]+)\""""
)
"""How servers say that an extension is not installed, in the second way before 16, or its library."""


def connection_words(psql: Path, address: Address) -> list[str | Path]:
    """Return the words that run psql quietly in the database of an address, up to the first error."""
    return [
        *(psql, "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"),
        *(*client_options(address), f"--dbname={client_database(address)}"),
    ]


def advice(said: str, name: str) -> str:
    """Return what to do about what a server `said` of a statement of the file `name`; else nothing."""
    if said.startswith("unrecognized configuration parameter"):
        return f"{name} may be a dump of a newer version: take the line out, or dump with --format=custom"
    match = _NO_EXTENSION.search(said)
    if match is None:
        return ""
    extension = next(filter(None, match.groups())).removeprefix("$libdir/")
    return (
        f"the server's build has no extension {extension}: build it with --extension, measure an install "
        f"prefix that has it, or take it out of {name}"
    )


def run_file(psql: Path, address: Address, folder: Path, name: str) -> None:
    """Run the SQL file `name` in `folder` up to its first error, with that folder as the current one.

    The file may have psql's own commands. Raises SetupError with file, line and the server's sentence, and
    AccountError for a file that psql's user may not read.
    """
    require_files(psql, folder, [name])
    try:
        run(
            [*connection_words(psql, address), f"--file={name}"],
            what=name,
            cwd=folder,
            env=address.password_variables,
            seconds=SETUP_SECONDS,
            account=server_account(),
        )
    except ProcessError as error:
        match = _ERROR.search(error.what)
        if match is None:
            raise
        raise SetupError(
            f"{match['file']}, line {match['line']}: {match['said']}",
            where=str(folder / name),
            hint=advice(match["said"], name) or "look at the statement that ends at this line",
        ) from error


@contextlib.contextmanager
def with_all_rights(address: Address) -> Iterator[Address]:
    """Return a context in which the role of clients is a superuser, for a file of the suite.

    A file may create extensions and languages; and what it creates belongs to the role. Raises ServerError.
    """
    _set_role(address, "SUPERUSER")
    try:
        yield address
    except BaseException:
        with contextlib.suppress(ServerError):  # the server may be why
            _set_role(address, "NOSUPERUSER")
        raise
    _set_role(address, "NOSUPERUSER")


def _set_role(address: Address, rights: str) -> None:
    try:
        with connect(address.of_admin, _BESIDE) as connection:
            connection.execute(f"ALTER ROLE {NAME} {rights}".encode())
    except psycopg.Error as error:
        raise ServerError(f"the rights of {NAME} cannot be set: {str(error).strip()}") from error


@contextlib.contextmanager
def trial_copy(address: Address) -> Iterator[Address]:
    """Return a context with the address of a copy of the database with its settings, dropped at the end.

    What is tried in the copy leaves the loaded data as they are. Raises ServerError.
    """
    copy, original = sql.Identifier(_TRIAL), sql.Identifier(address.database)
    try:
        with connect(address.of_admin, _BESIDE) as connection:
            create = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}")
            connection.execute(create.format(copy, original, sql.Identifier(address.user)))
            try:
                connection.execute(_COPY_SETTINGS, (address.database, _TRIAL))
                yield replace(address, database=_TRIAL)
            finally:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(copy))
    except psycopg.Error as error:
        raise ServerError(f"the loaded data cannot be copied: {str(error).strip()}") from error
