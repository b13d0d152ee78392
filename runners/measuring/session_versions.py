"""The versions of a session: each has a server, data loaded once, and steps that it cannot run."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from build.errors import TidemarkError
from build.finished_build import Build
from build.installs import PrefixError, require_unchanged
from history.stats.layouts import layout_of
from suites.additions.database_objects import create_extensions, create_indexes
from suites.checking.data_checks import DataChecks
from suites.checking.queries import data_extent, explain
from suites.engine import DataExtent
from suites.generators.load import Generator
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.server import Server
from suites.turns.failures import loading_failure

Serve = Callable[[Build, Path], Server]
"""Returns a server for a build whose data will lie in a folder; nothing is created yet."""


@dataclass
class MeasuredVersion:
    """One version in a session."""

    build: Build
    server: Server
    layouts: Sequence[Build] = ()
    """The layouts of its build, which rounds take in turns; none where all rounds run the build itself."""

    settings: Mapping[str, str] | None = None
    """Its whole effective configuration; None before the server was first up."""

    plans: dict[str, str] = field(default_factory=dict)
    """The plans of its statements by step; empty unless the suite stores them."""

    extent: DataExtent | None = None
    """How large its loaded data are; None if that is not known."""

    excluded_steps: dict[str, str] = field(default_factory=dict)
    """The steps that it cannot run, with the reason."""

    failures: Counter[str] = field(default_factory=Counter)
    """The number of failures by step."""

    committed: Counter[str] = field(default_factory=Counter)
    """The transactions by kind that clients saw committed since the data were loaded, or restored."""

    broken: str | None = None
    """Why it can run no step at all; None when it can."""

    load_error: TidemarkError | None = None
    """What went wrong while it was loaded."""

    started_in: int | None = None
    """The round in which its server last started from the loaded data."""

    @property
    def name(self) -> str:
        """The version as it was asked for."""
        return str(self.build.version)

    def exclusion_reason(self, step: str) -> str | None:
        """Return why it cannot run a step; None when it can."""
        return self.broken or self.excluded_steps.get(step)

    def start_from_loaded_data(self, number: int, *, stays: bool = False) -> Mapping[str, float]:
        """Start the server from the loaded data for a step of round `number`; return what it took as metrics.

        With `stays`, for a step that only reads, a server that such a step of the round has left up goes on,
        and nothing is returned. With each round it starts anew: equal builds differ from one start to the
        next, which only further starts average out. Raises PrefixError for an install prefix that has
        changed, which is `broken` then.
        """
        if stays and self.started_in == number and self.server.death() is None:
            return {}
        self.started_in = None
        try:
            require_unchanged(self.build)
        except PrefixError as error:
            self.broken = str(error)
            raise
        self.server.restore()
        self.committed.clear()
        if self.layouts:
            self.server.use(self.layouts[layout_of(number, len(self.layouts)) - 1])
        took = self.server.start()
        self.started_in = number
        return took

    def load(
        self,
        generator: Generator,
        explained: Sequence[Step] = (),
        indexes: Sequence[str] = (),
        checks: DataChecks | None = None,
        kept: Path | None = None,
    ) -> None:
        """Create the data directory, load it, bring it to rest, and check it. The server stays up.

        `kept` are data that were loaded before, of which a copy is taken instead. The loaded tables get the
        `indexes` of a variant. The plans of the steps `explained` are stored in
        `plans`, levels of a step once. A failure is stored in `broken`, and so is what a check found.
        """
        try:
            self.server.create(kept)
            self.server.start()
            if kept is None:
                create_extensions(self.server.address, self.build.extensions)
                generator.load(self.server.address)
                create_indexes(self.server.address, indexes)
                self.server.reset()
            if checks is not None:
                checks.require(self.server.address, CheckOccasion.LOADED)
            self.settings = self.server.settings()
            self.extent = _extent(self.server)
            for step in explained:
                if step.plain_name not in self.plans:
                    statements = generator.statements(self.server.address, step)
                    if statements:
                        self.plans[step.plain_name] = explain(self.server.address, statements)
        except TidemarkError as error:
            self.broken, self.load_error = loading_failure(self.server, error), error
            self.server.abandon()


def _extent(server: Server) -> DataExtent | None:
    """Return how large the data of a server are; None if it does not tell, on which nothing else depends."""
    with contextlib.suppress(TidemarkError):
        return data_extent(server.address)
    return None
