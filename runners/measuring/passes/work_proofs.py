"""Whether versions did the same work: their rows after the same transactions and a crash are compared.

Counted passes run fixed transactions from one client, so that servers of one engine must hold the same rows
afterwards. A version that holds others is only accused when the base holds the same ones after each of its
passes, and when both were loaded with the same rows: a suite may draw random numbers in SQL.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from build.errors import TidemarkError
from runners.measuring.session_versions import MeasuredVersion
from suites.checking.table_digests import Digests, digests
from suites.counting.counted_pass import CountedPass
from suites.server import Server

PROVING_PASSES = 2
"""The passes of a step after which a server crashes: the base has to hold the same rows after each."""

LARGEST_DATA = 1_000_000_000
"""Bytes of loaded data from which on rows are not read again, which would take longer than a round."""


@dataclass
class WorkDone:
    """What the passes of a round show of the work of versions, by their names."""

    refuted: dict[str, str] = field(default_factory=dict)
    """What a contender did not do that the base did, in words."""
    same_rows: dict[str, int] = field(default_factory=dict)
    """The rows that are the same in the base, which is among them, and another version."""


@dataclass
class WorkProofs:
    """What the versions of a session held after the passes of each step."""

    base: str
    """The version that all others are compared with."""
    _held: defaultdict[tuple[str, str], list[Digests]] = field(default_factory=lambda: defaultdict(list))
    """By version and step, in the order of the passes."""
    _loaded: dict[str, Digests] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def compare(
        self, step: str, versions: Sequence[MeasuredVersion], passes: Sequence[CountedPass | TidemarkError]
    ) -> WorkDone:
        """Take in the passes of a round, and compare what versions of the base's engine held after them.

        Raises TidemarkError when a server cannot be started to see what it was loaded with.
        """
        done = {
            version.name: (version, counted.after_crash)
            for version, counted in zip(versions, passes, strict=True)
            if isinstance(counted, CountedPass) and counted.after_crash is not None
        }
        for name, (_, found) in done.items():
            if found.digests is not None:
                self._held[name, step].append(found.digests)
        work = WorkDone()
        if self.base not in done:
            return work
        base, of_base = done.pop(self.base)
        for name, (version, found) in done.items():
            if version.build.version.engine is not base.build.version.engine:
                continue
            if found.seconds is None and of_base.seconds is not None:
                work.refuted[name] = found.problem
            if found.digests is None or of_base.digests is None:
                continue
            apart = found.digests.differs_from(of_base.digests)
            if not apart:
                work.same_rows |= {name: found.digests.rows, self.base: found.digests.rows}
            elif self._is_steady(step) and self._were_loaded_alike(version, base):
                work.refuted[name] = f"after the same transactions as {self.base}, {'; '.join(apart)}"
        return work

    def are_wanted(self, number: int, version: MeasuredVersion) -> bool:
        """Whether the server crashes after a version's pass of round `number`, and its rows are read."""
        return number <= PROVING_PASSES and self._bytes_of(version) <= LARGEST_DATA

    def _bytes_of(self, version: MeasuredVersion) -> int:
        if version.name not in self._bytes:
            files = (path for path in version.server.loaded.rglob("*") if path.is_file())
            self._bytes[version.name] = sum(path.stat().st_size for path in files)
        return self._bytes[version.name]

    def _is_steady(self, step: str) -> bool:
        """Whether the base holds the same rows after each of at least two passes."""
        held = self._held[self.base, step]
        return len(held) >= PROVING_PASSES and not any(rows.differs_from(held[0]) for rows in held)

    def _were_loaded_alike(self, version: MeasuredVersion, base: MeasuredVersion) -> bool:
        return not self._loaded_with(version).differs_from(self._loaded_with(base))

    def _loaded_with(self, version: MeasuredVersion) -> Digests:
        if version.name not in self._loaded:
            self._loaded[version.name] = loaded_rows(version.server)
        return self._loaded[version.name]


def loaded_rows(server: Server) -> Digests:
    """Return what a server was loaded with; it is down before and after. Raises TidemarkError."""
    server.restore(is_timed=False)
    try:
        server.start()
        return digests(server.address)
    finally:
        server.abandon()
