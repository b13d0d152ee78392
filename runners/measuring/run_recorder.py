"""Recording: what a session writes into the history, and what it wrote before an interruption."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from build.progress import Progress, in_words
from history.counts import plural_of
from history.store.records import DroppedRound, FailureCause, RunRecord, RunStatus, VersionFailure
from history.store.resume import Recorded
from history.store.writer import Store
from runners.measuring.request import Request
from runners.measuring.session_versions import MeasuredVersion
from suites.keys.levels import MAX_CLIENTS
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import METRICS, PRIMARY
from suites.turns.warmth import Warmth

_FIGURES = re.compile(r"[0-9(:]")
_NUMBERS = re.compile(r"[0-9][0-9.,]*")

DISTURBED = "disturbed: "
"""How the warning of a run begins whose round was disturbed."""


@dataclass
class RunRecorder:
    """Writes the runs of one session into the history, numbered in the order in which they were measured."""

    request: Request
    store: Store
    session: int
    """The id of the session in the history."""

    progress: Progress
    recorded: Recorded = field(default_factory=dict)
    """The runs of the interrupted session that is resumed; none of them is measured again."""

    recorded_bursts: Collection[int] = ()
    """The ids of those of these runs with background work that comes in bursts."""

    failures: list[str] = field(default_factory=list)
    """What failed and why, one entry per failure."""

    failed: dict[str, VersionFailure] = field(default_factory=dict)
    """The versions that failed while they were loaded or measured; what the machine did comes first."""

    measured: set[str] = field(default_factory=set)
    """The versions with a finished run."""

    rounds: int = field(default=0, init=False)
    """The rounds of steps that are stored, those of the interrupted session included."""

    _failed_in: dict[tuple[str, int], set[str]] = field(default_factory=dict, init=False)
    """The versions whose failure in a round of a step this process has recorded."""

    _told: set[str] = field(default_factory=set, init=False)
    """What disturbs rounds or was warned of, and was told."""

    disturbances: list[str] = field(default_factory=list)
    """Why each recorded round is disturbed; empty for those that are not."""

    def __post_init__(self) -> None:
        runs = [run for runs in self.recorded.values() for run in runs.values()]
        self._position = max((run.position for run in runs), default=0)
        self.rounds = len(self.recorded)
        self.measured |= {run.version for run in runs if run.status is RunStatus.FINISHED}
        for several in self.recorded.values():
            warnings = [text for run in several.values() for text in run.warnings]
            disturbed = (text.removeprefix(DISTURBED) for text in warnings if text.startswith(DISTURBED))
            self.disturbances.append(next(disturbed, ""))

    @property
    def is_disturbed(self) -> str:
        """Why every round is disturbed, of the last one; empty unless all are."""
        return self.disturbances[-1] if self.disturbances and all(self.disturbances) else ""

    def note_failure(self, version: str, failure: VersionFailure) -> None:
        """Note that a version failed."""
        known = self.failed.get(version)
        if known is None or known.cause is FailureCause.VERSION:
            self.failed[version] = failure

    def recorded_versions(self, step: Step, number: int) -> set[str]:
        """The names of the versions whose run of a round is already in the history."""
        return {*self.recorded.get((step.name, number), ()), *self._failed_in.get((step.name, number), ())}

    def record_round(
        self,
        step: Step,
        number: int,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
        reasons: Sequence[str],
        started: datetime,
    ) -> None:
        """Record the runs of all versions of a round; `reasons` why it is disturbed become warnings."""
        disturbed = [f"{DISTURBED}{reason}" for reason in reasons]
        self.disturbances.append("; ".join(reasons))
        self.measured |= {version.name for version in versions}
        self._tell(f"{step.name}, {self.request.round_name} {number}", "is disturbed", reasons)
        records = []
        for version, measurement in zip(versions, measurements, strict=True):
            possible = without_impossible(measurement)
            warned = replace(possible, warnings=[*possible.warnings, *disturbed])
            records.append(self._run_record(version, step, number, warned, started, None))
            for warning in possible.warnings:
                self._tell_warning(f"{version.name} {step.name}", number, warning)
        # In one transaction: a round with only some of its versions could be neither used nor measured again.
        self.store.record_runs(self.session, records)
        self.rounds += 1

    def record_dropped(
        self, step: Step, number: int, reasons: Sequence[str], values: Mapping[str, float]
    ) -> None:
        """Record a disturbed round that is measured again: its reasons, and its throughput by version."""
        reason = "; ".join(reasons)
        self.store.record_dropped(self.session, DroppedRound(step.name, number, reason, dict(values)))
        self._tell(f"{step.name}, {self.request.round_name} {number}", "is measured again", reasons)

    def _tell(self, which: str, what: str, reasons: Sequence[str]) -> None:
        """Note what disturbs a round, but not for each round anew: `compare` counts them."""
        rounds = plural_of(self.request.round_name)
        kinds = {_FIGURES.split(reason, maxsplit=1)[0] for reason in reasons} - self._told
        if kinds:
            self._told |= kinds
            self.progress.note(f"{which} {what}: {'; '.join(reasons)}; later {rounds} like it are not told")

    def _tell_warning(self, which: str, number: int, warning: str) -> None:
        """Note a warning of a run, once for all rounds where only its figures differ: the history has all."""
        kind = f"{which}: {_NUMBERS.sub('', warning)}"
        if kind not in self._told:
            self._told.add(kind)
            what = self.request.round_name
            self.progress.note(
                f"{which} ({what} {number}): {warning}; later {plural_of(what)} like it are not told"
            )

    def record_plans(self, version: MeasuredVersion) -> None:
        """Store the plans of a version with the session."""
        self.store.record_plans(self.session, version.name, version.plans)

    def record_data(self, version: MeasuredVersion) -> None:
        """Store how large the loaded data of a version are, if that is known."""
        if version.extent is not None:
            self.store.record_data(self.session, version.name, vars(version.extent))

    def record_warmth(self, step: Step, warmth: Warmth) -> None:
        """Store how servers warmed up before a step, and tell it."""
        self.store.record_warmth(self.session, step.name, warmth)
        self.progress.note(f"{step.name}: warmed up for {in_words(warmth.seconds)} each: {warmth.text}")

    def record_failure(
        self,
        version: MeasuredVersion,
        step: Step,
        number: int,
        started: datetime,
        reason: str,
        values: Mapping[str, float] | None = None,
    ) -> None:
        """Record a failed run, with the values that it has nevertheless."""
        measurement = Measurement(values, ()) if values else None
        record = self._run_record(version, step, number, measurement, started, reason)
        self.store.record_runs(self.session, [record])
        self._failed_in.setdefault((step.name, number), set()).add(version.name)

    def report_failure(self, what: str, reason: str) -> None:
        """Add a failure to those that the session reports at its end, and show it now."""
        self.failures.append(f"{what}: {reason}")
        self.progress.note(f"{what}: failed: {reason}")

    def _run_record(
        self,
        version: MeasuredVersion,
        step: Step,
        number: int,
        measurement: Measurement | None,
        started: datetime,
        failure: str | None,
    ) -> RunRecord:
        self._position += 1
        names = [suite_step.name for suite_step in self.request.suite.steps]
        return RunRecord(
            build=version.build,
            configuration=version.settings,
            step=step.name,
            step_position=_position_of(step, names),
            repetition=number,
            position=self._position,
            status=RunStatus.FAILED if failure else RunStatus.FINISHED,
            failure=failure,
            started_at=started,
            ended_at=datetime.now(UTC),
            measurement=measurement,
        )


def _position_of(step: Step, names: Sequence[str]) -> int:
    """Return the position of a step in its suite, from 1; levels of a step follow each other by clients."""
    position = 1 + names.index(step.plain_name)
    return position if step.level is None else position * (MAX_CLIENTS + 1) + step.level


def without_impossible(measured: Measurement) -> Measurement:
    """The measurement without values that their metrics cannot have, such as a cost below zero.

    A counter that was set back spoils its own metric and not the round: a warning says what was left out. The
    throughput stays as it is, so that the history refuses a round without a rate that can be.
    """
    wrong = {
        name: METRICS[name].refusal(value)
        for name, value in measured.values.items()
        if name != PRIMARY and name in METRICS and not METRICS[name].is_plausible(value)
    }
    if not wrong:
        return measured
    values = {name: value for name, value in measured.values.items() if name not in wrong}
    warnings = [*measured.warnings, *(f"left out: {what}" for what in wrong.values())]
    return replace(measured, values=values, warnings=warnings)
