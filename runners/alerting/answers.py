"""What people decided about an alert in its issue, by a label or by closing it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from history.store.alert_outbox import Alert, ClosedAs, IssueState
from runners.alerting.issue_block import end_marker
from runners.alerting.tracker import Issue, Tracker, muting_label


class AnswerKind(Enum):
    """What follows from a person's answer."""

    NONE = auto()
    RESOLVED = auto()
    """It is done, which later nights may disprove."""

    MUTED = auto()
    """Nobody wants to hear of it."""


@dataclass(frozen=True)
class PersonsAnswer:
    """What a person decided in an issue."""

    kind: AnswerKind
    reason: str = ""
    who: str = ""
    """The account; empty where the tracker does not say."""

    closed_at: datetime | None = None
    """When it was resolved; None if the tracker does not say."""

    label: str | None = None
    """The label with which it was decided; None for an issue that was closed."""


CLOCK_ERROR = timedelta(seconds=2)
"""How much later than it was a closing can seem by this machine's clock: trackers tell their clock in whole
seconds, and the answer takes its time. Who undoes a decision has seen it, so that it came before."""

NO_ANSWER = PersonsAnswer(AnswerKind.NONE)


def marker_name(alert: Alert) -> str:
    """By which an alert's issue is found, whatever its number: nobody else knows the nonce."""
    return f"{alert.desired.fingerprint} {alert.nonce}"


def is_marked(alert: Alert, issue: Issue) -> bool:
    """Whether an issue holds an alert's marker."""
    return end_marker(marker_name(alert)) in issue.body


def answer_of(alert: Alert, issue: Issue, repository: str) -> PersonsAnswer:
    """What a person decided.

    An issue without the marker may be somebody's. A label counts where the number is surely ours, so that
    a person can settle what is refused because the marker was removed.

    One that was closed as completed is believed until later nights disprove it. Any other reason mutes, and
    so does none: a tracker that knows no reasons leaves a person no other way to say it. What muted an alert
    before that was withdrawn says nothing any more.
    """
    label = muting_label(issue.labels)
    is_withdrawn = alert.unmuted_at is not None
    if label is not None and not is_withdrawn and (is_marked(alert, issue) or alert.repository == repository):
        return PersonsAnswer(AnswerKind.MUTED, f"label {label} of #{issue.number}", label=label)
    if not is_marked(alert, issue) or not _closed_by_person(alert, issue):
        return NO_ANSWER
    if alert.unmuted_at is not None:
        latest = alert.unmuted_at + CLOCK_ERROR
        if issue.closed_at is None or issue.closed_at <= latest:
            return NO_ANSWER
    if issue.closed_as is ClosedAs.COMPLETED:
        return PersonsAnswer(
            AnswerKind.RESOLVED,
            f"#{issue.number} was closed as completed",
            issue.closed_by,
            issue.closed_at,
        )
    how = f" as {issue.closed_as.replace('_', ' ')}" if issue.closed_as else ""
    return PersonsAnswer(
        AnswerKind.MUTED, f"#{issue.number} was closed{how} by a person", issue.closed_by, issue.closed_at
    )


def authorized_answer(alert: Alert, issue: Issue, tracker: Tracker) -> PersonsAnswer:
    """What a person decided who may write to the repository; nobody else counts. Raises TrackerError."""
    while True:
        answer = answer_of(alert, issue, tracker.repository)
        if answer.kind is AnswerKind.NONE or tracker.may_decide(issue, answer.label):
            return answer
        if answer.label is None:
            return NO_ANSWER
        issue = replace(issue, labels=tuple(label for label in issue.labels if label != answer.label))


def _closed_by_person(alert: Alert, issue: Issue) -> bool:
    """Whether a person closed an issue that is closed.

    Tidemark did not when it never asked for that. When it asked, and the answer was lost, the account
    decides: the one that opened the issue is Tidemark's own.
    """
    if issue.state is IssueState.OPEN:
        return False
    if alert.issue_state is IssueState.CLOSED and alert.asked_state is None:
        return False
    if IssueState.CLOSED not in (alert.issue_state, alert.asked_state):
        return True
    return issue.closed_by not in ("", issue.author)
