"""What is to be asked in further sessions: what looks changed or gone, and was in no finished session yet."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from history.changes.confirmation.request import ConfirmationRequest, Confirms
from history.changes.confirmation.suspects import ReturnedChange, ScreenedNight, Suspect, find_suspects
from history.changes.level_shift import StoredChange
from history.errors import stored_options
from history.series.results import was_hindered
from history.series.series import Night
from history.store.records import CONFIRMS, Environment, SessionStatus
from history.store.schema import sessions
from history.timestamps import to_text
from suites.metrics import METRICS


@dataclass(frozen=True)
class OpenQuestion:
    """Two nights whose versions are to be measured in one session, and what it is to decide."""

    before: Night
    after: Night
    confirms: Confirms
    by_counts: bool
    """Whether counted passes alone can answer it."""


def open_questions(
    connection: Connection,
    environment: Environment,
    branch: str,
    changes: Sequence[StoredChange],
    least: float,
) -> tuple[OpenQuestion, ...]:
    """Return what to ask after the last night of a branch; nothing when the branch has no new version.

    `changes` are the stored changes of the branch and suite; `least` is the practical threshold, as a
    fraction. What finished sessions have looked at is asked again only if the machine kept them from it.
    """
    tonight = find_suspects(connection, environment, branch, changes, least)
    if tonight is None:
        return ()
    uids = {_uid(connection, night) for night in tonight.of_version}
    examined = [
        confirms
        for confirms in asked(connection, environment.suite, since=tonight.of_version[0].started_at)
        if confirms.branch == branch and confirms.night in uids
    ]
    about = {confirms.change for confirms in examined}
    returned = [found for found in tonight.returned if found.change.fingerprint not in about]
    looked_at = {step for confirms in examined for step in confirms.steps}
    suspects = [suspect for suspect in tonight.suspects if suspect.step not in looked_at]
    return (
        *(_whether_gone(connection, branch, tonight, found) for found in returned),
        *_whether_new(connection, branch, tonight, suspects, least),
    )


def whether_new(
    connection: Connection,
    branch: str,
    before: Night,
    after: Night,
    steps: Sequence[str],
    least: float,
    by_counts: bool,
) -> OpenQuestion:
    """Return the question whether the versions of two nights differ in some steps; `least` the threshold."""
    uids = (_uid(connection, before), _uid(connection, after))
    confirms = Confirms(ConfirmationRequest.NEW, branch, *uids, tuple(steps), least)
    return OpenQuestion(before, after, confirms, by_counts)


def asked(connection: Connection, suite: str, since: datetime | None = None) -> Iterator[Confirms]:
    """Iterate over what finished sessions of a suite looked into, but for those that the machine hindered."""
    query = select(sessions.c.options).where(
        sessions.c.status == SessionStatus.FINISHED,
        sessions.c.suite == suite,
        sessions.c.options.contains(f'"{CONFIRMS}"'),
    )
    if since is not None:
        query = query.where(sessions.c.started_at >= to_text(since))
    for text in connection.execute(query).scalars():
        options = stored_options(text)
        confirms = None if was_hindered(options) else Confirms.of(options)
        if confirms is not None:
            yield confirms


def _whether_gone(
    connection: Connection, branch: str, tonight: ScreenedNight, returned: ReturnedChange
) -> OpenQuestion:
    uids = (_uid(connection, returned.before), _uid(connection, tonight.night))
    name, threshold = returned.change.fingerprint, returned.threshold
    confirms = Confirms(ConfirmationRequest.GONE, branch, *uids, returned.steps, threshold, name)
    by_counts = all(METRICS[outcome.shift.metric].is_counted for outcome in returned.change.outcomes)
    return OpenQuestion(returned.before, tonight.night, confirms, by_counts)


def _whether_new(
    connection: Connection, branch: str, tonight: ScreenedNight, suspects: Sequence[Suspect], least: float
) -> Iterator[OpenQuestion]:
    """Iterate over one question for each night to compare with; a step is in one of them."""
    timed = {suspect.step for suspect in suspects if not METRICS[suspect.metric].is_counted}
    by_night: defaultdict[tuple[Night, bool], list[str]] = defaultdict(list)
    taken: set[str] = set()
    # Those by rounds first: a step with one of them is counted in the same session.
    for suspect in sorted(suspects, key=lambda suspect: suspect.step not in timed):
        if suspect.step not in taken:
            by_night[suspect.before, suspect.step not in timed].append(suspect.step)
            taken.add(suspect.step)
    for (before, by_counts), steps in by_night.items():
        yield whether_new(connection, branch, before, tonight.night, steps, least, by_counts)


def _uid(connection: Connection, night: Night) -> str:
    query = select(sessions.c.uid).where(sessions.c.id == night.session_id)
    return str(connection.execute(query).scalar_one())
