"""From the outbox to the tracker: one issue per alert, whatever request fails; and people's answers back."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from history.changes import repository
from history.errors import HistoryError
from history.escaping.characters import one_line, visible
from history.escaping.markdown import escaped
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.database import Database
from history.timestamps import now
from runners.alerting.tracker import (
    Issue,
    IssueDeletedError,
    IssueRefusedError,
    LabelsRefusedError,
    Tracker,
    TrackerBusyError,
    TrackerError,
    muting_label,
)

CLOCK_DIFFERENCE = timedelta(days=1)
"""How far the tracker's clock may be from ours: an issue older than its alert by more is not the alert's."""

MOST_FAILURES = 3
"""Failed alerts after which the tracker counts as down, and is not asked again in this delivery."""

LONGEST_TITLE, LONGEST_BODY = 250, 60_000
"""Characters of an issue; GitHub takes 256 and 65,536."""

SUMMARY_TITLE = "Several changes of performance in one night"


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

    waiting: int = 0
    """Alerts that are due at the end, whether or not the tracker was asked."""

    paused_until: datetime | None = None
    """When the tracker wants to be asked again, if it said so; no alert is sent before."""


def marker(alert: Alert) -> str:
    """The HTML comment in an issue's body by which delivery finds the issue again. It is not rendered."""
    return f"<!-- tidemark {alert.desired.fingerprint} {alert.nonce} -->"


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
        self.result = DeliveryResult()

    def run(self) -> DeliveryResult:
        """Read people's answers, then bring the tracker to the desired state, as far as it answers."""
        self._note_pause(*(alert.not_before for alert in self._alerts()))
        self._read_answers()
        self._limit_new_issues()
        self._update_summaries()
        for alert in self._alerts():
            if alert.is_due and not self._must_wait():
                self._attempt(alert, self._send)
        self.result.waiting = sum(alert.is_due for alert in self._alerts())
        return self.result

    # --- people's answers

    def _read_answers(self) -> None:
        """Mute alerts whose issue a person labelled or closed, and acknowledge their changes."""
        for alert in self._alerts():
            is_open = alert.issue_state is IssueState.OPEN and alert.muted is None
            if self._is_known(alert) and is_open and not self._must_wait():
                self._attempt(alert, self._read_answer)

    def _read_answer(self, alert: Alert) -> None:
        assert alert.issue is not None
        self._mute_if_answered(alert, self._tracker.read(alert.issue))

    def _mute_if_answered(self, alert: Alert, issue: Issue) -> bool:
        """Mute an alert whose issue a person labelled or closed; whether it is muted now.

        An issue without the marker may be somebody's. A label counts where the number is surely ours, so that
        a person can settle what is refused because the marker was removed.
        """
        is_marked = marker(alert) in issue.body
        label = muting_label(issue.labels)
        if label is not None and (is_marked or alert.repository == self._tracker.repository):
            self._mute(alert, f"label {label} of #{issue.number}")
        elif is_marked and _closed_by_person(alert, issue):
            self._mute(alert, f"#{issue.number} was closed by a person")
        else:
            return False
        return True

    def _mute(self, alert: Alert, reason: str) -> None:
        with self._database.writing() as connection:
            alert_outbox.mute(connection, alert, reason)
            if alert.desired.kind is AlertKind.CHANGE:
                with suppress(HistoryError):  # the change was pruned: its alert is muted all the same
                    repository.acknowledge(connection, alert.desired.fingerprint, reason, self._clock())
        self.result.muted.append(alert.desired.fingerprint)

    # --- the limit of new issues, and summaries of the rest

    def _limit_new_issues(self) -> None:
        """Move what exceeds the limit to a summary; changes come first."""
        new = [
            alert
            for alert in self._alerts()
            if alert.is_due
            and alert.issue is None
            and alert.asked_state is None
            and alert.attempts == 0
            and alert.desired.kind is not AlertKind.SUMMARY
        ]
        by_importance = sorted(new, key=lambda alert: alert.desired.kind is not AlertKind.CHANGE)
        kept = {alert.id for alert in by_importance[: self._most_new]}
        excess = [alert for alert in new if alert.id not in kept]
        if excess:
            self._summarize(excess)

    def _summarize(self, excess: Sequence[Alert]) -> None:
        moment = self._clock()
        name = f"summary-{moment:%Y%m%d-%H%M%S}"
        with self._database.writing() as connection:
            for alert in excess:
                alert_outbox.move_to_summary(connection, alert, name)
            summary = DesiredIssue(name, AlertKind.SUMMARY, SUMMARY_TITLE, "", IssueState.OPEN)
            alert_outbox.set_desired(connection, [summary], moment)

    def _update_summaries(self) -> None:
        alerts = self._alerts()
        summaries = [
            _summary(
                alert.desired,
                [other.desired for other in alerts if other.summary == alert.desired.fingerprint],
            )
            for alert in alerts
            if alert.desired.kind is AlertKind.SUMMARY
        ]
        if summaries:
            with self._database.writing() as connection:
                alert_outbox.set_desired(connection, summaries, self._clock())

    # --- one alert

    def _must_wait(self) -> bool:
        paused = self.result.paused_until
        return paused is not None or self._failures >= MOST_FAILURES

    def _note_pause(self, *moments: datetime | None) -> None:
        """Ask nothing more in this delivery when the tracker wants to be asked later."""
        later = [moment for moment in (*moments, self.result.paused_until) if moment is not None]
        self.result.paused_until = max((moment for moment in later if moment > self._clock()), default=None)

    def _attempt(self, alert: Alert, act: Callable[[Alert], None]) -> None:
        try:
            act(alert)
        except TrackerError as error:
            if isinstance(error, IssueDeletedError) and self._is_known(alert):
                self._mute(alert, f"#{alert.issue} was deleted")
                return
            self.result.failed[alert.desired.fingerprint] = str(error)
            self._failures += not isinstance(error, IssueRefusedError)
            retry_at = error.retry_at if isinstance(error, TrackerBusyError) else None
            self._note_pause(retry_at)
            with self._database.writing() as connection:
                alert_outbox.mark_failed(connection, alert, str(error), retry_at)

    def _send(self, alert: Alert) -> None:
        known = self._existing(alert)
        issue = known or self._open(alert)
        if issue is None:
            return
        if known is not None:
            if self._mute_if_answered(alert, known):
                return
            self._require_own(alert, known)
            self._update(alert, known)
        if known is None or alert.asked_state is not None or alert.desired.state is IssueState.CLOSED:
            issue = self._close_duplicates(alert, issue, keeps_oldest=known is None)
        with self._database.writing() as connection:
            alert_outbox.mark_sent(connection, alert, issue.number, self._tracker.repository)

    def _is_known(self, alert: Alert) -> bool:
        """Whether the outbox knows the number of the alert's issue in this tracker's repository."""
        return alert.issue is not None and alert.repository in (None, self._tracker.repository)

    def _existing(self, alert: Alert) -> Issue | None:
        """The alert's issue. The outbox may not know of it, because the answer to `create` can be lost."""
        if self._is_known(alert):
            assert alert.issue is not None
            return self._tracker.read(alert.issue)
        ours = self._tracker.find(marker(alert), alert.created_at - CLOCK_DIFFERENCE)
        if not ours:
            return None
        # Who closed it is known of an issue that is read alone.
        return self._tracker.read(ours[0].number) if ours[0].state is IssueState.CLOSED else ours[0]

    def _require_own(self, alert: Alert, issue: Issue) -> None:
        """Raise IssueRefusedError for an issue that is not surely this alert's: it is somebody's."""
        if issue.moved_to is not None:
            raise IssueRefusedError(
                f"#{alert.issue} was transferred to {issue.moved_to}#{issue.number} and is not changed there",
                where=self._tracker.repository,
                hint="transfer it back, or label it `acknowledged` there",
            )
        if marker(alert) not in issue.body:
            raise IssueRefusedError(
                f"#{issue.number} is not changed: its body does not hold {marker(alert)}",
                where=self._tracker.repository,
                hint="put that line back into its body, or label it `acknowledged`, if it is this alert's",
            )

    def _open(self, alert: Alert) -> Issue | None:
        """Open the alert's issue; None for one that was asked for in vain and is not needed any more."""
        desired = alert.desired
        with self._database.writing() as connection:
            if desired.state is IssueState.CLOSED:
                alert_outbox.mark_never_opened(connection, alert)
                return None
            alert_outbox.mark_asked(connection, alert, desired.state, alert.issue_state)
        title, body = _texts(alert)
        try:
            issue = self._tracker.create(title, body, self._labels)
        except LabelsRefusedError as error:
            issue = self._tracker.create(title, body, ())
            self.result.without_labels[desired.fingerprint] = str(error)
        self.result.created.append(desired.fingerprint)
        with self._database.writing() as connection:
            alert_outbox.mark_opened(connection, alert, issue.number, self._tracker.repository)
        return issue

    def _update(self, alert: Alert, issue: Issue) -> None:
        title, body = _texts(alert)
        desired = alert.desired
        if (issue.title, issue.body, issue.state) == (title, body, desired.state):
            return
        with self._database.writing() as connection:
            # By now its state is known to be ours, which an earlier request may have left unknown.
            alert_outbox.mark_asked(connection, alert, desired.state, issue.state)
        self._tracker.edit(issue, title, body, desired.state)
        self._comment_on_state(desired, issue)

    def _close_duplicates(self, alert: Alert, issue: Issue, *, keeps_oldest: bool) -> Issue:
        """Close every other issue that is surely ours and of this alert; returns the one that is kept.

        A request that a proxy carried out twice has opened two. An issue into which a person copied the text
        has another author, or does not end with the marker.
        """
        ours = [
            other
            for other in self._tracker.find(marker(alert), alert.created_at - CLOCK_DIFFERENCE)
            if other.author
            and other.author == issue.author
            and other.state is IssueState.OPEN
            and other.body.rstrip().endswith(marker(alert))
        ]
        kept = min([issue, *ours], key=lambda other: other.number) if keeps_oldest else issue
        for other in ours:
            if other.number != kept.number:
                pointer = f"Duplicate of #{kept.number}"
                with suppress(IssueRefusedError):  # a person deleted or transferred it meanwhile
                    body = f"{pointer}.\n\n{other.body}"
                    self._tracker.edit(other, other.title, body, IssueState.CLOSED)
                    self._comment(other, pointer)
        return kept

    def _comment_on_state(self, desired: DesiredIssue, issue: Issue) -> None:
        """Comment when an issue was closed or opened again; its body says everything else."""
        if issue.state is desired.state:
            self.result.updated.append(desired.fingerprint)
            return
        closed = desired.state is IssueState.CLOSED
        (self.result.closed if closed else self.result.updated).append(desired.fingerprint)
        self._comment(issue, f"Closed: {escaped(desired.closing)}" if closed else "It is back.")

    def _comment(self, issue: Issue, text: str) -> None:
        """Sent at most once: the issue has its state by now, and its body says why."""
        try:
            self._tracker.comment(issue, text)
        except TrackerBusyError as error:
            self._note_pause(error.retry_at)
        except TrackerError:
            pass

    def _alerts(self) -> tuple[Alert, ...]:
        with self._database.reading() as connection:
            return alert_outbox.load(connection)


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


def _texts(alert: Alert) -> tuple[str, str]:
    """Title and body of the issue, as they are sent."""
    body = visible(alert.desired.body)
    if len(body) > LONGEST_BODY:
        body = f"{body[:LONGEST_BODY].rstrip()}\n\n(and more: the history has all of it)"
    return one_line(alert.desired.title, LONGEST_TITLE), f"{body}\n\n{marker(alert)}\n"


def _summary(summary: DesiredIssue, listed: Sequence[DesiredIssue]) -> DesiredIssue:
    """A summary as it should be, with a checked box for every alert that is closed."""
    is_open = any(issue.state is IssueState.OPEN for issue in listed)
    lines = [
        f"- [{'x' if issue.state is IssueState.CLOSED else ' '}] {escaped(issue.title)}" for issue in listed
    ]
    return DesiredIssue(
        summary.fingerprint,
        AlertKind.SUMMARY,
        summary.title,
        "\n".join(["Too many in one night for an issue each:", "", *lines]),
        IssueState.OPEN if is_open else IssueState.CLOSED,
        "" if is_open else "all of them are gone",
    )
