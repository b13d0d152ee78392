"""Filling a Postgres server from files of a suite, SQL and dumps, and trying scripts on a copy."""

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from build.accounts import server_account
from build.finished_build import Build
from suites.keys.loaded_file import LoadKind
from suites.postgres.configuration import NAME
from suites.postgres.connecting import client_database, client_options, connect
from suites.processes import ProcessError, require_files, run
from suites.server import SETUP_SECONDS, Address, ServerError, SetupError, postgres_port

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
        f"the server's build has no extension {extension}: add --with extension.{extension}=REPO@REF, "
        f"measure an install prefix that has it, or take it out of {name}"
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


_LEFT_OUT = (
    # What a dump says of things outside of its database, which the server of a session does not have.
    *("--no-owner", "--no-privileges", "--no-tablespaces", "--no-security-labels"),
    *("--no-publications", "--no-subscriptions"),
)

_HEADER = "1,/^SELECT pg_catalog.set_config/"
"""The lines with the settings of a dump; what looks like one further down is data."""

_NEW_SETTING = "SET transaction_timeout = 0;"
"""What pg_restore writes since 17, whatever the server, and servers before 17 do not know."""

_OF_PSQL = re.compile(r"^psql:<stdin>:\d+: (?:ERROR|FATAL|PANIC|error): *(?P<said>.+)$", re.MULTILINE)
_STATEMENT = re.compile(r"^(?:psql:<stdin>:\d+: )?STATEMENT: *(?P<said>.+)$", re.MULTILINE)
_OF_RESTORE = re.compile(r"^pg_restore: (?:error|fatal): *(?P<said>.+)$", re.MULTILINE)
_NEWER = re.compile(r"unsupported version \([0-9.]+\) in file header")

LONGEST_STATEMENT = 120
"""The most characters of a statement that an error quotes."""


def variables(address: Address) -> dict[str, str]:
    """Return the variables by which programs with libpq find the server of an address."""
    return {
        "PGHOST": str(address.socket.parent),
        "PGPORT": str(postgres_port(address.socket)),
        "PGUSER": address.user,
        "PGDATABASE": address.database,
        **address.password_variables,
    }


def restore(client: Build, address: Address, folder: Path, name: str) -> None:
    """Have pg_restore of a build write SQL of the dump `name`, which psql runs up to the first error.

    Connected by itself, pg_restore would fail on older servers, because of a setting that they do not know.
    Raises SetupError with what the server or pg_restore said.
    """
    require_files(client.program("pg_restore"), folder, [name])
    read = [client.program("pg_restore"), *_LEFT_OUT, "--file=-", "--", name]
    without = ["sed", f"{_HEADER}{{/^{_NEW_SETTING}$/d}}"]
    write = [*connection_words(client.program("psql"), address), "--echo-errors", "--file=-"]
    pipeline = " | ".join(shlex.join(map(str, words)) for words in (read, without, write))
    try:
        run(
            ["bash", "-o", "pipefail", "-c", pipeline],
            what=name,
            cwd=folder,
            env={"LC_ALL": "C", **address.password_variables},
            seconds=SETUP_SECONDS,
            account=server_account(),
        )
    except ProcessError as error:
        raise _explained(error, client, folder / name) from error


def _explained(error: ProcessError, client: Build, dump: Path) -> SetupError:
    """Return the error of a dump that was not restored, in a sentence of the server or of pg_restore."""
    name, where = dump.name, str(dump)
    if match := _OF_PSQL.search(error.what):
        statement = _STATEMENT.search(error.what, match.end())
        said = f"{name}: {match['said']}"
        if statement:
            said += f" (in: {_shortened(statement['said'])})"
        return SetupError(said, where=where, hint=advice(match["said"], name))
    match = _OF_RESTORE.search(error.what)
    said = match["said"] if match else error.what
    hint = "check the dump with pg_restore --list"
    if _NEWER.search(said):
        hint = (
            f"it was made by a newer pg_dump than {client.release}: add a version of Postgres that is at"
            " least as new, whose pg_restore then reads it for all; or dump as SQL, with --format=plain"
        )
    return SetupError(f"{name} cannot be read by pg_restore {client.release}: {said}", where=where, hint=hint)


def _shortened(statement: str) -> str:
    return statement if len(statement) <= LONGEST_STATEMENT else f"{statement[: LONGEST_STATEMENT - 1]}…"


PROGRAMS: Mapping[LoadKind, tuple[str, ...]] = {
    LoadKind.ARCHIVE: ("pg_restore", "psql"),
    LoadKind.PROGRAM: ("psql",),
    LoadKind.SQL: ("psql",),
}
"""The programs of a build that each kind needs."""
