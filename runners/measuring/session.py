"""A session: versions are built, loaded and measured, and every finished round is stored."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from build import environment
from build.finished_build import Build
from build.home import Home
from build.progress import Progress
from build.version import Version
from history.counts import counted
from history.errors import HistoryError
from history.store.records import FailureCause, SessionStart, SessionStatus, VersionFailure
from history.store.resume import InterruptedSession
from history.store.writer import Store
from runners.measuring.cleanup import data_folder
from runners.measuring.declared_limits import note_resources
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.layouts import link_layouts
from runners.measuring.machine_facts import changes, describe
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.passes.base_work import BaseWork
from runners.measuring.passes.counted_passes import CountedPasses, session_passes
from runners.measuring.passes.work_proofs import WorkProofs, session_proofs
from runners.measuring.preparation import (
    callgrind_of,
    check_request,
    copies_of,
    profiling_of,
    provide_builds,
    server_factory,
    verdicts_of,
    with_rates,
)
from runners.measuring.request import Request
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.rounds import NothingLoadedError, Rounds
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.session_description import describe_session, with_machine_changes
from runners.measuring.variants import with_commits
from suites.control_groups.declared import Declared
from suites.counting.tool import Callgrind
from suites.generators.load import Generator
from suites.generators.registry import make_generator
from suites.sizing import Sizes

RESUMABLE_HOURS = 24.0
"""The age in hours up to which an interrupted session is resumed: machines drift, and the base drifts with
them."""


INTERRUPTING = (KeyboardInterrupt, HistoryError, OSError, MemoryError)
"""What ends a session that can be resumed: a person, a full disk, memory that others use. What else ends one
would end it again."""


@dataclass
class SessionOutcome:
    """The result of a session."""

    uid: str = ""
    """Empty when nothing could be compared, so that there is no session in the history."""

    not_built: dict[Version, VersionFailure] = field(default_factory=dict)
    """The versions that could not be built or cannot run the suite, with the reason."""

    failures: list[str] = field(default_factory=list)
    """What failed and why, one entry per failure."""

    failed: dict[str, VersionFailure] = field(default_factory=dict)
    """The versions that failed while they were loaded or measured, by name."""

    without_result: frozenset[str] = frozenset()
    """The versions that were built and have no finished run, by name."""

    disturbed: str = ""
    """Why every round was disturbed, of the last one; empty unless all were."""

    had_time: bool = True
    """Whether its budget did not end before each step was decided."""

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for was measured."""
        return not self.not_built and not self.failures

    @property
    def was_hindered(self) -> bool:
        """Whether something besides the versions kept any of them from being measured."""
        several = (*self.not_built.values(), *self.failed.values())
        return any(failure.cause is FailureCause.MACHINE for failure in several)

    @property
    def settles(self) -> bool:
        """Whether the session says all that it can: another one would find the same."""
        return bool(self.uid) and not self.was_hindered


@dataclass(frozen=True)
class ActiveSession:
    """A running session as a driver, which chooses its rounds, sees it."""

    uid: str
    rounds: Rounds
    builds: Sequence[Build]
    """The builds of the request's versions."""

    sizes: Sizes
    folder: Path
    """The folder for the data directories of servers."""


SessionDriver = Callable[[ActiveSession], None]
"""Chooses and measures the rounds of a session; the session ends when it returns."""


