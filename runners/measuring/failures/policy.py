"""Failure policy: when a round is repeated, and when a version is excluded from a step or session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runners.measuring.failures.cause import run_failure
from runners.measuring.passes.counted_passes import CountedPasses
from runners.measuring.passes.work_proofs import WorkProofs
from runners.measuring.round_measurement import MeasuredRound
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.session_versions import MeasuredVersion
from suites.accounting.activity import BURSTS
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import OVER_LIMIT, PRIMARY, STATEMENT_SECONDS
from suites.server import ServerError
from suites.turns.failures import CensoredError, ServerDiedError

MAX_FAILURES = 2
"""The number of failures after which a version is excluded from the later rounds of a step."""

MAX_DISTURBED = 2
"""How often a disturbed round is measured again; the next one is recorded with a warning, disturbed or
not."""

Measure = Callable[[Sequence[MeasuredVersion]], MeasuredRound]
"""Measures one round of the given versions. Raises ServerDiedError or CensoredError."""


@dataclass(frozen=True)
class FailurePolicy:
    """Carries rounds out until they are valid, and excludes versions that keep failing."""

    recorder: RunRecorder
    verdicts: SequentialVerdicts
    least_rounds: int
    """The rounds that every step gets; a step that a version cannot run is recorded as failed in these."""

    keep_disturbed: bool = False
    """Whether a disturbed round is recorded, with a warning, instead of being measured again."""

    passes: CountedPasses | None = None
    """What counts the instructions of rounds before they are recorded; None when they are not counted."""

    proofs: WorkProofs | None = None
    """What compares the work of versions; None when nothing does."""

    folder: Path | None = None
    """Where the servers have their files; None where that does not matter."""

    @property
    def _round_name(self) -> str:
        return self.recorder.request.round_name

    def resume(self, versions: Sequence[MeasuredVersion]) -> None:
        """Restore failures and verdicts from the runs that an interrupted session has recorded."""
        by_name = {version.name: version for version in versions}
        bursts = self.recorder.recorded_bursts
        in_order = sorted(self.recorder.recorded.items(), key=lambda recorded: recorded[0][1])
        for (step, number), runs in in_order:
            is_censored = any(OVER_LIMIT in run.values for run in runs.values())
            for name, run in runs.items():
                if run.failure is not None:
                    self._count_failure(by_name[name], step, run.failure, at_once=is_censored)
                    if not is_censored:
                        self.recorder.note_failure(name, run_failure(ServerError(run.failure), self.folder))
            metric = self.verdicts.metric
            values = {name: run.values[metric] for name, run in runs.items() if metric in run.values}
            has_bursts = [name for name, run in runs.items() if run.id in bursts]
            self.verdicts.add(step, number, values, has_bursts)
        for version in versions:
            for step in version.excluded_steps:
                self.verdicts.drop(version.name, step)

    def carry_out(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measure: Measure,
        *,
        servers_stay_up: bool = False,
    ) -> None:
        """Measure a round until all versions that can run the step have an undisturbed run, and record it.

        When a server dies, its failure is recorded and the other versions begin the round again without it.
        With `servers_stay_up` (long mode) a disturbed round is recorded with a warning, because hours cannot
        be measured again, and a version whose server died is excluded from the rest of the session. A step
        that is over its limit on one version is recorded as censored for all, and not measured again.
        """
        done = self.recorder.recorded_versions(step, number)
        for version in versions:
            if version.name not in done:
                self._record_exclusion(version, step, number)
        repeats_left = 0 if servers_stay_up or self.keep_disturbed else MAX_DISTURBED
        while active := _able_to_run(versions, step, done):
            started = _now()
            try:
                measurements, reasons = measure(active)
            except CensoredError as error:
                self._record_censored(versions, active, step, number, error, started)
                return
            except ServerDiedError as error:
                failed = active if error.place is None else [active[error.place]]
                if servers_stay_up:
                    self.exclude(failed, step, number, error, started)
                else:
                    self._record_deaths(failed, step, number, error, started)
                done |= {version.name for version in failed}
                continue
            if reasons and repeats_left:
                repeats_left -= 1
                self.recorder.record_dropped(step, number, reasons, _values_of(PRIMARY, active, measurements))
                continue
            values = _values_of(self.verdicts.metric, active, measurements)
            bursts = _bursts_of(active, measurements) if servers_stay_up else ()
            measurements = self._with_fixed_work(number, step, active, measurements)
            active, measurements = self._without_empty(active, measurements, step, number, started)
            self.recorder.record_round(step, number, active, measurements, reasons, started)
            self.verdicts.add(step.name, number, values, bursts)
            return

    def exclude(
        self,
        failed: Sequence[MeasuredVersion],
        step: Step,
        number: int,
        error: ServerDiedError,
        started: datetime | None = None,
    ) -> None:
        """Record that versions failed in a round, and exclude them from the rest of the session."""
        self._record_deaths(failed, step, number, error, started or _now())
        for version in failed:
            version.broken = str(error)
            for other in self.recorder.request.steps:
                self.verdicts.drop(version.name, other.name)

    def is_decided_by(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
    ) -> bool:
        """Return whether all verdicts on a step stand with a block that is still to be recorded."""
        values = _values_of(self.verdicts.metric, versions, measurements)
        self.verdicts.add(step.name, number, values, _bursts_of(versions, measurements))
        return not self.verdicts.open_steps([step.name], number)

    def _with_fixed_work(
        self, number: int, step: Step, active: Sequence[MeasuredVersion], measurements: list[Measurement]
    ) -> list[Measurement]:
        """Return the measurements with what is counted, and what the versions hold after the same work."""
        if self.passes is not None:
            measurements = self.passes.add_to(number, step, active, measurements)
        if self.proofs is not None:
            measurements = self.proofs.add_to(number, step, active, measurements)
        return measurements

    def _without_empty(
        self,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
        step: Step,
        number: int,
        started: datetime,
    ) -> tuple[list[MeasuredVersion], list[Measurement]]:
        """Record the runs that have no value as failed, and return the others."""
        kept = [
            (version, result) for version, result in zip(versions, measurements, strict=True) if result.values
        ]
        for version, measurement in zip(versions, measurements, strict=True):
            if not measurement.values:
                reason = "; ".join(measurement.warnings) or "nothing was measured"
                refuted = self.proofs is not None and (version.name, step.name) in self.proofs.refuted
                error = ServerDiedError(reason, None)
                self._record_deaths([version], step, number, error, started, at_once=refuted)
        return [version for version, _ in kept], [measurement for _, measurement in kept]

    def _record_censored(
        self,
        versions: Sequence[MeasuredVersion],
        active: Sequence[MeasuredVersion],
        step: Step,
        number: int,
        error: CensoredError,
        started: datetime,
    ) -> None:
        """Record a step that was over its limit on one version, and exclude all from its later rounds.

        A version without a time cannot be compared, and the others need not be measured for that.
        """
        over = [active[place].name for place, seconds in error.seconds.items() if seconds is None]
        where = f"censored at {error.limit:g} s on {', '.join(sorted(over))}"
        for place, version in enumerate(active):
            seconds = error.seconds.get(place)
            reason = where if seconds is None else f"{where}; took {seconds:.4g} s on {version.name}"
            value = error.values if seconds is None else {STATEMENT_SECONDS: seconds}
            self.recorder.record_failure(version, step, number, started, reason, value)
            version.excluded_steps[step.name] = reason
        for version in versions:
            version.excluded_steps.setdefault(step.name, where)
            self.verdicts.drop(version.name, step.name)
        self.recorder.report_failure(f"{step.name} ({self._round_name} {number})", where)

    def _record_deaths(
        self,
        failed: Sequence[MeasuredVersion],
        step: Step,
        number: int,
        error: ServerDiedError,
        started: datetime,
        *,
        at_once: bool = False,
    ) -> None:
        for version in failed:
            self._count_failure(version, step.name, str(error), at_once=at_once)
            self.recorder.note_failure(version.name, run_failure(error, self.folder))
            if step.name in version.excluded_steps:
                self.verdicts.drop(version.name, step.name)
            what = f"{version.name} {step.name} ({self._round_name} {number})"
            self.recorder.report_failure(what, str(error))
            self.recorder.record_failure(version, step, number, started, str(error))

    def _count_failure(
        self, version: MeasuredVersion, step: str, reason: str, *, at_once: bool = False
    ) -> None:
        """Exclude a version that failed often enough in a step, or `at_once`, from its later rounds."""
        version.failures[step] += 1
        if version.failures[step] >= MAX_FAILURES or at_once:
            version.excluded_steps[step] = reason

    def _record_exclusion(self, version: MeasuredVersion, step: Step, number: int) -> None:
        """Record a failed run for a version that cannot run the step, in every planned round."""
        reason = version.exclusion_reason(step.name)
        if reason is not None and number <= self.least_rounds:
            self.recorder.record_failure(version, step, number, _now(), reason)


def _able_to_run(versions: Sequence[MeasuredVersion], step: Step, done: set[str]) -> list[MeasuredVersion]:
    """The versions that can run the step and have neither a recorded run of this round nor failed in it."""
    return [
        version
        for version in versions
        if version.exclusion_reason(step.name) is None and version.name not in done
    ]


def _values_of(
    metric: str, versions: Sequence[MeasuredVersion], measurements: Sequence[Measurement]
) -> dict[str, float]:
    """A metric by version, of those that have it."""
    both = zip(versions, measurements, strict=True)
    return {version.name: result.values[metric] for version, result in both if metric in result.values}


def _bursts_of(versions: Sequence[MeasuredVersion], measurements: Sequence[Measurement]) -> list[str]:
    """The versions that had background work in a block which comes in bursts."""
    both = zip(versions, measurements, strict=True)
    return [
        version.name for version, result in both if any(work.name in BURSTS for work in result.activities)
    ]


def _now() -> datetime:
    return datetime.now(UTC)
