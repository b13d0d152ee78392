"""Filling a database from the files of a suite: a dump, a program or SQL, and then the SQL of its setup."""

import os
from collections.abc import Sequence
from pathlib import Path

from build.finished_build import Build
from build.version import Engine
from suites.definition import Suite
from suites.engines import engine_of
from suites.keys.loaded_file import LoadKind, kind_of
from suites.processes import ProcessError, run
from suites.server import SETUP_SECONDS, Address, SetupError


def load_files(builds: Sequence[Build], address: Address, suite: Suite) -> None:
    """Load the suite's file of data, then run its SQL file, with the newest client of the server's engine.

    Either may be missing. Raises SetupError with what the server or a program said, and when none of the
    `builds` has a client.
    """
    client = engine_of(address.engine).setup
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
    client, name = engine_of(address.engine).setup, program.name
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


def newest_with_client(builds: Sequence[Build], engine: Engine, name: str) -> Build:
    """Return the newest build of an engine in the session that has the client, for the file `name`.

    Raises SetupError if none has it.
    """
    program = engine_of(engine).setup.program
    own = [build for build in builds if build.version.engine is engine]
    with_client = [build for build in own if build.program(program).is_file()]
    if not with_client:
        raise SetupError(
            f"no version of the session has bin/{program}, which loads {name}",
            where=", ".join(str(build.prefix) for build in own),
            hint=f"install {program} into the prefix, or add a version that is compiled here",
        )
    return max(with_client, key=lambda build: build.numbers)