def run_session(
    request: Request,
    home: Home,
    store: Store,
    progress: Progress,
    given: Mapping[Version, Build] | None = None,
    driver: SessionDriver | None = None,
    earlier: BaseWork | None = None,
) -> SessionOutcome:
    """Carry out `request`; every finished round is in the history before the next one begins.

    `given` are builds that are used for some versions instead of those of the build cache, `earlier` work
    of the base that is not done again. A `driver` chooses the rounds, and which further builds take part
    in them, in place of the request.

    Raises TidemarkError when nothing could be measured at all, and KeyboardInterrupt after cleaning up.
    """
    began = time.monotonic()
    with measuring_alone(home):
        request = replace(request, variants=with_commits(request.variants, home, progress))
        sizes, callgrind = check_request(request, home), callgrind_of(request, progress)
        serve = server_factory(request, sizes)
        builds, not_built = provide_builds(request, home, progress, serve, given or {})
        if not _is_worth_it(request, builds):
            progress.note("nothing is measured: there is nothing to compare")
            return SessionOutcome(not_built=not_built)
        generator = make_generator(request.suite, sizes, builds, prepares=request.prepares)
        profiling = profiling_of(request, home, progress)
        machine = describe(home.path)
        request = with_rates(request, machine, store, progress)
        changed = changes(store.latest_machine(machine.hostname), machine)
        uid, version = secrets.token_hex(4), generator.version()
        start = describe_session(request, uid, sizes, version, not_built, machine, profiling, callgrind)
        resumed = _resumed(request, store, start, builds, progress)
        session = resumed.id if resumed else store.start_session(with_machine_changes(start, changed))
        outcome = SessionOutcome(resumed.uid if resumed else start.uid, not_built)
        recorded, bursts = (resumed.recorded, resumed.bursts) if resumed else ({}, frozenset[int]())
        _announce(progress, start, store.where, resumed, changed, request)
        recorder = RunRecorder(request, store, session, progress, recorded, bursts, outcome.failures)
        status = SessionStatus.FAILED
        try:
            with data_folder(home, f"s{outcome.uid}") as folder:
                note_resources(request, sizes, folder, progress)
                verdicts = verdicts_of(request, builds, store.noise(start, request.suite.primary))
                work = _fixed_work(recorder, builds[0], sizes, generator, callgrind, earlier)
                policy = _policy(recorder, verdicts, work, home)
                copies = copies_of(request, home, progress)
                measurement = RoundMeasurement(request, sizes, generator, profiling, copies)
                layouts = link_layouts(request, builds, outcome.uid, folder, progress)
                rounds = Rounds(request, serve, measurement, recorder, policy, verdicts, progress, layouts)
                active = ActiveSession(outcome.uid, rounds, builds, sizes, folder)
                outcome.had_time = _measure(active, driver, home, began)
            status = SessionStatus.FINISHED
        except NothingLoadedError as error:  # why is among the failures
            progress.note(str(error))
        except BaseException as error:
            _end_early(outcome.uid, recorder, error, is_driven=driver is not None)
            raise
        _conclude(outcome, recorder, builds, status)
        return outcome


def _measure(active: ActiveSession, driver: SessionDriver | None, home: Home, began: float) -> bool:
    """Measure the rounds that the driver chooses, or the request; return whether there was time for all."""
    if driver is None:
        return active.rounds.run(active.builds, active.folder, home.logs, began)
    driver(active)
    return True


def _fixed_work(
    recorder: RunRecorder,
    first: Build,
    sizes: Sizes,
    generator: Generator,
    callgrind: Callgrind | None,
    earlier: BaseWork | None,
) -> tuple[CountedPasses | None, WorkProofs]:
    """Return what counts a session and what compares the work of its versions, with what it has recorded."""
    request, base, recorded = recorder.request, str(first.version), recorder.recorded
    passes = session_passes(request, base, sizes, generator, callgrind, recorded, earlier)
    if passes is not None:
        passes.keep_executed = partial(recorder.store.record_executed, recorder.session)
    return passes, session_proofs(request, base, sizes, generator, recorded, earlier)


def _policy(
    recorder: RunRecorder,
    verdicts: SequentialVerdicts,
    work: tuple[CountedPasses | None, WorkProofs],
    home: Home,
) -> FailurePolicy:
    least, keeps = recorder.request.least_rounds, recorder.request.keep_disturbed
    return FailurePolicy(recorder, verdicts, least, keeps, *work, home.path)


def _resumed(
    request: Request, store: Store, start: SessionStart, builds: Sequence[Build], progress: Progress
) -> InterruptedSession | None:
    """Return the session that is resumed, or None; say which one is not, and why, if somebody has asked."""
    if not request.resume:
        return None
    since = resumable_since()
    resumed = store.resume_session(start, builds, since)
    if resumed is None and request.explains_resume:
        nearest = store.nearest_interrupted(start, builds, since)
        if nearest is None:
            progress.note("nothing is resumed: no session was interrupted here; a new one begins")
        else:
            progress.note(
                f"session {nearest.uid} of {nearest.started_at:%Y-%m-%d %H:%M} UTC is not resumed: "
                f"{'; '.join(nearest.reasons)}; a new one begins"
            )
    return resumed


