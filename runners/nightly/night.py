"""A night on a box: what is new, measured by priority within the budget, and what looks changed, settled."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress
from history.store.writer import Store
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome, run_session
from runners.nightly.confirm import Confirming, Doubt, SuspectOutcome, doubts, settle
from runners.nightly.plan import Plan
from runners.nightly.work import PlannedSession, Spot, find_work


@dataclass
class NightResult:
    """What a night did on a box."""

    box: str
    carried_out: list[tuple[PlannedSession, SessionOutcome]] = field(default_factory=list)
    left: list[PlannedSession] = field(default_factory=list)
    """For which there was no time: the next night begins with what is still missing."""

    settled: list[SuspectOutcome] = field(default_factory=list)
    """What looked changed, or gone, and was measured again."""

    unsettled: list[Doubt] = field(default_factory=list)
    """For which there was no time: the next night looks again, unless it has newer commits."""

    problems: list[str] = field(default_factory=list)
    """What went wrong without ending the night."""

    @property
    def told(self) -> str:
        """In one line."""
        done = (self.carried_out, self.left, self.settled, self.unsettled, self.problems)
        if not any(done):
            return "nothing is new"
        parts = [_counted(len(self.carried_out), "session")]
        parts += [f"{len(self.left)} left for want of time"] if self.left else []
        parts += [f"{_counted(len(self.settled), 'suspicion')} looked into"] if self.settled else []
        unsettled = _counted(len(self.unsettled), "suspicion")
        parts += [f"{unsettled} left for want of time"] if self.unsettled else []
        parts += [_counted(len(self.problems), "problem")] if self.problems else []
        return ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def measure(
    plan: Plan,
    box: str,
    hostname: str,
    home: Home,
    store: Store,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> NightResult:
    """Carry out what is missing for a box. Raises BusyError when something else measures on the machine.

    Sessions that were interrupted are gone on with. What looks changed after one is measured again at once,
    the old commit against the new one, unless the plan does not want it. What fails is told, and does not
    stop the rest; an interrupt does, after everything that was finished is in the history.
    """
    night = NightResult(box)
    with measuring_alone(home):
        with store.database.reading() as connection:
            work = find_work(plan, box, hostname, connection, home)
        night.problems += work.problems
        began, budget = clock(), plan.boxes[box].budget_minutes * 60
        measuring = _Measuring(night, plan, home, store, progress, lambda: budget - (clock() - began))
        for spot in work.spots:
            if spot.session is None or measuring.carry_out(spot.session):
                measuring.confirm(spot)
    return night


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

    def carry_out(self, session: PlannedSession) -> bool:
        """Whether it was."""
        left = self.seconds_left()
        if left <= 0:
            self.night.left.append(session)
            return False
        session = _within(session, left)
        outcome = self._run(session.request, self.progress, f"{session.task.suite} {session.task.profile}")
        if outcome is not None:
            self.night.carried_out.append((session, outcome))
        return outcome is not None

    def confirm(self, spot: Spot) -> None:
        """Settle what the last night of each branch leaves in doubt; also of a night that was killed then."""
        if not self.plan.confirm:
            return
        with self.store.database.reading() as connection:
            found = doubts(self.plan, spot, connection)
        for doubt in found:
            left = min(self.seconds_left(), self.plan.boxes[self.night.box].confirm_minutes * 60)
            if left <= 0:
                self.night.unsettled.append(doubt)
                continue
            self.progress.note(f"looked into: {doubt.told}")
            limit = min(doubt.request.limit_seconds, left)
            request = replace(doubt.request, budget_seconds=limit)
            outcome = self._run(request, Confirming(self.progress, doubt.branch), doubt.told)
            if outcome is not None:
                self.night.settled.append(settle(doubt, outcome, self.store))

    def _run(self, request: Request, progress: Progress, what: str) -> SessionOutcome | None:
        try:
            return run_session(request, self.home, self.store, progress)
        except TidemarkError as error:
            self.night.problems.append(f"{what}: {error}")
            self.progress.note(f"the session ended: {error}")
            return None
