"""Filling a database from the files of a suite: a dump, a program or SQL, and then the SQL of its setup."""

import os
from collections.abc import Sequence
from pathlib import Path

from build.build import Build
from suites.definition import Suite
from suites.keys.loaded_file import LoadKind, kind_of
from suites.processes import ProcessError, run
from suites.server import SETUP_SECONDS, Address, SetupError
from suites.setup.clients import SETUP_CLIENTS, newest_with_client


def load_files(builds: Sequence[Build], address: Address, suite: Suite) -> None:
    """Load the suite's file of data, then run its SQL file, with the newest client of the server's engine.

    Either may be missing. Raises SetupError with what the server or a program said, and when none of the
    `builds` has a client.
    """
    client = SETUP_CLIENTS[address.engine]
    for name, kind in _files(suite):
        build = newest_with_client(builds, address.engine, name)
        with client.with_all_rights(address) as loading:
            if kind is LoadKind.SQL:
                client.run(build.program(client.program), loading, suite.folder, name)
            elif kind is LoadKind.PROGRAM:
                _run_program(build.program(client.program).parent, loading, suite.folder / name)
            elif client.restore is not None:
                client.restore(build, loading, suite.folder, name)


def _files(suite: Suite) -> list[tuple[str, LoadKind]]:
    """Return the names of the files, and what they are; a setup is always SQL."""
    load = [] if suite.load is None else [(suite.load, kind_of(suite.folder / suite.load))]
    return [*load, *([] if suite.setup is None else [(suite.setup, LoadKind.SQL)])]


def _run_program(clients: Path, address: Address, program: Path) -> None:
    """Run a program in its folder, which finds the server by variables, and the `clients` in its path."""
    client, name = SETUP_CLIENTS[address.engine], program.name
    where = client.variables(address)
    path = f"{clients}:{os.environ.get('PATH', '')}"
    variables = f"the program has {', '.join(where)} and PATH of the caller's variables, and no others"
    try:
        run([program], what=name, cwd=program.parent, env={**where, "PATH": path}, seconds=SETUP_SECONDS)
    except ProcessError as error:
        raise SetupError(
            error.what, where=str(program), hint=client.advice(error.what, name) or variables
        ) from error
    except OSError as error:
        raise SetupError(
            f"{name} cannot be started: {error.strerror}",
            where=str(program),
            hint="its first line names the interpreter, which must be installed",
        ) from error