def _is_worth_it(request: Request, builds: Sequence[Build]) -> bool:
    """Return whether there is anything to measure: where a contender is needed, the base and one of them."""
    if not request.needs_contender:
        return bool(builds)
    return len(builds) > 1 and builds[0].version == request.versions[0]


def _conclude(
    outcome: SessionOutcome, recorder: RunRecorder, builds: Sequence[Build], status: SessionStatus
) -> None:
    """End a session with a status, after what the rounds showed was added to its outcome and its options.

    A failure is a version's own only if the base did not fail beside it: what keeps every version from being
    measured is the machine, or the suite.
    """
    base = str(recorder.request.versions[0])
    is_base_well = base in recorder.measured or base not in recorder.failed
    cause_of = {} if is_base_well else {"cause": FailureCause.MACHINE}
    outcome.failed |= {name: replace(failure, **cause_of) for name, failure in recorder.failed.items()}
    outcome.without_result = frozenset(str(build.version) for build in builds) - recorder.measured
    outcome.disturbed = recorder.is_disturbed
    failed = {str(version): failure for version, failure in outcome.not_built.items()} | outcome.failed
    if failed:
        recorder.store.record_failed(recorder.session, failed)
    if recorder.request.has_deadline and not outcome.had_time:
        recorder.store.record_out_of_time(recorder.session)
    if status is SessionStatus.FAILED and outcome.was_hindered:
        status = SessionStatus.INTERRUPTED  # what it has can be continued
    recorder.store.finish_session(recorder.session, status)


def _announce(
    progress: Progress,
    start: SessionStart,
    where: str,
    resumed: InterruptedSession | None,
    changed: Sequence[str],
    request: Request,
) -> None:
    uid, again = start.uid, ""
    if resumed is not None:
        done, most = len(resumed.recorded), request.most_rounds * len(request.steps)
        many = counted(done, request.round_name)
        if request.least_rounds == request.most_rounds:
            many = f"{done} of {counted(most, request.round_name)}"
        uid, again = resumed.uid, f", resumed after {many} of steps"
    declared = str(Declared.of(start.options))
    declared = f" with {declared}" if declared else ""
    progress.note(f"session {uid}: {start.suite}, {start.profile}{declared}, in {where}{again}")
    ignored = environment.without_effect(environment.left_out(environment.MEASURED))
    if ignored:
        progress.note(f"servers and clients do not get these environment variables: {', '.join(ignored)}")
    for change in changed:
        progress.note(f"the machine has changed since its last session: {change}")


def _stored(uid: str, recorder: RunRecorder) -> str:
    """Return what an interrupted session has stored, and how it is continued."""
    if not recorder.rounds:
        return f"session {uid}: no {recorder.request.round_name} was finished, and none is stored"
    request, what = recorder.request, recorder.request.round_name
    count = (
        f"1 {what} of a step is" if recorder.rounds == 1 else f"{counted(recorder.rounds, what)} of steps are"
    )
    again = request.resumed_by or ("the same command" if request.resume else "")
    return f"session {uid}: {count} stored" + (
        f"; to resume within {RESUMABLE_HOURS:g} hours: {again}" if again else ""
    )


def _end_early(uid: str, recorder: RunRecorder, error: BaseException, *, is_driven: bool) -> None:
    """End a session that `error` ended, and note in it what is stored; who drives a session notes it itself.

    That the history refuses even this must not hide the error. A session that is left running is interrupted
    by the next one, once this process has ended.
    """
    is_resumable = isinstance(error, INTERRUPTING)
    if is_resumable and not is_driven:
        error.add_note(_stored(uid, recorder))
    status = SessionStatus.INTERRUPTED if is_resumable else SessionStatus.FAILED
    try:
        recorder.store.finish_session(recorder.session, status)
    except HistoryError as refused:
        recorder.progress.note(f"the session ended ({error!r}) and stays as running: {refused}")


def resumable_since() -> datetime:
    """Return the moment since which an interrupted session must have begun to be resumed."""
    return datetime.now(UTC) - timedelta(hours=RESUMABLE_HOURS)
