"""What the base did in sessions that differ in nothing but the version beside it: it need not do it again.

The same build executes as much for the same work, and holds the same rows after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from build.finished_build import Build
from suites.counting.counted_pass import CountedPass
from suites.counting.fixed_work import Recovered
from suites.keys.step import Step

DONE_BEFORE = "not done anew: an earlier session of the same backfill did the same work"
"""The warning of a run whose counts, bytes of the log, flushes or rows are those of an earlier session."""

Place = tuple[str, str, int]
"""A build by its key, a step by its name, and which pass or round of the step it is."""


@dataclass
class BaseWork:
    """The passes of the base and what it held after fixed work, in the sessions so far."""

    _passes: dict[Place, CountedPass] = field(default_factory=dict)
    _works: dict[Place, tuple[Recovered, Mapping[str, int]]] = field(default_factory=dict)
    """With the transactions of each part of the work."""

    def find_pass(self, build: Build, step: Step, place: int) -> CountedPass | None:
        """Return what an earlier session counted in a pass; None if none did."""
        return self._passes.get((build.key, step.name, place))

    def keep_pass(self, build: Build, step: Step, place: int, counted: CountedPass) -> None:
        """Keep what a session has counted for later ones, whose warnings say so."""
        self._passes[build.key, step.name, place] = replace(counted, notes=[*counted.notes, DONE_BEFORE])

    def find_work(self, build: Build, step: Step, number: int) -> tuple[Recovered, Mapping[str, int]] | None:
        """Return what an earlier session found after the fixed work of a round, and how many transactions
        each of its parts had; None if none did it."""
        return self._works.get((build.key, step.name, number))

    def keep_work(
        self, build: Build, step: Step, number: int, found: Recovered, transactions: Mapping[str, int]
    ) -> None:
        """Keep what a session has found for later ones, but for the seconds, which are of their own time."""
        done = replace(found.done, notes=[*found.done.notes, DONE_BEFORE])
        kept = replace(found, seconds=None, done=done)
        self._works[build.key, step.name, number] = kept, dict(transactions)
