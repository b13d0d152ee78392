"""Whether versions did the same work: their rows after the same transactions and a crash are compared.

One client runs fixed transactions, so that servers of one engine must hold the same rows afterwards. A
version that holds others is only accused when the base holds the same ones after doing it again, and when
both were loaded with the same rows: a workload may draw random numbers in SQL. A version whose server or
load fails where the base's does not has failed in the step, as in a round.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from runners.measuring.request import Exact, Request
from runners.measuring.session_versions import MeasuredVersion
from suites.checking.table_digests import Digests, digests
from suites.counting.fixed_work import Recovered, proof_values, work_and_crash
from suites.generators.load import Generator
from suites.generators.registry import GENERATORS
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.server import Server, ServerError
from suites.sizing import Sizes, fit_together, max_transactions, this_machine

LARGEST_DATA = 1_000_000_000
"""Bytes of loaded data from which on rows are not read again, which would take longer than a round."""


@dataclass
class WorkDone:
    """What versions held after the same transactions and a crash, by their names."""

    refuted: dict[str, str] = field(default_factory=dict)
    """What a contender did not do that the base did, in words."""
    recovered: dict[str, Recovered] = field(default_factory=dict)
    """What each version held."""
    same: set[str] = field(default_factory=set)
    """The versions with the same rows: the base, which is among them, and others."""


@dataclass
class WorkProofs:
    """Compares what the versions of a session hold after the same work, once for each step."""

    request: Request
    base: str
    """The version that all others are compared with."""
    sizes: Sizes
    generator: Generator
    refuted: dict[tuple[str, str], str] = field(default_factory=dict)
    """By version and step: what it did not do that the base did."""

    _transactions: dict[str, int] = field(default_factory=dict)
    """By step, as the first version that asked could afford."""
    _loaded: dict[str, Digests] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def add_to(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
    ) -> list[Measurement]:
        """Return the measurements of a round with what was found; a version that is refuted has no values.

        Only the first round of a step has a comparison, which ends servers that are still up.
        """
        if number > 1 or step.reads_only or not self._are_comparable(versions):
            return list(measurements)
        try:
            work = self._compare(step, versions)
        except TidemarkError as error:
            note = f"not known whether all versions do the same work: {error}"
            return [
                replace(measurement, warnings=[*measurement.warnings, note]) for measurement in measurements
            ]
        self.refuted |= {(name, step.name): reason for name, reason in work.refuted.items()}
        return [
            _with(work, version.name, measurement)
            for version, measurement in zip(versions, measurements, strict=True)
        ]

    def _are_comparable(self, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether one client can do fixed work on fresh, small data of several versions.

        A bisect leaves it out, as it compares builds of almost the same source, and so do companions and
        layouts, which are of no concern to rows.
        """
        request = self.request
        is_plain = not (request.has_companions or request.layouts or request.bisect)
        is_plain = is_plain and request.exact is not Exact.DRIVEN and request.profile.mode is Mode.ROUNDS
        can_count = GENERATORS[request.suite.generator].counts
        return is_plain and can_count and len(versions) > 1 and all(map(self._is_small, versions))

    def _compare(self, step: Step, versions: Sequence[MeasuredVersion]) -> WorkDone:
        """Let versions do the same work, and compare those of the base's engine with it.

        Raises TidemarkError if it is not known, as the base did not do it.
        """
        found = dict(zip((version.name for version in versions), self._found(step, versions), strict=True))
        work = WorkDone(recovered=found)
        base = next((version for version in versions if version.name == self.base), None)
        if base is None:
            return work
        held = found[self.base].digests
        if held is None:
            raise ServerError(f"{self.base}: {found[self.base].problem}")
        for version in versions:
            rows = found[version.name].digests
            if rows is None:
                work.refuted[version.name] = found[version.name].problem
            elif version is base or version.build.version.engine is not base.build.version.engine:
                continue
            elif not (apart := rows.differs_from(held)):
                work.same |= {version.name, self.base}
            elif self._is_steady(step, base, held) and self._were_loaded_alike(version, base):
                work.refuted[version.name] = f"after the same transactions as {self.base}, {'; '.join(apart)}"
        return work

    def _found(self, step: Step, versions: Sequence[MeasuredVersion]) -> list[Recovered]:
        """Let versions work, as many at once as there are cores and memory: nothing is timed."""
        machine = this_machine()
        at_once = min(machine.cores, len(versions))
        with ThreadPoolExecutor(at_once if fit_together(at_once, self.sizes, machine) else 1) as pool:
            try:
                return list(pool.map(lambda version: self._after_work(step, version), versions))
            except BaseException:
                # A thread ends only when its load generator does, and that ends when its server is gone.
                for version in versions:
                    version.server.abandon()
                raise

    def _after_work(self, step: Step, version: MeasuredVersion) -> Recovered:
        most = max_transactions(step, self.sizes)

        def agree(affordable: int) -> int:
            # The first one to ask decides for all: setdefault is atomic.
            return self._transactions.setdefault(step.name, affordable)

        return work_and_crash(version.server, self.generator, step, most, agree)

    def _is_steady(self, step: Step, base: MeasuredVersion, held: Digests) -> bool:
        """Whether the base holds the same rows when it does the work again."""
        again = self._after_work(step, base).digests
        return again is not None and not again.differs_from(held)

    def _were_loaded_alike(self, version: MeasuredVersion, base: MeasuredVersion) -> bool:
        return not self._loaded_with(version).differs_from(self._loaded_with(base))

    def _loaded_with(self, version: MeasuredVersion) -> Digests:
        if version.name not in self._loaded:
            self._loaded[version.name] = loaded_rows(version.server)
        return self._loaded[version.name]

    def _is_small(self, version: MeasuredVersion) -> bool:
        """Whether the rows of all tables can be read within seconds."""
        if version.name not in self._bytes:
            files = (path for path in version.server.loaded.rglob("*") if path.is_file())
            self._bytes[version.name] = sum(path.stat().st_size for path in files)
        return self._bytes[version.name] <= LARGEST_DATA


def loaded_rows(server: Server) -> Digests:
    """Return what a server was loaded with; it is down before and after. Raises TidemarkError."""
    server.restore(is_timed=False)
    try:
        server.start()
        return digests(server.address)
    finally:
        server.abandon()


def _with(work: WorkDone, name: str, measurement: Measurement) -> Measurement:
    if name in work.refuted:
        return Measurement({}, (), [work.refuted[name]])
    found = proof_values(work.recovered[name], are_same=name in work.same)
    return replace(measurement, values={**measurement.values, **found})
