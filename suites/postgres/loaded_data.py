"""Filling a Postgres database from a suite's file: a dump, a program, or SQL."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from build.build import Build
from suites.keys.loaded_file import LoadKind, kind_of
from suites.postgres.setup_file import advice, connection_words, run_file
from suites.processes import ProcessError, run
from suites.server import SETUP_SECONDS, Address, SetupError, postgres_port

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


def load_file(client: Build, address: Address, folder: Path, name: str) -> None:
    """Fill the database from the file or folder `name` in `folder`, with the programs of the build `client`.

    Raises SetupError with what the server, pg_restore or the program said.
    """
    _LOADERS[kind_of(folder / name)](client, address, folder, name)


def _run_sql(client: Build, address: Address, folder: Path, name: str) -> None:
    run_file(client.program("psql"), address, folder, name)


def _run_program(client: Build, address: Address, folder: Path, name: str) -> None:
    """Run a program in `folder`, which finds the server by libpq's variables, and psql in its path."""
    path = f"{client.program('psql').parent}:{os.environ.get('PATH', '')}"
    where = {
        "PGHOST": str(address.socket.parent),
        "PGPORT": str(postgres_port(address.socket)),
        "PGUSER": address.user,
        "PGDATABASE": address.database,
        **({"PGPASSWORD": address.password} if address.password else {}),
    }
    variables = f"the program has {', '.join(where)} and PATH of the caller's variables, and no others"
    try:
        run([folder / name], what=name, cwd=folder, env={**where, "PATH": path}, seconds=SETUP_SECONDS)
    except ProcessError as error:
        raise SetupError(
            error.what,
            where=str(folder / name),
            hint=advice(error.what, name) or variables,
        ) from error
    except OSError as error:
        raise SetupError(
            f"{name} cannot be started: {error.strerror}",
            where=str(folder / name),
            hint="its first line names the interpreter, which must be installed",
        ) from error


def _restore(client: Build, address: Address, folder: Path, name: str) -> None:
    """Have pg_restore write SQL, which psql runs up to the first error.

    Connected by itself, pg_restore would fail on older servers, because of a setting that they do not know.
    """
    read = [client.program("pg_restore"), *_LEFT_OUT, "--file=-", folder / name]
    without = ["sed", f"{_HEADER}{{/^{_NEW_SETTING}$/d}}"]
    write = [*connection_words(client.program("psql"), address), "--echo-errors", "--file=-"]
    pipeline = " | ".join(shlex.join(map(str, words)) for words in (read, without, write))
    try:
        run(
            ["bash", "-o", "pipefail", "-c", pipeline],
            what=name,
            env={"LC_ALL": "C"},
            seconds=SETUP_SECONDS,
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


_LOADERS: Mapping[LoadKind, Callable[[Build, Address, Path, str], None]] = {
    LoadKind.ARCHIVE: _restore,
    LoadKind.PROGRAM: _run_program,
    LoadKind.SQL: _run_sql,
}

PROGRAMS: Mapping[LoadKind, tuple[str, ...]] = {
    LoadKind.ARCHIVE: ("pg_restore", "psql"),
    LoadKind.PROGRAM: ("psql",),
    LoadKind.SQL: ("psql",),
}
"""The programs of a build that each kind needs."""
