"""Measuring one round: the servers of all versions are driven in turns, and other processes are watched."""

import contextlib
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from runners.measuring.request import Request
from runners.measuring.session_versions import MeasuredVersion
from runners.measuring.variants import definition_of
from suites.accounting.disturbance import DisturbanceLimits, DisturbanceWatch
from suites.additions.companions import accompanied
from suites.checking.data_checks import DataChecks
from suites.data_copies.store import CopyKey, DataCopies
from suites.generators.connections import Connections
from suites.generators.load import Generator, Share
from suites.generators.placement import placement, stretched
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.measurement import Measurement, at_equal_work
from suites.processes import bind
from suites.profiling.profiler import Profiling
from suites.server import Server
from suites.sizing import Sizes, fit_together, max_transactions, this_machine
from suites.slices import Schedule, mirrored
from suites.turns.connects import connect_values
from suites.turns.failures import CensoredError, ServerDiedError
from suites.turns.held_connections import hold_connections
from suites.turns.run import EndsStep, run_slices
from suites.turns.warming import warm_up
from suites.turns.warmth import Warmth

MeasuredRound = tuple[list[Measurement], tuple[str, ...]]
"""The measurement of each version, in the order of the versions, and the reasons why the round is
disturbed."""


@dataclass(frozen=True)
class RoundMeasurement:
    """Loads versions and measures single rounds of them; it neither records nor decides anything."""

    request: Request
    sizes: Sizes
    generator: Generator
    profiling: Profiling | None = None
    copies: DataCopies | None = None
    """The copies of loaded data that outlive the session; None if the profile keeps none."""
    limits: DisturbanceLimits = field(default_factory=DisturbanceLimits)

    @property
    def checks(self) -> DataChecks | None:
        """The checks of the suite; None if it has none."""
        checks = self.request.suite.checks
        rows = self.sizes.data.rows_by_table
        return DataChecks(checks, self.request.profile_name, rows) if checks else None

    def load(self, version: MeasuredVersion) -> None:
        """Load a version, and in rounds mode keep a copy of its data. A failure is stored in its `broken`.

        What is declared for its memory and disk holds from then on.
        """
        explained = self.request.steps if self.request.suite.plans else ()
        keeps = self.copies if self.request.profile.mode is Mode.ROUNDS else None
        kept = None if keeps is None else keeps.find(self._copy_key(version))
        version.load(self.generator, explained, self._indexes(version), self.checks, kept)
        if version.broken is not None:
            return
        try:
            if self.request.profile.mode is not Mode.ROUNDS:
                self._end_loading(version.server)
                return
            version.server.keep()
        except TidemarkError as error:
            version.broken = str(error)
            version.server.abandon()
            return
        if keeps is not None and kept is None:
            keeps.save(self._copy_key(version), version.server.loaded)

    def _end_loading(self, server: Server) -> None:
        """Limit what a loaded server may use; with a declared memory, start it again with nothing in that."""
        is_cold = self.sizes.memory_bytes is not None
        if is_cold:
            server.stop()
        server.end_loading()
        if is_cold:
            server.start()

    def _indexes(self, version: MeasuredVersion) -> tuple[str, ...]:
        return definition_of(version.build.version, self.request.variants).indexes

    def _copy_key(self, version: MeasuredVersion) -> CopyKey:
        """Return the key of the loaded data of a version: whatever they could depend on."""
        request, data = self.request, self.sizes.data
        parts = {
            "build": version.build.key,
            "suite": request.suite.data_digest(request.profile_name),
            "data": repr((dict(data.options), data.rows)),
            "generator": self.generator.version(),
            "settings": repr(sorted(request.settings_of(version.build.version).items())),
            "sizes": repr((self.sizes.buffer_bytes, self.sizes.wal_limit_bytes)),
            "indexes": repr(self._indexes(version)),
            "durability": str(request.durability),
            "clients": "own the data",  # in older copies their account has all rights
        }
        initdb = request.initdb_of(version.build.version)
        if initdb:
            parts["initdb"] = repr(sorted(initdb.items()))
        return CopyKey(version.name, request.suite.name, request.profile_name, parts)

    def from_loaded_data(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> MeasuredRound:
        """Measure one round in which every server starts from the loaded data.

        After a step that only reads, a server stays up for the next such step. Servers that do not fit into
        memory together are measured one after the other, in random order.
        Raises ServerDiedError, whose `place` is the index in `versions`, or None when no version is known
        to be at fault, and CensoredError with such places.
        """
        places = list(range(len(versions)))
        seed = (self.request.suite.seed, step.name, number)
        groups = [places]
        if not fit_together(len(versions), self.sizes, this_machine()):
            groups = [[place] for place in random.Random(repr(seed)).sample(places, len(places))]
        # Servers that take turns with others in memory cannot stay up.
        stays = step.reads_only and len(groups) == 1
        by_place: dict[int, Measurement] = {}
        reasons: list[str] = []
        for group in groups:
            members = [versions[place] for place in group]
            is_whole = False
            try:
                started = self._started(members, number, stays=stays)
                schedule = self._schedule(step, len(group), seed)
                share = self._share(step, schedule, number)
                measurements, group_reasons = self.on_running_servers(members, step, share)
                is_whole = True
            except ServerDiedError as error:
                raise ServerDiedError(str(error), _place_of(error, group)) from error
            except CensoredError as error:
                seconds = {group[place]: took for place, took in error.seconds.items()}
                raise CensoredError(str(error), error.limit, seconds) from error
            finally:
                if not (stays and is_whole):
                    for version in members:
                        version.server.abandon()
            reasons += group_reasons
            whole = (
                replace(measurement, values={**measurement.values, **took})
                for measurement, took in zip(measurements, started, strict=True)
            )
            by_place |= dict(zip(group, whole, strict=True))
        return at_equal_work([by_place[place] for place in places]), tuple(reasons)

    def _started(
        self, versions: Sequence[MeasuredVersion], number: int, *, stays: bool
    ) -> list[Mapping[str, float]]:
        """Start servers from the loaded data; return what it took, and how long clients connect, as metrics.

        In every other round the last one starts first: the others are up when a server starts. Nothing is
        returned of a server that has stayed up. Raises ServerDiedError.
        """
        places = range(len(versions))
        took = {
            place: _start_from_loaded_data(versions[place], place, number, stays=stays)
            for place in (places if number % 2 else reversed(places))
        }
        if self.request.suite.holds_connections or not all(took.values()):
            return [took[place] for place in places]
        connects = connect_values([version.server for version in versions])
        return [{**took[place], **connects[place]} for place in places]

    def on_running_servers(
        self,
        versions: Sequence[MeasuredVersion],
        step: Step,
        share: Share,
        *,
        ends: EndsStep | None = None,
        profiles: bool = True,
    ) -> MeasuredRound:
        """Measure the slices of a round on servers that are up; only the last round of a step resets them.

        That is every one, unless `ends` says which, once its slices are over.
        After a step that only reads there is nothing to reset. Profiles in slices of their own are taken of a
        round that `profiles`. Raises ServerDiedError and CensoredError.
        """
        watch = DisturbanceWatch(lambda: [os.getpid()])
        watch.begin()
        self._bind(versions, step)
        settle = self.request.profile.settle_seconds
        profiling = self.profiling if profiles or (self.profiling and self.profiling.during) else None
        servers = [version.server for version in versions]
        with contextlib.ExitStack() as companions:
            for place, version in enumerate(versions):
                self._start_companions(version, place, step, companions)
            if isinstance(self.generator, Connections):
                measurements = hold_connections(servers, self.generator, step, share, settle)
            else:
                measurements = run_slices(
                    servers,
                    self.generator,
                    step,
                    share,
                    settle,
                    resets=not step.reads_only,
                    ends=ends,
                    profiling=profiling,
                    checks=self.checks,
                    committed=[version.committed for version in versions],
                )
        disturbance = watch.end()
        metrics = disturbance.metrics()
        watched = [
            replace(measurement, values={**measurement.values, **metrics}) for measurement in measurements
        ]
        return at_equal_work(watched), disturbance.reasons(self.limits)

    def warm_up(
        self, versions: Sequence[MeasuredVersion], step: Step, shares: Iterable[Share], limit_seconds: float
    ) -> Warmth:
        """Let servers that are up work on a step until they are warm, for all shares at most.

        Raises ServerDiedError.
        """
        self._bind(versions, step)
        servers = [version.server for version in versions]
        committed = [version.committed for version in versions]
        return warm_up(servers, self.generator, step, shares, committed, limit_seconds)

    def _bind(self, versions: Sequence[MeasuredVersion], step: Step) -> None:
        if step.clients:
            cores = placement(step, self.sizes).server or self.sizes.usable
            for version in versions:
                bind(version.server.pid, cores)

    def _start_companions(
        self, version: MeasuredVersion, place: int, step: Step, until: contextlib.ExitStack
    ) -> None:
        """Start the companions of a server, which run `until` the end of the block at most.

        A session with companions records their metrics of all servers, of those without any too.
        """
        if not self.request.has_companions:
            return
        names = self.request.companions_of(version.build.version)
        cores = placement(step, self.sizes)
        try:
            until.enter_context(accompanied(version.server, names, cores, self.sizes.usable))
        except TidemarkError as error:
            raise ServerDiedError(str(error), place) from error

    def _share(self, step: Step, schedule: Schedule, number: int) -> Share:
        limit = self.request.profile.limit_seconds
        return Share(schedule, number, max_transactions(step, self.sizes), limit_seconds=limit)

    def _schedule(self, step: Step, servers: int, seed: object) -> Schedule:
        profile = self.request.profile
        slice_seconds = stretched(profile.slice_seconds, profile.seconds, step, self.sizes)
        return mirrored(range(servers), profile.seconds, slice_seconds, seed, profile.warm_seconds)


def _place_of(error: ServerDiedError, group: Sequence[int]) -> int | None:
    """The index, among all versions, of the one that failed; in a group of one it is that one."""
    if error.place is None:
        return group[0] if len(group) == 1 else None
    return group[error.place]


def _start_from_loaded_data(
    version: MeasuredVersion, place: int, number: int, *, stays: bool
) -> Mapping[str, float]:
    try:
        return version.start_from_loaded_data(number, stays=stays)
    except TidemarkError as error:
        raise ServerDiedError(str(error), place) from error
