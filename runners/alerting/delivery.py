"""From the outbox to the tracker: one issue per alert, whatever request fails; and people's answers back."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from history.changes import repository
from history.errors import HistoryError
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.database import Database
from history.timestamps import now
from runners.alerting.tracker import (
    MUTING_LABELS,
    Issue,
    IssueDeletedError,
    Tracker,
    TrackerBusyError,
    TrackerError,
)

CLOCK_DIFFERENCE = timedelta(days=1)
"""How far the tracker's clock may be from ours: an issue older than its alert by more is not the alert's."""

MOST_FAILURES = 3
"""Failed alerts after which the tracker counts as down, and is not asked again in this delivery."""

SUMMARY_TITLE = "Several changes of performance in one night"


@dataclass
class DeliveryResult:
    """What a delivery did, by fingerprint."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    muted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """With the error; these alerts stay due."""


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
        self.result = DeliveryResult()

    def run(self) -> DeliveryResult:
        """Read people's answers, then bring the tracker to the desired state, as far as it answers."""
        self._read_answers()
        self._limit_new_issues()
        self._update_summaries()
        for alert in self._alerts():
            if alert.is_due and not self._must_wait(alert):
                self._attempt(alert, self._send)
        return self.result

    # --- people's answers

    def _read_answers(self) -> None:
        """Mute alerts whose issue a person labelled or closed, and acknowledge their changes."""
        for alert in self._alerts():
            is_open = alert.issue_state is IssueState.OPEN and alert.muted is None
            if alert.issue is not None and is_open and not self._must_wait(alert):
                self._attempt(alert, self._read_answer)

    def _read_answer(self, alert: Alert) -> None:
        assert alert.issue is not None
        issue = self._tracker.read(alert.issue)
        labels = [label for label in issue.labels if label in MUTING_LABELS]
        if labels:
            self._mute(alert, f"label {labels[0]} of #{issue.number}")
        elif issue.state is IssueState.CLOSED:
            self._mute(alert, f"#{issue.number} was closed by a person")

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

    def _must_wait(self, alert: Alert) -> bool:
        too_early = alert.not_before is not None and alert.not_before > self._clock()
        return too_early or len(self.result.failed) >= MOST_FAILURES

    def _attempt(self, alert: Alert, act: Callable[[Alert], None]) -> None:
        try:
            act(alert)
        except TrackerError as error:
            if isinstance(error, IssueDeletedError) and alert.issue is not None:
                self._mute(alert, f"#{alert.issue} was deleted")
                return
            self.result.failed[alert.desired.fingerprint] = str(error)
            retry_at = error.retry_at if isinstance(error, TrackerBusyError) else None
            with self._database.writing() as connection:
                alert_outbox.mark_failed(connection, alert, str(error), retry_at)

    def _send(self, alert: Alert) -> None:
        desired = alert.desired
        body = f"{desired.body}\n\n{marker(alert)}\n"
        issue = self._existing(alert)
        if issue is None:
            issue = self._tracker.create(desired.title, body, self._labels)
            self.result.created.append(desired.fingerprint)
        elif (issue.title, issue.body, issue.state) != (desired.title, body, desired.state):
            self._tracker.edit(issue, desired.title, body, desired.state)
            self._comment_on_state(desired, issue)
        with self._database.writing() as connection:
            alert_outbox.mark_sent(connection, alert, issue.number)

    def _existing(self, alert: Alert) -> Issue | None:
        """The alert's issue. The outbox may not know of it, because the answer to `create` can be lost."""
        if alert.issue is not None:
            return self._tracker.read(alert.issue)
        return self._tracker.find(marker(alert), alert.created_at - CLOCK_DIFFERENCE)

    def _comment_on_state(self, desired: DesiredIssue, issue: Issue) -> None:
        """Comment when an issue was closed or opened again; its body says everything else."""
        if issue.state is desired.state:
            self.result.updated.append(desired.fingerprint)
            return
        closed = desired.state is IssueState.CLOSED
        (self.result.closed if closed else self.result.updated).append(desired.fingerprint)
        # Sent at most once: the issue has its state by now, and its body says why.
        with suppress(TrackerError):
            self._tracker.comment(issue, f"Closed: {desired.closing}" if closed else "It is back.")

    def _alerts(self) -> tuple[Alert, ...]:
        with self._database.reading() as connection:
            return alert_outbox.load(connection)


def _summary(summary: DesiredIssue, listed: Sequence[DesiredIssue]) -> DesiredIssue:
    """A summary as it should be, with a checked box for every alert that is closed."""
    is_open = any(issue.state is IssueState.OPEN for issue in listed)
    lines = [f"- [{'x' if issue.state is IssueState.CLOSED else ' '}] {issue.title}" for issue in listed]
    return DesiredIssue(
        summary.fingerprint,
        AlertKind.SUMMARY,
        summary.title,
        "\n".join(["Too many in one night for an issue each:", "", *lines]),
        IssueState.OPEN if is_open else IssueState.CLOSED,
        "" if is_open else "all of them are gone",
    )
