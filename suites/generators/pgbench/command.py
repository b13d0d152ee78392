"""The words of pgbench's command lines, for the steps of one suite."""

import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from build.programs.accounts import server_account
from suites.definition import Suite
from suites.keys.profile import SizedBy
from suites.keys.step import Step
from suites.postgres.client_options import client_database, client_options
from suites.server import Address
from suites.sizing import Sizes

ROWS_PER_SCALE = 100_000
"""Rows of pgbench_accounts per unit of --scale, by which suites without a scale are sized."""


@dataclass(frozen=True)
class PgbenchCommand:
    """The pgbench of one build, and what its command lines depend on."""

    suite: Suite
    sizes: Sizes
    program: Path
    prepares: bool = True
    """Whether a client may prepare statements."""

    can_retry: bool = True
    """Whether it is pgbench 15 or newer, which can try a transaction again after a serialisation failure."""

    @property
    def scale(self) -> int:
        """The scale factor of pgbench's own tables."""
        data = self.sizes.data
        return data.scale or max(1, data.rows // ROWS_PER_SCALE)

    @property
    def has_own_tables(self) -> bool:
        """Whether pgbench's own tables are loaded."""
        return self.suite.sized_by is not SizedBy.FILES

    def connected_to(self, address: Address) -> list[str]:
        """Return the program and the options with which it finds a server; it gets the password otherwise."""
        return [str(self.program), *client_options(address), client_database(address)]

    @property
    def account(self) -> pwd.struct_passwd | None:
        """The user that pgbench runs as, since the commit that is measured brings it; None for this one."""
        return server_account()

    def protocol(self, step: Step, address: Address) -> str:
        """Return how the statements of a step are sent to a server, as its layer says if it has one.

        Through a pooler it is as one that cannot prepare does.
        """
        protocol = address.protocol or str(step.options.get("protocol", "prepared"))
        return f"--protocol={protocol if self.prepares else 'simple'}"

    def scripts(self, step: Step) -> Sequence[str]:
        """Return the options for the scripts of a step, and for their variables.

        It must start in the folder of the suite: its user may have no access to the folders around it.
        """
        if not step.scripts:
            return [f"--builtin={step.options['builtin']}"]
        files = [f"--file={script}" for script in step.scripts]
        return [*self.variables(step), *files]

    def variables(self, step: Step) -> Sequence[str]:
        """Return the options for the variables of the scripts of a step."""
        scale = [f"--scale={self.scale}"] if self.has_own_tables else []
        return [*scale, *(f"--define={name}={value}" for name, value in step.variables.items())]
