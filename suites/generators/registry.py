"""The registry of load generators: how they are created, and the programs that they need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from build.errors import TidemarkError
from build.finished_build import Build
from suites.accounting.proc import require_readable
from suites.definition import GeneratorName, Suite
from suites.generators.connections import Connections
from suites.generators.load import Generator, LoadError
from suites.generators.pgbench.client import Pgbench, newest_postgres
from suites.generators.queries.conductor import DATA_PROGRAM, QueryConductor
from suites.generators.separate_runs.plain_sysbench import PlainSysbench
from suites.generators.separate_runs.script_options import require_script
from suites.generators.sysbench import Sysbench
from suites.keys.loaded_file import kind_of
from suites.postgres.setup_file import PROGRAMS
from suites.processes import tool
from suites.sizing import Sizes


@dataclass(frozen=True)
class Entry:
    """How one load generator is created."""

    make: Callable[[Suite, Sizes, Sequence[Build], bool], Generator]
    """Creates the generator for a suite, sizes and the builds of a session, and whether it may prepare
    statements. Raises TidemarkError."""
    system_programs: tuple[str, ...] = ()
    """Programs that must be installed before a session starts."""
    build_programs: tuple[str, ...] = ()
    """Programs of the builds of a session that it runs."""
    counts: bool = False
    """Whether it can carry out the work of a counted pass."""
    check: Callable[[Suite], None] = lambda suite: None
    """Asks the machine and the system programs whether they can run a suite, before anything is built. May
    raise TidemarkError."""


def _connections(suite: Suite, sizes: Sizes, builds: Sequence[Build], prepares: bool) -> Generator:
    if not prepares:
        raise TidemarkError(
            "connections that a pooler shares are not the server's",
            where=suite.name,
            hint="measure the suite without the companion pgbouncer",
        )
    return Connections(suite, sizes)


def _pgbench(suite: Suite, sizes: Sizes, builds: Sequence[Build], prepares: bool) -> Generator:
    """Return the newest pgbench of the session, used for all servers so that the client is constant.

    An install prefix may have none.
    """
    needed = build_programs_of(suite)
    newest = newest_postgres([build for build in builds if not _lacking(build, needed)])
    if newest is None and any(_lacking(build, needed) for build in builds):
        lacking = dict.fromkeys(name for build in builds for name in _lacking(build, needed))
        raise LoadError(
            f"no version of the session has bin/{' and bin/'.join(lacking)}",
            where=", ".join(str(build.prefix) for build in builds),
            hint="install what is missing into the prefix, or add a version that is compiled here",
        )
    if newest is None:
        raise LoadError(
            "pgbench is part of Postgres, but the session has no version of Postgres",
            where=str(suite.folder / "suite.toml"),
            hint="add a version of Postgres, or use a suite for sysbench",
        )
    return Pgbench(suite, sizes, newest, prepares=prepares)


def _lacking(build: Build, programs: Sequence[str]) -> list[str]:
    """Return the programs that an install prefix does not have; builds of Tidemark have all."""
    return [name for name in programs if build.version.is_install and not build.program(name).is_file()]


def _loading_programs(suite: Suite) -> tuple[str, ...]:
    """Return the programs of Postgres that the files of a suite need; builds of other engines have theirs."""
    loads = PROGRAMS[kind_of(suite.folder / suite.load)] if suite.load is not None else ()
    return tuple(dict.fromkeys((*loads, *(("psql",) if suite.setup is not None else ()))))


def _require_data_program(suite: Suite) -> None:
    """Raise ProcessError if what makes the data of TPC-H is missing."""
    if suite.scale is not None:
        tool(DATA_PROGRAM)


GENERATORS: Mapping[GeneratorName, Entry] = {
    GeneratorName.SYSBENCH: Entry(
        lambda suite, sizes, builds, prepares: Sysbench(suite, sizes, prepares=prepares),
        system_programs=("sysbench",),
        counts=True,
    ),
    GeneratorName.PGBENCH: Entry(_pgbench, build_programs=("pgbench",), counts=True),
    GeneratorName.CONNECTIONS: Entry(
        _connections, system_programs=("sysbench",), check=lambda suite: require_readable()
    ),
    GeneratorName.QUERIES: Entry(
        lambda suite, sizes, builds, prepares: QueryConductor(suite, sizes, builds),
        check=_require_data_program,
    ),
    GeneratorName.PLAIN_SYSBENCH: Entry(
        lambda suite, sizes, builds, prepares: PlainSysbench(suite, sizes, builds, prepares=prepares),
        system_programs=("sysbench",),
        counts=True,
        check=require_script,
    ),
}
"""One entry for every load generator; the model of its suites is in suites/definition.py."""


def build_programs_of(suite: Suite) -> tuple[str, ...]:
    """Return the programs of the builds of a session that measuring `suite` needs, besides the server's."""
    return (*GENERATORS[suite.generator].build_programs, *_loading_programs(suite))


def require_runnable(suite: Suite) -> None:
    """Raise TidemarkError if a system program is missing, or says that it cannot run the suite."""
    entry = GENERATORS[suite.generator]
    for program in entry.system_programs:
        tool(program)
    entry.check(suite)


def make_generator(
    suite: Suite, sizes: Sizes, builds: Sequence[Build], *, prepares: bool = True
) -> Generator:
    """Return the load generator of `suite` for a session with `builds`. Raises TidemarkError.

    Unless it `prepares` statements, it sends every one as text.
    """
    return GENERATORS[suite.generator].make(suite, sizes, builds, prepares)
