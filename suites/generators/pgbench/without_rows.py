"""Scripts of pgbench tried in tables without rows, before loading takes long.

What a script names and the tables do not have is said within seconds then, and not after the load.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from build.build import Build
from suites.generators.load import LoadError
from suites.generators.pgbench.command import PgbenchCommand
from suites.generators.programs import run_all
from suites.keys.loaded_file import LoadKind, kind_of
from suites.keys.step import Step
from suites.postgres.loaded_data import restore_tables
from suites.postgres.setup_file import trial_copy
from suites.server import Address

LARGE_BYTES = 20_000_000
"""The size of a dump from which on its tables are made twice; a smaller one is loaded as fast."""

LARGE_SCALE = 20
"""The same of the scale factor of pgbench's own tables."""

INITIALIZE_SECONDS = 60.0
"""Time limit for making pgbench's tables without rows."""

_IS_LACKING = re.compile(
    r"syntax error at|(?:relation|column|table|sequence|type|schema|operator|function|procedure) .*"
    r"does not exist"
)
"""What servers say of a statement that no row would change."""


def try_without_rows(
    pgbench: PgbenchCommand,
    client: Build,
    address: Address,
    steps: Sequence[Step],
    trial: Callable[[PgbenchCommand, Address, Step], None],
) -> None:
    """Carry out each script of `steps` once, by `trial`, in a database with all tables and no row.

    Only where loading takes long, and where the tables can be made without rows: those of pgbench, and of a
    dump that pg_restore reads. A suite with a setup, or whose file of data is SQL or a program, has none.
    What may have failed for want of rows is no error. Raises LoadError, and SetupError for the dump.
    """
    suite = pgbench.suite
    dump = None if suite.load is None else suite.folder / suite.load
    if not steps or suite.setup is not None or (dump is not None and kind_of(dump) is not LoadKind.ARCHIVE):
        return
    is_large = pgbench.has_own_tables and pgbench.scale >= LARGE_SCALE
    if not is_large and (dump is None or _size(dump) < LARGE_BYTES):
        return
    with trial_copy(address) as empty:
        if pgbench.has_own_tables:
            words = suite.initialize.words if suite.initialize else ()
            make = ["--initialize", "--init-steps=dtp", "--quiet", *words]
            argv = [*pgbench.connected_to(empty), *make]
            password = empty.password_variables
            run_all([argv], 1, INITIALIZE_SECONDS, password, suite.folder, pgbench.account)
        if suite.load is not None:
            restore_tables(client, empty, suite.folder, suite.load)
        for step in steps:
            for script in step.scripts:
                with _forgiving_want_of_rows():
                    trial(pgbench, empty, step.model_copy(update={"scripts": (script,)}))


@contextlib.contextmanager
def _forgiving_want_of_rows() -> Iterator[None]:
    """Let only errors pass that no row would change."""
    try:
        yield
    except LoadError as error:
        if _IS_LACKING.search(error.what):
            raise


def _size(dump: Path) -> int:
    files = [dump] if dump.is_file() else [file for file in dump.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
