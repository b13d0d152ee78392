"""Filling a Postgres database from a dump of a suite, and what programs are told of a server."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from build.accounts import server_account
from build.finished_build import Build
from suites.keys.loaded_file import LoadKind
from suites.postgres.setup_file import advice, connection_words
from suites.processes import ProcessError, require_files, run
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
