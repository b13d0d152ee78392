"""What looks changed in a night is measured again in it: the old commit against the new one, interleaved."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from build.progress import Progress, ProgressTask
from build.version import parse_version
from history.changes import confirmation, repository
from history.changes.confirmation import Confirmation, ConfirmationRequest, Confirms
from history.changes.suspects import ScreenedNight, find_suspects
from history.errors import stored_options
from history.series.results import was_hindered
from history.series.series import Night, branches_at
from history.store.records import SessionStatus
from history.store.schema import sessions
from history.store.writer import Store
from history.timestamps import to_text
from runners.measuring.layouts import can_lay_out
from runners.measuring.request import PASSES, Exact, Request
from runners.measuring.session import SessionOutcome
from runners.nightly.plan import Plan
from runners.nightly.work import Spot, request_of
from suites.metrics import METRICS


@dataclass(frozen=True)
class Suspicion:
    """What looks changed, or gone, and the session that decides it: its base is the old version."""

    branch: str
    request: Request
    whose: str = ""
    """The box of the pool that has the series; empty for one's own."""

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
        whose = f" of {self.whose}" if self.whose else ""
        return f"{self.branch}{whose}: {what} in {', '.join(self.confirms.steps)}: {old} against {new}"


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
        tonight = find_suspects(connection, environment, branch, known, least)
        if tonight is None:
            continue
        examined = _examined(connection, branch, tonight)
        for before, confirms, by_counts in _open(connection, branch, tonight, least, examined):
            suspicions.append(_suspicion(plan, spot, before, tonight.night, confirms, by_counts))
    return suspicions


def findings_of(outcome: SessionOutcome, store: Store) -> tuple[Confirmation, ...]:
    """What a session found in every series that has an interval."""
    with store.database.reading() as connection:
        return tuple(answer for answer in confirmation.load(connection) if answer.uid == outcome.uid)


def _open(
    connection: Connection, branch: str, tonight: ScreenedNight, least: float, examined: list[Confirms]
) -> Iterator[tuple[Night, Confirms, bool]]:
    """Yield the night to compare with, what is asked, and whether counted passes alone can answer it."""
    night = _uid(connection, tonight.night)
    for returned in tonight.returned:
        name, old = returned.change.fingerprint, returned.before
        if not any(confirms.change == name for confirms in examined):
            uid, least_left = _uid(connection, old), returned.threshold
            yield (
                old,
                Confirms(ConfirmationRequest.GONE, branch, uid, night, returned.steps, least_left, name),
                all(METRICS[member.key.metric].is_counted for member in returned.change.members),
            )
    looked_at = {step for confirms in examined for step in confirms.steps}
    timed = {candidate.step for candidate in tonight.suspects if not METRICS[candidate.metric].is_counted}
    by_night: defaultdict[tuple[Night, bool], list[str]] = defaultdict(list)
    # Those by rounds first: a step with one of them is counted in the same session.
    for suspect in sorted(tonight.suspects, key=lambda suspect: suspect.step not in timed):
        if suspect.step not in looked_at:
            by_night[suspect.before, suspect.step not in timed].append(suspect.step)
            looked_at.add(suspect.step)
    for (before, by_counts), steps in by_night.items():
        confirms = Confirms(
            ConfirmationRequest.NEW, branch, _uid(connection, before), night, tuple(steps), least
        )
        yield before, confirms, by_counts


def _suspicion(
    plan: Plan, spot: Spot, before: Night, night: Night, confirms: Confirms, by_counts: bool
) -> Suspicion:
    versions = (parse_version(before.version), parse_version(night.version))
    git, variants = plan.engines[spot.engine].git, plan.definitions()
    request = request_of(spot.task, versions, git=git, variants=variants)
    steps = tuple(step for step in request.steps if step.name in confirms.steps)
    confirms = replace(confirms, steps=tuple(step.name for step in steps))
    request = replace(request, steps=steps, confirms=confirms)
    if by_counts:
        # Minutes instead of an hour: what counts have found, counts can confirm.
        request = replace(request, exact=Exact.ONLY, repetitions=PASSES, until_decided=False, perf=None)
    else:
        layouts = (spot.task.confirm_layouts or 0) if can_lay_out(spot.engine) else 0
        rounds = max(request.repetitions, layouts)
        request = replace(
            request, until_decided=True, beside_passes=None, layouts=layouts, repetitions=rounds
        )
    return Suspicion(confirms.branch, request, spot.whose)


def _examined(connection: Connection, branch: str, tonight: ScreenedNight) -> list[Confirms]:
    """What finished sessions have looked at of tonight's version, unless the machine kept them from it."""
    since = to_text(tonight.of_version[0].started_at)
    query = select(sessions.c.options).where(
        sessions.c.started_at >= since, sessions.c.status == SessionStatus.FINISHED
    )
    uids = {_uid(connection, night) for night in tonight.of_version}
    several = map(stored_options, connection.execute(query).scalars())
    found = [Confirms.of(options) for options in several if not was_hindered(options)]
    return [asked for asked in found if asked is not None and asked.branch == branch and asked.night in uids]


def _uid(connection: Connection, night: Night) -> str:
    query = select(sessions.c.uid).where(sessions.c.id == night.session_id)
    return str(connection.execute(query).scalar_one())


class Confirming:
    """Progress of a session that confirms: it says so wherever it is shown."""

    def __init__(self, progress: Progress, branch: str) -> None:
        self._progress, self._prefix = progress, f"confirming {branch}: "

    def note(self, message: str) -> None:
        """Pass it on."""
        self._progress.note(message)

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Show it, with what it is for."""
        with self._progress.task(self._prefix + label, total) as shown:
            yield _Renamed(shown, self._prefix)


@dataclass(frozen=True)
class _Renamed:
    shown: ProgressTask
    prefix: str

    def update(self, done: float, total: float | None = None) -> None:
        self.shown.update(done, total)

    def rename(self, label: str) -> None:
        self.shown.rename(self.prefix + label)
