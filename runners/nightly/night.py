"""A night on a box: what is new, measured by priority within the budget."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress
from history.store import Store
from runners.alone import measuring_alone
from runners.nightly.plan import Plan
from runners.nightly.work import Session, find_work
from runners.session import Outcome, run_session


@dataclass
class Night:
    """What a night did on a box."""

    box: str
    carried_out: list[tuple[Session, Outcome]] = field(default_factory=list)
    left: list[Session] = field(default_factory=list)
    """For which there was no time: the next night begins with what is still missing."""

    problems: list[str] = field(default_factory=list)
    """What went wrong without ending the night."""

    @property
    def told(self) -> str:
        """In one line."""
        if not self.carried_out and not self.left and not self.problems:
            return "nothing is new"
        parts = [_counted(len(self.carried_out), "session")]
        parts += [f"{len(self.left)} left for want of time"] if self.left else []
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
) -> Night:
    """Carry out what is missing for a box. Raises BusyError when something else measures on the machine.

    Sessions that were interrupted are gone on with. What fails is told, and does not stop the rest; an
    interrupt does, after everything that was finished is in the history.
    """
    night = Night(box)
    with measuring_alone(home):
        with store.database.reading() as connection:
            work = find_work(plan, box, hostname, connection, home)
        night.problems += work.problems
        began, budget = clock(), plan.boxes[box].budget_minutes * 60
        for session in work.sessions:
            left = budget - (clock() - began)
            if left <= 0:
                night.left.append(session)
                continue
            _carry_out(night, _within(session, left), home, store, progress)
    return night


def _within(session: Session, seconds: float) -> Session:
    """Rounds that go on until verdicts stand end with the night's budget at the latest."""
    if not session.request.until_decided:
        return session
    limit = min(session.request.limit_seconds, seconds)
    return replace(session, request=replace(session.request, budget_seconds=limit))


def _carry_out(night: Night, session: Session, home: Home, store: Store, progress: Progress) -> None:
    try:
        night.carried_out.append((session, run_session(session.request, home, store, progress)))
    except TidemarkError as error:
        night.problems.append(f"{session.task.suite} {session.task.profile}: {error}")
        progress.note(f"the session ended: {error}")
