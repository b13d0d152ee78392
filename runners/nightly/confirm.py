"""What looks changed tonight is settled tonight: the old commit against the new one, interleaved."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from build.progress import Progress, ProgressTask
from build.version import parse_version
from history.changes import confirmation, repository
from history.changes.confirmation import Confirmation, ConfirmationRequest, Confirms
from history.changes.suspects import Tonight, look
from history.series.series import Night, branches_at
from history.store.records import SessionStatus
from history.store.schema import sessions
from history.store.writer import Store
from history.timestamps import to_text
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly.plan import Plan
from runners.nightly.work import Spot, request_of


@dataclass(frozen=True)
class Doubt:
    """A suspicion, and the session that settles it: the old version is its base, tonight's its contender."""

    branch: str
    request: Request

    @property
    def confirms(self) -> Confirms:
        """What is to be settled."""
        assert self.request.confirms is not None
        return self.request.confirms

    @property
    def told(self) -> str:
        """In one line."""
        old, new = self.request.versions
        what = (
            "is the change gone" if self.confirms.question is ConfirmationRequest.GONE else "has it changed"
        )
        return f"{self.branch}: {what} in {', '.join(self.confirms.steps)}: {old} against {new}"


@dataclass(frozen=True)
class SuspectOutcome:
    """What came of a doubt."""

    doubt: Doubt
    outcome: SessionOutcome
    found: tuple[Confirmation, ...]
    """Of every series that has an interval."""


def doubts(plan: Plan, spot: Spot, connection: Connection) -> list[Doubt]:
    """What the last nights at a place leave to be settled; not what a finished session has looked at."""
    tracked, place = plan.engines[spot.engine], spot.place
    lines = {f"{spot.engine}@{branch}" for branch in tracked.branches}
    least = plan.regression_percent / 100
    found = []
    for branch in branches_at(connection, place):
        if branch not in lines:
            continue
        known = repository.load(connection, branch=branch, suite=place.suite)
        tonight = look(connection, place, branch, known, least)
        if tonight is None:
            continue
        settled = _settled(connection, branch, tonight)
        for before, confirms in _open(connection, branch, tonight, least, settled):
            found.append(_doubt(spot, tracked.git, before, tonight.night, confirms))
    return found


def settle(doubt: Doubt, outcome: SessionOutcome, store: Store) -> SuspectOutcome:
    """What the session of a doubt found."""
    with store.database.reading() as connection:
        its = tuple(each for each in confirmation.load(connection) if each.uid == outcome.uid)
    return SuspectOutcome(doubt, outcome, its)


def _open(
    connection: Connection, branch: str, tonight: Tonight, least: float, settled: list[Confirms]
) -> Iterator[tuple[Night, Confirms]]:
    night = _uid(connection, tonight.night)
    for returned in tonight.returned:
        name, old = returned.change.fingerprint, returned.before
        if not any(each.change == name for each in settled):
            uid, least_left = _uid(connection, old), returned.threshold
            yield (
                old,
                Confirms(ConfirmationRequest.GONE, branch, uid, night, returned.steps, least_left, name),
            )
    looked_at = {step for each in settled for step in each.steps}
    by_night: defaultdict[Night, list[str]] = defaultdict(list)
    for each in tonight.suspects:
        if each.step not in looked_at:
            by_night[each.before].append(each.step)
            looked_at.add(each.step)
    for before, steps in by_night.items():
        confirms = Confirms(
            ConfirmationRequest.NEW, branch, _uid(connection, before), night, tuple(steps), least
        )
        yield before, confirms


def _doubt(spot: Spot, git: str | None, before: Night, night: Night, confirms: Confirms) -> Doubt:
    versions = (parse_version(before.version), parse_version(night.version))
    request = request_of(spot.task, versions, git=git)
    steps = tuple(each for each in request.suite.steps if each.name in confirms.steps)
    confirms = replace(confirms, steps=tuple(each.name for each in steps))
    return Doubt(confirms.branch, replace(request, steps=steps, until_decided=True, confirms=confirms))


def _settled(connection: Connection, branch: str, tonight: Tonight) -> list[Confirms]:
    """What finished sessions have looked at of tonight's version, whatever they found."""
    since = to_text(tonight.of_version[0].started_at)
    query = select(sessions.c.options).where(
        sessions.c.started_at >= since, sessions.c.status == SessionStatus.FINISHED
    )
    uids = {_uid(connection, night) for night in tonight.of_version}
    found = [Confirms.of(json.loads(options)) for options in connection.execute(query).scalars()]
    return [each for each in found if each is not None and each.branch == branch and each.night in uids]


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
