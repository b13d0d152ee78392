"""The client program that runs the SQL file of a suite, by engine, and which build of a session has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.build import Build
from build.engines import EngineRegistry
from build.version import Engine
from suites.innodb import setup_file as of_innodb
from suites.postgres import setup_file as of_postgres
from suites.server import Address, SetupError


@dataclass(frozen=True)
class SetupClient:
    """What runs a SQL file in the servers of one engine."""

    program: str
    """Its name among the programs of a build."""

    run: Callable[[Path, Address, Path, str], None]
    """Runs a file of a folder in a server with the program at a path. Raises SetupError."""


SETUP_CLIENTS: EngineRegistry[SetupClient] = EngineRegistry(
    "client for a setup",
    __name__,
    {
        Engine.POSTGRES: SetupClient("psql", of_postgres.run_file),
        Engine.MYSQL: SetupClient("mysql", of_innodb.run_file),
        Engine.MARIADB: SetupClient("mariadb", of_innodb.run_file),
    },
)


def run_setup(builds: Sequence[Build], address: Address, folder: Path, name: str) -> None:
    """Run the SQL file `name` in `folder` with the newest client of the server's engine in the session.

    Raises SetupError with file, line and the server's sentence, and when no build has a client.
    """
    client = SETUP_CLIENTS[address.engine]
    own = [build for build in builds if build.version.engine is address.engine]
    with_client = [build for build in own if build.program(client.program).is_file()]
    if not with_client:
        raise SetupError(
            f"no version of the session has bin/{client.program}, which runs {name}",
            where=", ".join(str(build.prefix) for build in own),
            hint=f"install {client.program} into the prefix, or add a version that is compiled here",
        )
    newest = max(with_client, key=lambda build: build.numbers)
    client.run(newest.program(client.program), address, folder, name)
