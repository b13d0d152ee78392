"""A night on a box: what is new is measured by priority within the budget, and suspicions are examined."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from build.cache.pruning import GIGABYTE
from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress
from history.changes.needed_builds import needed_builds
from history.errors import HistoryError
from history.series.task_states import (
    WELL,
    TaskCheck,
    TaskOutcome,
    TrackedTask,
    read_states,
    record_checks,
)
from history.store.writer import Store
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome, run_session
from runners.nightly.backfill_plan import Backfill
from runners.nightly.confirm import examine, find_suspicions
from runners.nightly.night_result import NightResult, concluded
from runners.nightly.past.backfill import BackfillPlace, BackfillRun
from runners.nightly.plan import Plan, PlanError
from runners.nightly.work import PlannedSession, Spot, Target, find_work
from runners.occupancy.pause import current_pause
from runners.retention.pruning import Limits, gigabytes, prune


def measure(
    plan: Plan,
    box: str,
    hostname: str,
    home: Home,
    store: Store,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    waited_seconds: float = 0.0,
) -> NightResult:
    """Carry out what is missing for a box. Raises BusyError when something else measures on the machine.

    Interrupted sessions are resumed. What looks changed after a session is measured again at once, the old
    commit against the new one, unless the plan says otherwise. A failure is a problem of the result and does
    not stop the rest; an interrupt does, after everything that was finished is in the history. The budget
    includes `waited_seconds`, for which the night waited for the machine.
    """
    night = NightResult(box)
    with measuring_alone(home):
        with store.standing_in() as (connection, *others):
            work = find_work(plan, box, hostname, connection, home, others)
        left = _Budget(night, home, clock, plan.boxes[box].budget_minutes * 60 - waited_seconds).seconds_left
        measuring = _Measuring(night, plan, home, store, progress, left)
        measuring.begin(work.targets)
        try:
            for spot in work.spots:
                if measuring.carry_out(spot):
                    measuring.examine(spot)
        except Exception as error:
            measuring.give_up(error)
            raise
        asked = [(task, backfill) for task in plan.tasks_of(box) for backfill in task.backfill]
        if asked and measuring.seconds_left() > 0:
            try:
                filling = BackfillRun(plan, box, home, store, progress)
                _fill(night, filling, filling.places(asked, hostname), measuring.seconds_left)
            except HistoryError as error:
                night.problems.append(f"past commits: {error}")
        _prune(night, plan, home, store)
    store.deliver()
    night.problems += store.problems
    return night


def _prune(night: NightResult, plan: Plan, home: Home, store: Store) -> None:
    """Delete what the plan no longer keeps; without the history nobody knows what is needed."""
    if store.away:
        return
    kept = plan.retention
    before = store.now() - timedelta(days=kept.logs_days)
    limits = Limits(kept.builds_gb * GIGABYTE, logs_written_before=before)
    try:
        with store.database.reading() as connection:
            needed = needed_builds(connection, kept.commits)
        night.pruned = prune(home, needed, limits)
    except (TidemarkError, OSError) as error:
        night.problems.append(f"builds that nobody needs could not be deleted: {error}")
        return
    left = night.pruned.left_bytes
    if left > kept.builds_gb * GIGABYTE:
        night.problems.append(
            f"builds take {gigabytes(left)}, more than retention.builds_gb = {kept.builds_gb:g}: all of them "
            "are needed or imported, as ./tidemark build list says"
        )


def measure_past(
    plan: Plan,
    box: str,
    hostname: str,
    home: Home,
    store: Store,
    progress: Progress,
    asked: Backfill,
    clock: Callable[[], float] = time.monotonic,
    waited_seconds: float = 0.0,
) -> NightResult:
    """Measure only past commits, in all tasks of a box that measure their engine, within the night's budget.

    Raises PlanError when there is no such task, BusyError when something else measures on the machine.
    """
    night = NightResult(box)
    tasks = [task for task in plan.tasks_of(box) if asked.engine in plan.engines_of(task)]
    try:
        for task in tasks:
            plan.require_measurable(task, asked)
    except ValueError as error:
        raise PlanError(str(error)) from error
    if not tasks:
        raise PlanError(f"no task of box {box} measures {asked.engine}", hint="docs/nightly.md: tasks")
    with measuring_alone(home):
        left = _Budget(night, home, clock, plan.boxes[box].budget_minutes * 60 - waited_seconds).seconds_left
        filling = BackfillRun(plan, box, home, store, progress)
        places = filling.places([(task, asked) for task in tasks], hostname)
        _fill(night, filling, places, left)
        _prune(night, plan, home, store)
    store.deliver()
    night.problems += store.problems
    return night


def _fill(
    night: NightResult,
    filling: BackfillRun,
    places: Sequence[BackfillPlace],
    seconds_left: Callable[[], float],
) -> None:
    night.past = filling.run(places, seconds_left)
    night.problems += night.past.problems


class _Budget:
    """The time of a night, which ends early when the box is paused."""

    def __init__(self, night: NightResult, home: Home, clock: Callable[[], float], seconds: float) -> None:
        self._night, self._home, self._clock = night, home, clock
        self._end = clock() + seconds

    def seconds_left(self) -> float:
        """Return the seconds in which something may begin."""
        if self._night.pause is None:
            self._night.pause = current_pause(self._home, datetime.now(UTC))
        return 0.0 if self._night.pause is not None else self._end - self._clock()


def _within(session: PlannedSession, seconds: float) -> PlannedSession:
    """Rounds that go on until verdicts stand end with the night's budget at the latest."""
    if not session.request.until_decided:
        return session
    limit = min(session.request.limit_seconds, seconds)
    return replace(session, request=replace(session.request, budget_seconds=limit))


