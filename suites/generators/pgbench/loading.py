"""Loading the data of a suite for pgbench, and trying its scripts before anything is measured."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from build.build import Build
from suites.generators.complaints import complaint
from suites.generators.load import LoadError
from suites.generators.pgbench.command import PgbenchCommand
from suites.generators.programs import TRIAL_SECONDS, run_all
from suites.keys.pgbench_scripts import located, weighted_script
from suites.keys.step import Step
from suites.postgres.setup_file import trial_copy
from suites.processes import ProcessError, require_files, run
from suites.server import Address
from suites.setup.loading import load_files

_UNREACHABLE = "connection to server"
"""What pgbench says of a server that it cannot reach, which it tries when it has read its scripts."""


def load(pgbench: PgbenchCommand, client: Build, address: Address) -> None:
    """Load pgbench's tables with `pgbench --initialize`, then the suite's file of data, then its SQL file.

    Before that pgbench reads all scripts, and after it, it carries out each once. Raises LoadError, and
    SetupError for the files.
    """
    suite = pgbench.suite
    steps = [step for step in suite.steps if step.scripts]
    for step in steps:
        _require_readable(pgbench, step)
    if pgbench.has_own_tables:
        argv = [
            *pgbench.connected_to(address),
            *("--initialize", f"--scale={pgbench.scale}", "--quiet"),
            *(suite.initialize.words if suite.initialize else ()),
        ]
        seconds = 60.0 + 60 * pgbench.scale
        run_all([argv], 1, seconds, address.password_variables, suite.folder, pgbench.account)
    load_files([client], address, suite)
    if steps:
        with trial_copy(address) as copy:
            for step in steps:
                _try_scripts(pgbench, copy, step)


def _require_readable(pgbench: PgbenchCommand, step: Step) -> None:
    """Raise LoadError, with file and line, if pgbench cannot parse the scripts of a step.

    It reads them before it connects, here to a server that does not exist. Raises AccountError for one that
    its user may not read.
    """
    folder = pgbench.suite.folder
    require_files(pgbench.program, folder, [weighted_script(script).name for script in step.scripts])
    nowhere = [str(pgbench.program), "--host=/nonexistent", "--transactions=1", "--no-vacuum"]
    try:
        asked = [*nowhere, *pgbench.scripts(step)]
        run(asked, what="pgbench", cwd=folder, account=pgbench.account)
    except ProcessError as error:
        if _UNREACHABLE not in error.what:
            said = complaint(error.what.splitlines()) or error.what
            raise LoadError(said, where=f"{folder / 'suite.toml'}") from error


def _try_scripts(pgbench: PgbenchCommand, address: Address, step: Step) -> None:
    """Carry out one transaction of each script of a step. Raises LoadError with file and line."""
    for script in step.scripts:
        alone = step.model_copy(update={"scripts": (weighted_script(script).name,)})
        once = ["--client=1", "--transactions=1", "--no-vacuum", *pgbench.scripts(alone)]
        argv = [*pgbench.connected_to(address), pgbench.protocol(step, address), *once]
        tried = f"it was tried once, in {address.database}, a copy of the database made for that"
        with naming_the_line(pgbench.suite.folder, alone, hint=tried):
            password, folder = address.password_variables, pgbench.suite.folder
            run_all([argv], 1, TRIAL_SECONDS, password, folder, pgbench.account)


@contextlib.contextmanager
def naming_the_line(
    folder: Path, step: Step, copies: Path | None = None, lines_before: int = 0, hint: str = ""
) -> Iterator[None]:
    """Name file and line in a LoadError about a command of a script of the step, in the suite's `folder`.

    pgbench was given `copies` of the scripts in another folder, if any, with so many lines more before them.
    The error has the `hint`.
    """
    try:
        yield
    except LoadError as error:
        for file, at, said in located(error.what, copies or folder, step.scripts):
            line = max(1, at - lines_before)
            raise LoadError(
                f"{file}, line {line}: {said}",
                where=f"{folder / file}:{line}",
                hint=hint,
                place=error.place,
            ) from error
        raise
