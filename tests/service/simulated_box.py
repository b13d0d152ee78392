"""A box of the simulated year: the commands that its units would call, in this process, with its home."""

import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from build.errors import TidemarkError
from build.home import Home
from history.store.schema_status import MIGRATIONS
from runners.cli import parser
from runners.commands import nightly
from tests.service import versions
from tests.service.clock import SimulatedClock
from tests.service.measuring import MadeUpSessions

DISK_BYTES = 100 * 10**9
FREE_BYTES, FULL_BYTES = 50 * 10**9, 300 * 10**6
"""Free bytes of a disk with room, and of a full one."""


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` says."""

    total: int
    used: int
    free: int


class SimulatedBox:
    """A box with a home, on which nights run."""

    def __init__(self, name: str, folder: Path, plan: Path, clock: SimulatedClock) -> None:
        self.name, self.home, self._plan, self._clock = name, Home(folder), plan, clock
        self.migrations = MIGRATIONS
        """Those of the version of Tidemark that is installed on it."""

        self.is_full = False
        self.said = ""
        """What its last command printed."""

        folder.mkdir()

    @property
    def disk(self) -> DiskUsage:
        """What its disk has."""
        free = FULL_BYTES if self.is_full else FREE_BYTES
        return DiskUsage(DISK_BYTES, DISK_BYTES - free, free)

    def night(self, sessions: MadeUpSessions) -> int:
        """Carry out a night, and return its exit code; 2 for an error that ended it."""
        asked = parser().parse_args(["nightly", "--plan", str(self._plan), "--box", self.name])
        sessions.box = self.name
        return self._call(lambda: nightly.main(asked))

    def killed_night(self, sessions: MadeUpSessions) -> None:
        """Begin a night in a process that is killed in its first session."""
        child = os.fork()
        if child == 0:
            try:
                sessions.before = lambda: os._exit(9)
                self.night(sessions)
            finally:
                os._exit(1)
        os.waitpid(child, 0)

    def _call(self, command: Callable[[], int]) -> int:
        os.environ["TIDEMARK_HOME"] = str(self.home.path)
        os.environ["TIDEMARK_LOCK"] = str(self.home.path / "machine.lock")
        versions.use(self.migrations)
        printed = StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                return command()
        except TidemarkError as error:
            printed.write(f"tidemark: {error}\n")
            return 2
        finally:
            self.said = printed.getvalue()
            versions.use()
