"""Which program puts a suite's load on its servers, and what that program needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from build.build import Build
from suites.definition import Suite
from suites.generator_rules import GeneratorName
from suites.generators.load import Generator, LoadError
from suites.generators.pgbench import Pgbench, newest_postgres
from suites.generators.sysbench import Sysbench
from suites.sizing import Sizes


@dataclass(frozen=True)
class Entry:
    """How one load generator is made."""

    make: Callable[[Suite, Sizes, Sequence[Build]], Generator]
    """Makes the generator for a suite, sizes and the builds of a session. Raises TidemarkError."""
    system_programs: tuple[str, ...] = ()
    """Programs that have to be installed before a session begins."""


def _sysbench(suite: Suite, sizes: Sizes, builds: Sequence[Build]) -> Generator:
    return Sysbench(suite, sizes)


def _pgbench(suite: Suite, sizes: Sizes, builds: Sequence[Build]) -> Generator:
    """Take the newest pgbench of the session for all servers, so that the client is constant."""
    newest = newest_postgres(builds)
    if newest is None:
        raise LoadError(
            "pgbench comes with Postgres, and no version of this session is one",
            where=str(suite.folder / "suite.toml"),
            hint="measure a version of Postgres too, or take a suite for sysbench",
        )
    return Pgbench(suite, sizes, newest)


GENERATORS: Mapping[GeneratorName, Entry] = {
    GeneratorName.SYSBENCH: Entry(_sysbench, system_programs=("sysbench",)),
    GeneratorName.PGBENCH: Entry(_pgbench),
}
"""One entry for every load generator; suites/generator_rules.py has its rules for a suite.toml."""


def make_generator(suite: Suite, sizes: Sizes, builds: Sequence[Build]) -> Generator:
    """Return the load generator of `suite` for a session with `builds`. Raises TidemarkError."""
    return GENERATORS[suite.generator].make(suite, sizes, builds)
