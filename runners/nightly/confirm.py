"""What looks changed in a night is measured again in it: the old commit against the new one, interleaved."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from build.progress import Progress, ProgressTask
from build.version import parse_version
from history.changes import confirmation, repository
from history.changes.confirmation import Confirmation, ConfirmationRequest, Confirms, OpenQuestion
from history.series.series import branches_at
from history.store.writer import Store
from runners.measuring.layouts import can_lay_out
from runners.measuring.request import Request, counted_alone
from runners.measuring.session import SessionOutcome
from runners.nightly.plan import Plan, Task
from runners.nightly.work import Spot, request_of


@dataclass(frozen=True)
class Suspicion:
    """What looks changed, or gone, and the session that decides it: its base is the old version."""

    branch: str
    request: Request

    @property
    def confirms(self) -> Confirms:
        """What the session is to decide."""
        assert self.request.confirms is not None
        return self.request.confirms

    def __str__(self) -> str:
        """One line for people."""
        old, new = self.request.versions
        what = (
            "is the change gone" if self.confirms.question is ConfirmationRequest.GONE else "has it changed"
        )
        return f"{self.branch}: {what} in {', '.join(self.confirms.steps)}: {old} against {new}"


@dataclass(frozen=True)
class ExaminedSuspicion:
    """A suspicion after its session."""

    suspicion: Suspicion
    outcome: SessionOutcome
    findings: tuple[Confirmation, ...]
    """One of every series that has an interval."""


def find_suspicions(plan: Plan, spot: Spot, connection: Connection) -> list[Suspicion]:
    """What looks changed or gone in the last nights in an environment, and was in no finished session yet."""
    environment = spot.environment
    least = plan.regression_percent / 100
    suspicions = []
    for branch in branches_at(connection, environment):
        if branch not in spot.branches:
            continue
        known = repository.load(connection, branch=branch, suite=environment.suite)
        questions = confirmation.open_questions(connection, environment, branch, known, least)
        suspicions += [suspicion_of(plan, spot.task, question) for question in questions]
    return suspicions


def suspicion_of(plan: Plan, task: Task, question: OpenQuestion, *, is_past: bool = False) -> Suspicion:
    """Return a question with the session that answers it; that of past commits has no layouts or profiles."""
    versions = (parse_version(question.before.version), parse_version(question.after.version))
    engine, branch = versions[1].engine, question.confirms.branch
    request = request_of(task, versions, git=plan.engines[engine].git, variants=plan.definitions(versions))
    steps = tuple(step for step in request.steps if step.name in question.confirms.steps)
    confirms = replace(question.confirms, steps=tuple(step.name for step in steps))
    request = replace(request, steps=steps, confirms=confirms)
    if question.by_counts:
        # Minutes instead of an hour: what counts have found, counts can confirm.
        return Suspicion(branch, counted_alone(request))
    request = replace(request, until_decided=True, beside_passes=None)
    if is_past:
        return Suspicion(branch, replace(request, perf=None))
    layouts = (task.confirm_layouts or 0) if can_lay_out(engine) else 0
    rounds = max(request.repetitions, layouts)
    return Suspicion(branch, replace(request, layouts=layouts, repetitions=rounds))


def examine(
    suspicion: Suspicion,
    seconds: float,
    store: Store,
    progress: Progress,
    carry_out: Callable[[Request, Progress, str], SessionOutcome | None],
) -> ExaminedSuspicion | None:
    """Carry out the session of a suspicion within some seconds; None when it could not be carried out.

    `carry_out` gets its request, a progress, and a name for messages, and returns the outcome.
    """
    progress.note(f"looked into: {suspicion}")
    request = suspicion.request
    request = replace(request, budget_seconds=min(request.limit_seconds, seconds))
    outcome = carry_out(request, _Confirming(progress, suspicion.branch), str(suspicion))
    if outcome is None:
        return None
    with store.database.reading() as connection:
        return ExaminedSuspicion(suspicion, outcome, confirmation.load(connection, uid=outcome.uid))


class _Confirming:
    """Progress of a session that confirms: it says so wherever it is shown."""

    def __init__(self, progress: Progress, branch: str) -> None:
        self._progress, self._prefix = progress, f"confirming {branch}: "

    def note(self, message: str) -> None:
        """Pass it on."""
        self._progress.note(message)

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        """Show it, with what it is for."""
        with self._progress.task(self._prefix + label, total, unit) as shown:
            yield _Renamed(shown, self._prefix)


@dataclass(frozen=True)
class _Renamed:
    shown: ProgressTask
    prefix: str

    def update(self, done: float, total: float | None = None) -> None:
        self.shown.update(done, total)

    def rename(self, label: str) -> None:
        self.shown.rename(self.prefix + label)

    def detail(self, text: str) -> None:
        self.shown.detail(text)
