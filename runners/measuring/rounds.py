"""The rounds of a session: every version on a step from the same loaded data, until verdicts stand."""

import math
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from build.progress import Progress, ProgressTask
from history.store.records import DroppedRound, RunRecord, RunStatus
from history.store.resume import Recorded
from history.store.writer import Store
from runners.measuring.request import Request
from runners.measuring.session_versions import MeasuredVersion, Serve
from runners.measuring.undecided import Deciding
from suites.accounting.disturbance import DisturbanceLimits, DisturbanceWatch
from suites.definition import Mode, Profile, Step
from suites.generators.load import Generator, Share
from suites.measurement import Measurement
from suites.metrics import PRIMARY
from suites.profiling.profiler import Profiling
from suites.sizing import Sizes, fit_together, this_machine
from suites.slices import Schedule, mirrored
from suites.step import ServerDiedError, most_transactions, run_slices

MOST_FAILURES = 2
"""How often a version may fail a step before it is left out of its later rounds."""

MOST_DISTURBED = 2
"""How often a disturbed round is measured again; then it is taken, with a warning."""

LEAST_BLOCK_SECONDS = 10.0
"""How long a version works at least in a block of long mode, if its step is as long as that."""


@dataclass
class Rounds:
    """The rounds of a session under way."""

    request: Request
    room: Sizes
    serve: Serve
    generator: Generator
    store: Store
    session: int
    progress: Progress
    deciding: Deciding
    profiling: Profiling | None = None
    failures: list[str] = field(default_factory=list)
    """What failed and why, each reason once."""
    limits: DisturbanceLimits = field(default_factory=DisturbanceLimits)
    recorded: Recorded = field(default_factory=dict)
    """What an interrupted session that is gone on with has recorded: none of it is measured again."""
    _position: int = 0

    def run(self, builds: Sequence[Build], folder: Path) -> None:
        """Load every version below `folder`, then go through the rounds in the request's mode."""
        entrants = [
            MeasuredVersion(build, self.serve(build, folder / str(number)))
            for number, build in enumerate(builds, start=1)
        ]
        self._take_up(entrants)
        steps = self.request.steps
        try:
            with self.progress.task("measuring", self.request.least_rounds * len(steps)) as task:
                for entrant in entrants:
                    task.rename(f"{entrant.name}: initdb, then loading {self.room.data_bytes / 1e6:.0f} MB")
                    self._load(entrant)
                if self.request.profile.mode is Mode.LONG:
                    self._long(entrants, task)
                else:
                    self._rounds(entrants, task)
        finally:
            for entrant in entrants:
                entrant.server.destroy()

    # --- rounds that somebody else chooses

    def enter(self, build: Build, folder: Path) -> MeasuredVersion:
        """Load one more version; what breaks is kept in the entrant. The caller destroys its server."""
        entrant = MeasuredVersion(build, self.serve(build, folder))
        self._load(entrant)
        return entrant

    def carry_out(self, number: int, step: Step, entrants: Sequence[MeasuredVersion]) -> None:
        """One round of a step by these, measured again while it is disturbed; it is in the history then."""
        self._round(number, step, entrants)

    # --- rounds: each from the loaded data

    def _rounds(self, entrants: Sequence[MeasuredVersion], task: ProgressTask) -> None:
        began = time.monotonic()
        open_steps: Sequence[Step] = self.request.steps
        done = 0
        for number in range(1, self.request.most_rounds + 1):
            for step in open_steps:
                if (
                    number > self.request.least_rounds
                    and time.monotonic() - began > self.request.limit_seconds
                ):
                    self.progress.note("the time is over; steps without a verdict stay inconclusive")
                    return
                task.rename(f"round {number}: {step.name} ({len(open_steps)} steps open)")
                self._round(number, step, entrants)
                done += 1
                more = max(0, self.request.least_rounds - number) * len(self.request.steps)
                task.update(done, done + more)
            if self.request.until_decided and number >= self.request.least_rounds:
                names = self.deciding.open_steps([step.name for step in open_steps])
                open_steps = [step for step in open_steps if step.name in names]
            if not open_steps:
                return

    def _round(self, number: int, step: Step, entrants: Sequence[MeasuredVersion]) -> None:
        """One round of a step, until the versions that can run it have run it undisturbed."""
        failed = self._recorded(step, number)
        for entrant in entrants:
            if entrant.name not in failed:
                self._record_if_out(entrant, step, number)
        disturbed = MOST_DISTURBED if self.request.keep_disturbed else 0
        while active := _able(entrants, step, failed):
            started = _now()
            try:
                measured, reasons = self._measure(number, step, active)
            except ServerDiedError as error:
                failed |= self._blame(active, step, number, error, started)
                continue
            if reasons and disturbed < MOST_DISTURBED:
                disturbed += 1
                self._drop(number, step, active, measured, reasons)
                continue
            self._record_all(number, step, active, measured, reasons, started)
            return

    def _measure(
        self, number: int, step: Step, active: Sequence[MeasuredVersion]
    ) -> tuple[list[Measurement], tuple[str, ...]]:
        """What each version did, and what disturbed them. Raises ServerDiedError."""
        places = list(range(len(active)))
        seed = (self.request.suite.seed, step.name, number)
        groups = [places]
        if not fit_together(len(active), self.room, this_machine()):
            groups = [[place] for place in random.Random(repr(seed)).sample(places, len(places))]
        found: dict[int, Measurement] = {}
        reasons: list[str] = []
        for group in groups:
            members = [active[place] for place in group]
            try:
                for place, entrant in enumerate(members):
                    _begin(entrant, place)
                share = Share(self._schedule(len(group), seed), number, most_transactions(step, self.room))
                measured, why = self._watched(members, step, share)
            except ServerDiedError as error:
                raise ServerDiedError(str(error), _place_of(error, group)) from error
            finally:
                for entrant in members:
                    entrant.server.abandon()
            reasons += why
            found |= dict(zip(group, measured, strict=True))
        return [found[place] for place in places], tuple(reasons)

    def _schedule(self, servers: int, seed: object) -> Schedule:
        profile = self.request.profile
        return mirrored(range(servers), profile.seconds, profile.slice_seconds, seed, profile.warm_seconds)

    def _watched(
        self, members: Sequence[MeasuredVersion], step: Step, share: Share, *, last: bool = True
    ) -> tuple[list[Measurement], tuple[str, ...]]:
        """What each did in its slices, and what disturbed all; the reset comes after the `last` ones only."""
        watch = DisturbanceWatch(lambda: [os.getpid()])
        watch.begin()
        servers = [entrant.server for entrant in members]
        settle = self.request.profile.settle_seconds if last else 0.0
        profiling = self.profiling if last or (self.profiling and self.profiling.during) else None
        measured = run_slices(servers, self.generator, step, share, settle, resets=last, profiling=profiling)
        disturbance = watch.end()
        metrics = disturbance.metrics()
        return (
            [replace(each, values={**each.values, **metrics}) for each in measured],
            disturbance.reasons(self.limits),
        )

    # --- long: the servers stay up, and each step inherits what the one before left

    def _long(self, entrants: Sequence[MeasuredVersion], task: ProgressTask) -> None:
        """Blocks of slices such as A B B A, so that the base is measured at the beginning and at the end."""
        profile = self.request.profile
        turns = _turns_of_block(profile)
        blocks = max(1, round(profile.seconds / profile.slice_seconds / 2 / turns))
        total, done = blocks * len(self.request.steps), 0
        for step in self.request.steps:
            whole = most_transactions(step, self.room)
            for block in range(1, blocks + 1):
                task.rename(f"{step.name}, block {block} of {blocks}")
                part = None if whole is None else max(1, whole // blocks)
                self._block(block, step, entrants, part, last=block == blocks)
                done += 1
                task.update(done, total)

    def _block(
        self, block: int, step: Step, entrants: Sequence[MeasuredVersion], part: int | None, *, last: bool
    ) -> None:
        failed = self._recorded(step, block)
        for entrant in entrants:
            if entrant.name not in failed:
                self._record_if_out(entrant, step, block)
        while active := _able(entrants, step, failed):
            profile, started = self.request.profile, _now()
            order = (*range(len(active)), *reversed(range(len(active)))) * _turns_of_block(profile)
            share = Share(Schedule(profile.slice_seconds, order), block, part, (block - 1) * (part or 0))
            try:
                measured, reasons = self._watched(active, step, share, last=last)
            except ServerDiedError as error:
                names = self._blame(active, step, block, error, started)
                for entrant in active:
                    if entrant.name in names:
                        entrant.broken = str(error)
                failed |= names
                continue
            # Hours cannot be measured again: what disturbed them is said instead.
            self._record_all(block, step, active, measured, reasons, started)
            return

    # --- what an interrupted session has recorded already

    def _take_up(self, entrants: Sequence[MeasuredVersion]) -> None:
        """Know again what was measured and what failed."""
        by_name = {entrant.name: entrant for entrant in entrants}
        for (step, _), its_runs in self.recorded.items():
            for name, run in its_runs.items():
                self._position = max(self._position, run.position)
                if run.failure is not None:
                    by_name[name].failures[step] += 1
                    if by_name[name].failures[step] >= MOST_FAILURES:
                        by_name[name].out[step] = run.failure
            rates = {name: run.values[PRIMARY] for name, run in its_runs.items() if PRIMARY in run.values}
            self.deciding.add(step, rates)
        for entrant in entrants:
            for step in entrant.out:
                self.deciding.drop(entrant.name, step)

    def _recorded(self, step: Step, number: int) -> set[str]:
        """The versions that have their run of a round already."""
        return set(self.recorded.get((step.name, number), ()))

    # --- what goes into the history

    def _load(self, entrant: MeasuredVersion) -> None:
        entrant.load(self.generator)
        if entrant.broken is None and self.request.profile.mode is Mode.ROUNDS:
            try:
                entrant.server.keep()
            except TidemarkError as error:
                entrant.broken = str(error)
        if entrant.broken is not None:
            self._fail(f"{entrant.name}: all steps", entrant.broken)

    def _blame(
        self,
        active: Sequence[MeasuredVersion],
        step: Step,
        number: int,
        error: ServerDiedError,
        started: datetime,
    ) -> set[str]:
        """Record who failed; the others begin the round again without it. Returns the names.

        Whoever fails a step twice runs it no more.
        """
        culprits = active if error.place is None else [active[error.place]]
        for entrant in culprits:
            entrant.failures[step.name] += 1
            if entrant.failures[step.name] >= MOST_FAILURES:
                entrant.out[step.name] = str(error)
                self.deciding.drop(entrant.name, step.name)
            self._fail(f"{entrant.name} {step.name} (round {number})", str(error))
            self._record_failure(entrant, step, number, started, str(error))
        return {entrant.name for entrant in culprits}

    def _record_if_out(self, entrant: MeasuredVersion, step: Step, number: int) -> None:
        """A step that a version cannot run is recorded as failed in every planned round."""
        reason = entrant.why_not(step.name)
        if reason is not None and number <= self.request.least_rounds:
            self._record_failure(entrant, step, number, _now(), reason)

    def _drop(
        self,
        number: int,
        step: Step,
        active: Sequence[MeasuredVersion],
        measured: Sequence[Measurement],
        reasons: Sequence[str],
    ) -> None:
        reason = "; ".join(reasons)
        dropped = DroppedRound(step.name, number, reason, _rates(active, measured))
        self.store.record_dropped(self.session, dropped)
        self.progress.note(f"{step.name}, round {number}: measured again: {reason}")

    def _record_all(
        self,
        number: int,
        step: Step,
        active: Sequence[MeasuredVersion],
        measured: Sequence[Measurement],
        reasons: Sequence[str],
        started: datetime,
    ) -> None:
        disturbed = [f"disturbed: {reason}" for reason in reasons]
        records = []
        for entrant, each in zip(active, measured, strict=True):
            whole = replace(each, warnings=[*each.warnings, *disturbed])
            records.append(self._run_record(entrant, step, number, whole, started, None))
            for warning in whole.warnings:
                self.progress.note(f"{entrant.name} {step.name} (round {number}): {warning}")
        # At once: a round of which only some versions are there could be neither used nor measured again.
        self.store.record_runs(self.session, records)
        self.deciding.add(step.name, _rates(active, measured))

    def _fail(self, what: str, reason: str) -> None:
        self.failures.append(f"{what}: {reason}")
        self.progress.note(f"{what}: failed: {reason}")

    def _record_failure(
        self, entrant: MeasuredVersion, step: Step, number: int, started: datetime, failure: str
    ) -> None:
        self.store.record_runs(
            self.session, [self._run_record(entrant, step, number, None, started, failure)]
        )

    def _run_record(
        self,
        entrant: MeasuredVersion,
        step: Step,
        number: int,
        measurement: Measurement | None,
        started: datetime,
        failure: str | None,
    ) -> RunRecord:
        self._position += 1
        names = [each.name for each in self.request.suite.steps]
        return RunRecord(
            build=entrant.build,
            configuration=entrant.settings,
            step=step.name,
            step_position=1 + names.index(step.name),
            repetition=number,
            position=self._position,
            status=RunStatus.FAILED if failure else RunStatus.FINISHED,
            failure=failure,
            started_at=started,
            ended_at=_now(),
            measurement=measurement,
        )


def _turns_of_block(profile: Profile) -> int:
    """How often a block of long mode goes through A B B A: each begins with new connections."""
    seconds = min(profile.seconds, LEAST_BLOCK_SECONDS)
    return max(1, math.ceil(seconds / profile.slice_seconds / 2 - 1e-9))


def _able(entrants: Sequence[MeasuredVersion], step: Step, failed: set[str]) -> list[MeasuredVersion]:
    """Those that can run the step and have not failed it in this round."""
    return [each for each in entrants if each.why_not(step.name) is None and each.name not in failed]


def _rates(active: Sequence[MeasuredVersion], measured: Sequence[Measurement]) -> dict[str, float]:
    """The primary metric by the name of the version."""
    return {entrant.name: each.values[PRIMARY] for entrant, each in zip(active, measured, strict=True)}


def _place_of(error: ServerDiedError, group: Sequence[int]) -> int | None:
    """Who failed, among all; nobody known in a group of one is that one."""
    if error.place is None:
        return group[0] if len(group) == 1 else None
    return group[error.place]


def _begin(entrant: MeasuredVersion, place: int) -> None:
    """From the loaded data to a running server."""
    try:
        entrant.server.restore()
        entrant.server.start()
    except TidemarkError as error:
        raise ServerDiedError(str(error), place) from error


def _now() -> datetime:
    return datetime.now(UTC)
