"""From the outbox to the tracker: one issue per alert, whatever request fails; and people's answers back."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from history.changes.acknowledgements import acknowledge
from history.errors import HistoryError
from history.escaping.characters import JOINER, one_line, visible
from history.escaping.markdown import Markdown, md
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, ClosedAs, IssueState
from history.store.database import Database
from history.timestamps import now
from runners.alerting.answers import (
    AnswerKind,
    PersonsAnswer,
    answer_of,
    authorized_answer,
    marker_name,
)
from runners.alerting.assigning import assign
from runners.alerting.issue_block import (
    ANY_MARKER,
    IssueText,
    edited,
    is_ours_alone,
    is_written,
    new_body,
)
from runners.alerting.own_issues import OwnIssues
from runners.alerting.summaries import limit_new_issues, update_summaries
from runners.alerting.tracker import (
    Issue,
    IssueChangedError,
    IssueDeletedError,
    IssueEdit,
    IssueRefusedError,
    LabelsRefusedError,
    Tracker,
    TrackerBusyError,
    TrackerError,
    muting_label,
)

MAX_FAILURES = 3
"""Failed alerts after which the tracker counts as down, and is not asked again in this delivery."""

MAX_READINGS = 3
"""How often an issue that people change meanwhile is read anew before it is left to the next delivery."""

LONGEST_TITLE = 250
"""Characters of a title; GitHub takes 256."""


@dataclass
class DeliveryResult:
    """What a delivery did, by fingerprint."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    muted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """With the error; what was to be sent stays due."""

    without_labels: dict[str, str] = field(default_factory=dict)
    """Issues that were opened, but not with their labels, with the error."""

    not_assigned: dict[str, str] = field(default_factory=dict)
    """Issues that were not assigned as desired, with the reason."""

    unreachable: str = ""
    """The latest error that is about the tracker and not about one issue; empty without one."""

    waiting: int = 0
    """Alerts that are due at the end, whether or not the tracker was asked."""

    paused_until: datetime | None = None
    """When the tracker wants to be asked again, if it said so; no alert is sent before."""


class Delivery:
    """One pass over the outbox."""

    def __init__(
        self,
        database: Database,
        tracker: Tracker,
        labels: tuple[str, ...],
        most_new: int,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """`labels` are those of new issues, of which one pass opens at most `most_new` and a summary."""
        self._database, self._tracker = database, tracker
        self._labels, self._most_new, self._clock = labels, most_new, clock
        self._failures = 0
        """Failed alerts, but for those of which one issue was refused: others may be delivered."""
        self._own = OwnIssues(tracker)
        self.result = DeliveryResult()

    def run(self) -> DeliveryResult:
        """Read people's answers, then bring the tracker to the desired state, as far as it answers."""
        self._note_pause(*(alert.not_before for alert in self._alerts()))
        self._read_answers()
        limit_new_issues(self._database, self._most_new, self._clock())
        update_summaries(self._database, self._clock())
        for alert in self._alerts():
            if alert.is_due and not self._must_wait():
                self._attempt(alert, self._send)
        self.result.waiting = sum(alert.is_due for alert in self._alerts())
        return self.result

    # --- people's answers

    def _read_answers(self) -> None:
        """Note what people decided about open issues: they labelled, closed or reopened them."""
        for alert in self._alerts():
            is_open = alert.issue_state is IssueState.OPEN and alert.muted is None
            if self._own.is_known(alert) and is_open and not self._must_wait():
                self._attempt(alert, self._read_answer)

    def _read_answer(self, alert: Alert) -> None:
        assert alert.issue is not None
        issue = self._tracker.read(alert.issue)
        if not self._is_settled(alert, issue) and self._is_to_reopen(alert, issue):
            self._send(alert)

    def _is_to_reopen(self, alert: Alert, issue: Issue) -> bool:
        """Whether a person closed an issue who may not decide about it, so that it is opened again."""
        is_closed = issue.state is IssueState.CLOSED and alert.desired.state is IssueState.OPEN
        is_answer = answer_of(alert, issue, self._tracker.repository).kind is not AnswerKind.NONE
        return (
            is_closed and is_answer and authorized_answer(alert, issue, self._tracker).kind is AnswerKind.NONE
        )

    def _is_settled(self, alert: Alert, issue: Issue) -> bool:
        """Note what a person decided in an issue; whether nothing is to be sent because of that."""
        answer = authorized_answer(alert, issue, self._tracker)
        if answer.kind is AnswerKind.MUTED:
            self._mute(alert, answer)
            return True
        closed_at = None
        if answer.kind is AnswerKind.RESOLVED:
            closed_at = answer.closed_at or alert.resolved_at or self._clock()
        if closed_at != alert.resolved_at:
            with self._database.writing() as connection:
                alert_outbox.mark_resolved(connection, alert, closed_at)
        is_believed = closed_at is not None and not alert.is_seen_since(closed_at)
        return is_believed and alert.desired.state is IssueState.OPEN

    def _mute(self, alert: Alert, answer: PersonsAnswer) -> None:
        with self._database.writing() as connection:
            alert_outbox.mute(connection, alert, answer.reason)
            if alert.desired.kind is AlertKind.CHANGE:
                for change in alert.desired.told:
                    with suppress(HistoryError):  # the change was pruned: its alert is muted all the same
                        acknowledge(connection, change, answer.reason, self._clock(), who=answer.who)
        self.result.muted.append(alert.desired.fingerprint)

    # --- one alert

    def _must_wait(self) -> bool:
        paused = self.result.paused_until
        return paused is not None or self._failures >= MAX_FAILURES

    def _note_pause(self, *moments: datetime | None) -> None:
        """Ask nothing more in this delivery when the tracker wants to be asked later."""
        later = [moment for moment in (*moments, self.result.paused_until) if moment is not None]
        self.result.paused_until = max((moment for moment in later if moment > self._clock()), default=None)

    def _attempt(self, alert: Alert, act: Callable[[Alert], None]) -> None:
        try:
            act(alert)
        except TrackerError as error:
            if isinstance(error, IssueDeletedError) and self._own.is_known(alert):
                self._mute(alert, PersonsAnswer(AnswerKind.MUTED, f"#{alert.issue} was deleted"))
                with self._database.writing() as connection:
                    alert_outbox.mark_deleted(connection, alert)
                return
            self.result.failed[alert.desired.fingerprint] = str(error)
            if not isinstance(error, IssueRefusedError | IssueChangedError):
                self._failures += 1
                self.result.unreachable = str(error)
            retry_at = error.retry_at if isinstance(error, TrackerBusyError) else None
            self._note_pause(retry_at)
            with self._database.writing() as connection:
                alert_outbox.mark_failed(connection, alert, str(error), retry_at)

    def _send(self, alert: Alert) -> None:
        known = self._own.existing(alert)
        issue = known or self._open(alert)
        if issue is None or (known is not None and not self._update(alert, known)):
            return
        if alert.is_to_assign:
            self._assign(alert, issue)
        if known is None or alert.asked_state is not None or alert.desired.state is IssueState.CLOSED:
            asked = self._as_recorded(alert)
            issue = self._close_duplicates(asked, issue, keeps_oldest=known is None)
        with self._database.writing() as connection:
            alert_outbox.mark_sent(connection, alert, issue.number, self._tracker.repository)

    def _assign(self, alert: Alert, issue: Issue) -> None:
        why_not = assign(self._tracker, alert, issue)
        if why_not:
            self.result.not_assigned[alert.desired.fingerprint] = why_not

    def _open(self, alert: Alert) -> Issue | None:
        """Open the alert's issue; None for one that was asked for in vain and is not needed any more."""
        desired = alert.desired
        if desired.state is IssueState.CLOSED:
            with self._database.writing() as connection:
                alert_outbox.mark_never_opened(connection, alert)
            return None
        latest = self._own.latest_number(alert)
        with self._database.writing() as connection:
            alert_outbox.mark_opening(connection, alert, latest, self._tracker.repository)
        ours = _text(desired.title, desired.body)
        body = new_body(marker_name(alert), ours)
        try:
            issue = self._tracker.create(ours.title, body, self._labels)
        except LabelsRefusedError as error:
            issue = self._tracker.create(ours.title, body, ())
            self.result.without_labels[desired.fingerprint] = str(error)
        self.result.created.append(desired.fingerprint)
        with self._database.writing() as connection:
            alert_outbox.mark_opened(connection, alert, issue.number, self._tracker.repository)
        return issue

    def _update(self, alert: Alert, issue: Issue) -> bool:
        """Edit the alert's issue until it is as desired, with all that people wrote; False if it is theirs.

        Raises IssueChangedError if people change it all the time.
        """
        for reading in range(1, MAX_READINGS + 1):
            if self._is_settled(alert, issue):
                return False
            self._own.require(alert, issue)
            issue = self._without_muting(alert, issue)
            edit = _needed(alert, issue)
            if edit.is_empty:
                return True
            with self._database.writing() as connection:
                # By now its state is known to be ours, which an earlier request may have left unknown.
                alert_outbox.mark_asked(connection, alert, alert.desired.state, issue.state)
            try:
                after = self._tracker.edit(issue, edit)
            except IssueChangedError as error:
                if reading == MAX_READINGS:
                    raise
                issue = error.issue
                continue
            if edit.body is not None and not is_written(marker_name(alert), after.body, edit.body):
                raise TrackerBusyError(
                    f"#{issue.number} does not hold what was written: something changed it at the same time",
                    where=self._tracker.repository,
                    hint="it is looked at again with the next night",
                )
            break
        self._comment_on_state(alert, issue)
        return True

    def _without_muting(self, alert: Alert, issue: Issue) -> Issue:
        """Take the labels that muted it from the issue of an alert that is not muted any more."""
        muting = [label for label in issue.labels if muting_label((label,))]
        if alert.unmuted_at is None or not muting or alert.desired.state is IssueState.CLOSED:
            return issue
        for label in muting:
            with suppress(IssueRefusedError):  # a person took it away meanwhile
                self._tracker.remove_label(issue, label)
        return replace(issue, labels=tuple(label for label in issue.labels if label not in muting))

    def _close_duplicates(self, alert: Alert, issue: Issue, *, keeps_oldest: bool) -> Issue:
        """Close every other issue that is surely ours and of this alert; returns the one that is kept.

        A request that a proxy carried out twice has opened two. An issue into which a person copied the text
        has another author, or holds more than our text; and one that people have written into stays open.
        """
        name = marker_name(alert)
        ours = [
            other
            for other in self._own.marked(alert)
            if other.author
            and other.author == issue.author
            and other.state is IssueState.OPEN
            and is_ours_alone(name, other.title, other.body)
        ]
        kept = min([issue, *ours], key=lambda other: other.number) if keeps_oldest else issue
        for other in ours:
            if other.number != kept.number:
                pointer = md("Duplicate of #{:d}", kept.number)
                edit = IssueEdit(
                    body=f"{pointer}.\n\n{other.body}",
                    state=IssueState.CLOSED,
                    closed_as=ClosedAs.NOT_PLANNED,
                )
                # A person deleted, transferred or changed it meanwhile.
                with suppress(IssueRefusedError, IssueChangedError):
                    self._tracker.edit(other, edit)
                    self._comment(other, pointer)
        return kept

    def _comment_on_state(self, alert: Alert, issue: Issue) -> None:
        """Comment when an issue was closed or opened again; its body says everything else."""
        desired = alert.desired
        if issue.state is desired.state:
            self.result.updated.append(desired.fingerprint)
            return
        closed = desired.state is IssueState.CLOSED
        (self.result.closed if closed else self.result.updated).append(desired.fingerprint)
        if closed:
            self._comment(issue, md("Closed: {}", desired.closing))
        else:
            self._comment(issue, self._why_again(alert, issue))

    def _why_again(self, alert: Alert, issue: Issue) -> Markdown:
        """The comment with which an issue is opened again."""
        answer = answer_of(alert, issue, self._tracker.repository)
        seen_at = alert.desired.seen_at
        if answer.kind is AnswerKind.RESOLVED and seen_at is not None:
            closed_at = answer.closed_at or alert.resolved_at or seen_at
            return md(
                "It was closed as completed on {:%Y-%m-%d}, and the night of {:%Y-%m-%d} still shows it.",
                closed_at,
                seen_at,
            )
        if answer.kind is AnswerKind.MUTED:
            who = issue.closed_by or "Somebody"
            return md("{} closed it, who may not write to this repository: that does not count.", who)
        said = alert.desired.closing
        return md("{}{}", said[0].upper(), said[1:]) if said else md("It is back.")

    def _comment(self, issue: Issue, text: Markdown) -> None:
        """Sent at most once: the issue has its state by now, and its body says why."""
        try:
            self._tracker.comment(issue, text)
        except TrackerBusyError as error:
            self._note_pause(error.retry_at)
        except TrackerError:
            pass

    def _as_recorded(self, alert: Alert) -> Alert:
        return next(recorded for recorded in self._alerts() if recorded.id == alert.id)

    def _alerts(self) -> tuple[Alert, ...]:
        with self._database.reading() as connection:
            return alert_outbox.load(connection)


def _needed(alert: Alert, issue: Issue) -> IssueEdit:
    """What has to be changed of an issue, which keeps all that people wrote."""
    desired = alert.desired
    sent = None if alert.sent_text is None else _text(*alert.sent_text)
    title, body = edited(
        marker_name(alert), issue.title, issue.body, _text(desired.title, desired.body), sent
    )
    state = None if issue.state is desired.state else desired.state
    return IssueEdit(title, body, state, desired.closed_as)


def _text(title: str, body: str) -> IssueText:
    """Title and body of an issue, as they are sent; a log in it may hold what our comments look like."""
    shown = visible(body, keeps_joiner=True).replace(ANY_MARKER, f"<!{JOINER}{ANY_MARKER[2:]}")
    return IssueText(one_line(title, LONGEST_TITLE), shown)
