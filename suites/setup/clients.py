"""The client program that runs the files of a suite, by engine, and which build of a session has it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from build.build import Build
from build.engines import EngineRegistry
from build.version import Engine
from suites.innodb import setup_file as of_innodb
from suites.postgres import loaded_data
from suites.postgres import setup_file as of_postgres
from suites.server import Address, SetupError


@dataclass(frozen=True)
class SetupClient:
    """What runs files in the servers of one engine."""

    program: str
    """Its name among the programs of a build."""

    run: Callable[[Path, Address, Path, str], None]
    """Runs a SQL file of a folder in a server with the program at a path. Raises SetupError."""

    variables: Callable[[Address], Mapping[str, str]]
    """Returns the variables that tell a program of a server."""

    with_all_rights: Callable[[Address], AbstractContextManager[Address]]
    """Returns a context with the address at which files are loaded, by an account with all rights; clients
    have theirs to what was loaded afterwards. Raises TidemarkError."""

    restore: Callable[[Build, Address, Path, str], None] | None = None
    """Restores a dump of a folder with the programs of a build; None if no dump is but SQL. Raises
    SetupError."""

    advice: Callable[[str, str], str] = lambda said, name: ""
    """Returns what to do about what a server said of a statement of a file; else nothing."""

    trial: Callable[[Address], AbstractContextManager[Address]] = nullcontext
    """Returns a context with the address at which scripts are tried: of a copy of the loaded data, or of
    these themselves where the engine cannot copy a database."""


SETUP_CLIENTS: EngineRegistry[SetupClient] = EngineRegistry(
    "client for a setup",
    __name__,
    {
        Engine.POSTGRES: SetupClient(
            "psql",
            of_postgres.run_file,
            loaded_data.variables,
            of_postgres.with_all_rights,
            loaded_data.restore,
            of_postgres.advice,
            of_postgres.trial_copy,
        ),
        Engine.MYSQL: SetupClient(
            "mysql", of_innodb.run_file, of_innodb.variables, of_innodb.with_all_rights
        ),
        Engine.MARIADB: SetupClient(
            "mariadb", of_innodb.run_file, of_innodb.variables, of_innodb.with_all_rights
        ),
    },
)


def newest_with_client(builds: Sequence[Build], engine: Engine, name: str) -> Build:
    """Return the newest build of an engine in the session that has the client, for the file `name`.

    Raises SetupError if none has it.
    """
    program = SETUP_CLIENTS[engine].program
    own = [build for build in builds if build.version.engine is engine]
    with_client = [build for build in own if build.program(program).is_file()]
    if not with_client:
        raise SetupError(
            f"no version of the session has bin/{program}, which loads {name}",
            where=", ".join(str(build.prefix) for build in own),
            hint=f"install {program} into the prefix, or add a version that is compiled here",
        )
    return max(with_client, key=lambda build: build.numbers)