@dataclass(frozen=True)
class _Measuring:
    """Sessions of a night, as long as there is time."""

    night: NightResult
    plan: Plan
    home: Home
    store: Store
    progress: Progress
    seconds_left: Callable[[], float]

    def begin(self, targets: Sequence[Target]) -> None:
        """Take over everything that the plan tracks, with what is known of it before the first session."""
        since = self.record(targets, fetched_at=self.store.now())
        for target in targets:
            tracked_since = since.get(_tracked(self.night.box, target)) if not target.is_pending else None
            self.night.targets.append(replace(target, since=tracked_since))

    def carry_out(self, spot: Spot) -> bool:
        """Measure what is new in a spot; return whether suspicions may be examined there."""
        session, pending = spot.session, [target for target in spot.targets if target.is_pending]
        if session is None:
            return True
        left = self.seconds_left()
        if left <= 0:
            pause = self.night.pause
            skipped, whose = (TaskOutcome.PAUSED, str(pause)) if pause else (TaskOutcome.BUDGET, "")
            self._conclude(pending, lambda target: replace(target, outcome=skipped, reason=whose))
            return False
        session = _within(session, left)
        what = f"{session.task.suite} {session.task.profile}"
        try:
            outcome = run_session(session.request, self.home, self.store, self.progress)
        except (TidemarkError, OSError) as error:  # such as a full disk
            why = str(error)
            self.progress.note(f"the session ended: {what}: {why}")
            self._conclude(pending, lambda target: replace(target, outcome=TaskOutcome.STOPPED, reason=why))
            return False
        if outcome.uid:
            self.night.carried_out.append((session, outcome))
        self._conclude(pending, lambda target: concluded(target, session.request, outcome))
        return True

    def give_up(self, error: Exception) -> None:
        """Record that an error ended the night before what is still pending."""
        pending = [target for target in self.night.targets if target.is_pending]
        why = str(error) or type(error).__name__
        self._conclude(pending, lambda target: replace(target, outcome=TaskOutcome.STOPPED, reason=why))

    def _conclude(self, pending: Sequence[Target], conclude: Callable[[Target], Target]) -> None:
        """Put what became of targets into the night and into the history."""
        done = [conclude(target) for target in pending]
        since = self.record(done)
        for before, after in zip(pending, done, strict=True):
            place = self.night.targets.index(before)
            self.night.targets[place] = replace(after, since=since.get(_tracked(self.night.box, after)))

    def record(
        self, targets: Sequence[Target], fetched_at: datetime | None = None
    ) -> dict[TrackedTask, datetime]:
        """Write the state of targets into the history; return since when those are without a result.

        Those that are so for the first time are left out. A history that is away has no state: what is
        measured waits on the box.
        """
        box, now = self.night.box, self.store.now()
        checks = [
            TaskCheck(
                _tracked(box, target),
                target.environment.box,
                target.outcome,
                target.reason,
                None if target.version is None else str(target.version),
                fetched_at if target.was_fetched else None,
            )
            for target in targets
        ]
        if self.store.away or not checks:
            return {}
        try:
            with self.store.database.writing() as connection:
                record_checks(connection, checks, now)
                states = read_states(connection, [box])
        except HistoryError as error:
            self.progress.note(f"the state of the night is not in the history: {error}")
            return {}
        return {
            task: state.since
            for task, state in states.items()
            if state.outcome not in WELL and state.nights > 1
        }

    def examine(self, spot: Spot) -> None:
        """Measure again what looks changed in the last night of a place, which may be one that was killed."""
        if not self.plan.confirm or self.store.away:
            return
        try:
            with self.store.database.reading() as connection:
                suspicions = find_suspicions(self.plan, spot, connection)
        except HistoryError as error:  # the night goes on without it, and the next one looks again
            self.night.problems.append(f"what looks changed was not looked into: {error}")
            return
        for suspicion in suspicions:
            left = min(self.seconds_left(), self.plan.boxes[self.night.box].confirm_minutes * 60)
            if left <= 0:
                self.night.postponed.append(suspicion)
                continue
            examined = examine(suspicion, left, self.store, self.progress, self._run)
            if examined is not None:
                self.night.examined.append(examined)

    def _run(self, request: Request, progress: Progress, what: str) -> SessionOutcome | None:
        try:
            return run_session(request, self.home, self.store, progress)
        except (TidemarkError, OSError) as error:  # such as a full disk
            self.night.problems.append(f"{what}: {error}")
            self.progress.note(f"the session ended: {error}")
            return None


def _tracked(box: str, target: Target) -> TrackedTask:
    where = target.environment
    return TrackedTask(box, where.suite, where.configuration, target.tracked)
