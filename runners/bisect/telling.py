"""The change that a bisect looks for, and its result in that change's issue, by way of the outbox."""

from collections.abc import Iterator

from sqlalchemy import Connection

from history.changes import repository
from history.changes.repository import Change, ChangeStatus
from history.store import alert_outbox
from history.store.alert_outbox import IssueState
from history.store.writer import Store
from history.timestamps import now
from runners.alerting.wanted_issues import wanted_alerts
from runners.bisect.domain.question import CandidateRange, Question, QuestionError
from runners.bisect.run.event_log import Log


def change_of(store: Store, chosen: str | None, question: Question, span: CandidateRange) -> str | None:
    """The fingerprint of the change that a bisect looks for: the one chosen, else the open one of its range.

    That is one in the same suite and step whose nights before and after are good and bad. None when there is
    none. Raises QuestionError when the chosen one does not exist.
    """
    with store.database.reading() as connection:
        if chosen is not None:
            if not any(each.fingerprint == chosen for each in repository.load(connection)):
                raise QuestionError(
                    f"there is no change {chosen}",
                    where="--change",
                    hint="./tidemark history changes lists them",
                )
            return chosen
        open_ones = repository.load(connection, suite=question.suite, statuses=[ChangeStatus.OPEN])
        fitting = [each for each in open_ones if _fits(connection, each, question, span)]
    return fitting[-1].fingerprint if fitting else None


def tell_change(store: Store, log: Log, smallest: float) -> bool:
    """Bring the issue of the change up to date, if it has one; whether anything is to be sent now.

    `smallest` is the fraction below which a change is not worth a person's time.
    """
    fingerprint = log.bisect.change
    if fingerprint is None or log.bisect.verdict is None:
        return False
    with store.database.writing() as connection:
        known = {each.wanted.fingerprint: each.wanted.state for each in alert_outbox.load(connection)}
        if known.get(fingerprint) is not IssueState.OPEN:
            return False
        wanted = [
            each for each in wanted_alerts(connection, smallest, known) if each.fingerprint == fingerprint
        ]
        alert_outbox.want(connection, wanted, now())
        return any(
            each.is_due for each in alert_outbox.load(connection) if each.wanted.fingerprint == fingerprint
        )


def _fits(connection: Connection, change: Change, question: Question, span: CandidateRange) -> bool:
    if not change.branch.startswith(f"{question.engine}@"):
        return False
    if question.step not in {each.key.step for each in change.members}:
        return False
    ends = ((change.last_before, span.points[0]), (change.first_after, span.points[-1]))
    for night, point in ends:
        commit = repository.commit_of(connection, night)
        names = set(_names(span, point.commit)) if point.commit else set()
        if night.version != point.version and commit not in names:
            return False
    return True


def _names(span: CandidateRange, commit: str) -> Iterator[str]:
    """A commit, and the one that was asked for as bad when it is collapsed into it."""
    yield commit
    if span.bad and commit == span.points[-1].commit:
        yield span.bad
