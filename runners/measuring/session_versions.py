"""The versions of a session: each with a server, loaded once, and what it can no longer do."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from suites.generators.load import Generator
from suites.server import Server

Serve = Callable[[Build, Path], Server]
"""Names a server of a build that will live in a folder."""


@dataclass
class MeasuredVersion:
    """One version in a session."""

    build: Build
    server: Server
    settings: Mapping[str, str] | None = None
    """Its whole effective configuration, once it was up."""
    out: dict[str, str] = field(default_factory=dict)
    """Steps that it cannot run, and why."""
    failures: Counter[str] = field(default_factory=Counter)
    """How often it has failed a step."""
    broken: str | None = None
    """Why it can run no step at all."""

    @property
    def name(self) -> str:
        """As it was asked for."""
        return str(self.build.version)

    def why_not(self, step: str) -> str | None:
        """Why it cannot run a step; None when it can."""
        return self.broken or self.out.get(step)

    def load(self, generator: Generator) -> None:
        """Make the data directory, load it, bring it to rest. The server stays up.

        A failure is kept in `broken`.
        """
        try:
            self.server.create()
            self.server.start()
            generator.load(self.server.address)
            self.server.reset()
            self.settings = self.server.settings()
        except TidemarkError as error:
            self.broken = str(error)
            self.server.abandon()
