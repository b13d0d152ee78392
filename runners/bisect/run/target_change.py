"""The change that a bisect looks for, among those that the history knows."""

from collections.abc import Iterator

from history.changes import repository
from history.changes.repository import Change
from history.store.records import ChangeStatus
from history.store.writer import Store
from runners.bisect.domain.question import CandidateRange, Question, QuestionError


def target_change(store: Store, chosen: str | None, question: Question, span: CandidateRange) -> str | None:
    """The fingerprint of the change that a bisect looks for: the chosen one, else the open one of its range.

    That is one in the same suite and step whose nights before and after are good and bad. None when there is
    none. Raises QuestionError when the chosen one does not exist.
    """
    with store.database.reading() as connection:
        if chosen is not None:
            if not repository.load(connection, fingerprint=chosen):
                raise QuestionError(
                    f"there is no change {chosen}",
                    where="--change",
                    hint="./tidemark history changes lists them",
                )
            return chosen
        open_changes = repository.load(connection, suite=question.suite, statuses=[ChangeStatus.OPEN])
        matching = [change for change in open_changes if _matches(change, question, span)]
    return matching[-1].fingerprint if matching else None


def _matches(change: Change, question: Question, span: CandidateRange) -> bool:
    if not change.branch.startswith(f"{question.engine}@"):
        return False
    if question.step not in {member.key.step for member in change.members}:
        return False
    ends = ((change.last_before, span.points[0]), (change.first_after, span.points[-1]))
    for night, point in ends:
        names = set(_names(span, point.commit)) if point.commit else set()
        if night.version != point.version and night.commit not in names:
            return False
    return True


def _names(span: CandidateRange, commit: str) -> Iterator[str]:
    """A commit, and the one that was asked for as bad when it is collapsed into it."""
    yield commit
    if span.bad and commit == span.points[-1].commit:
        yield span.bad
