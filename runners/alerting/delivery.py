"""From the outbox to the tracker: each alert once, whatever fails on the way; and what people decided."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from history.changes import repository
from history.errors import HistoryError
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, IssueState, WantedIssue
from history.store.database import Database
from history.timestamps import now
from runners.alerting.tracker import Issue, TrackerError

SILENCING = ("acknowledged", "not-a-regression")
"""Labels with which a person says that an alert is to be heard of no more."""

CLOCKS_DIFFER = timedelta(days=1)
"""Older issues cannot be those of an alert, even when two clocks disagree."""

GIVES_UP_AFTER = 3
"""Failures in a row after which the tracker is taken to be away."""

DELETED = 410
"""The tracker's answer for an issue that somebody has deleted."""

SUMMARY_TITLE = "Several changes of performance in one night"


class Issues(Protocol):
    """What delivering needs of a tracker."""

    def find(self, marker: str, since: datetime) -> Issue | None:
        """The oldest issue created since then whose body holds `marker`."""

    def read(self, number: int) -> Issue:
        """An issue."""

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """A new issue."""

    def edit(self, issue: Issue, title: str, body: str, state: IssueState) -> None:
        """Make an issue so."""

    def comment(self, issue: Issue, text: str) -> None:
        """A comment."""


@dataclass
class Delivered:
    """What was delivered, by fingerprint."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    silenced: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """With the reason; they stay in the outbox."""


def marker(alert: Alert) -> str:
    """What finds the issue of an alert again. A comment of HTML: people do not see it."""
    return f"<!-- tidemark {alert.wanted.fingerprint} {alert.nonce} -->"


class Delivery:
    """One go through the outbox."""

    def __init__(
        self,
        database: Database,
        issues: Issues,
        labels: tuple[str, ...],
        most_new: int,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._database, self._issues = database, issues
        self._labels, self._most_new, self._clock = labels, most_new, clock
        self.outcome = Delivered()

    def run(self) -> Delivered:
        """Deliver what is due, as far as the tracker takes it."""
        self._listen()
        for alert in self._limited():
            if alert.is_due and not self._give_up(alert):
                self._attempt(alert, self._deliver)
        return self.outcome

    # --- what people decided

    def _listen(self) -> None:
        """A label, or an issue that a person closed, silences its alert, and acknowledges its change."""
        for alert in self._all():
            told = alert.issue is not None and alert.silenced is None
            if told and alert.issue_state is IssueState.OPEN and not self._give_up(alert):
                self._attempt(alert, self._read)

    def _read(self, alert: Alert) -> None:
        assert alert.issue is not None
        issue = self._issues.read(alert.issue)
        why = next(
            (f"label {label} of #{issue.number}" for label in issue.labels if label in SILENCING), None
        )
        if why is None and issue.state is IssueState.CLOSED:
            why = f"#{issue.number} was closed by a person"
        if why is not None:
            self._silence(alert, why)

    def _silence(self, alert: Alert, why: str) -> None:
        with self._database.writing() as connection:
            alert_outbox.silence(connection, alert, why)
            if alert.wanted.kind is AlertKind.CHANGE:
                with suppress(HistoryError):  # a change that was pruned: its alert is silent all the same
                    repository.acknowledge(connection, alert.wanted.fingerprint, why, self._clock())
        self.outcome.silenced.append(alert.wanted.fingerprint)

    # --- at most so many new ones

    def _limited(self) -> Sequence[Alert]:
        """The alerts, of which at most so many are new; a summary tells the others."""
        fresh = [each for each in self._all() if each.is_due and each.issue is None and each.attempts == 0]
        several = [each for each in fresh if each.wanted.kind is not AlertKind.SUMMARY]
        if len(several) > self._most_new:
            kept = sorted(several, key=lambda each: each.wanted.kind is not AlertKind.CHANGE)[
                : self._most_new
            ]
            self._sum_up([each for each in several if each not in kept])
        self._update_summaries()
        return self._all()

    def _sum_up(self, rest: Sequence[Alert]) -> None:
        moment = self._clock()
        name = f"summary-{moment:%Y%m%d-%H%M%S}"
        with self._database.writing() as connection:
            for alert in rest:
                alert_outbox.tell_within(connection, alert, name)
            wanted = WantedIssue(name, AlertKind.SUMMARY, SUMMARY_TITLE, "", IssueState.OPEN)
            alert_outbox.want(connection, [wanted], moment)

    def _update_summaries(self) -> None:
        known = self._all()
        wanted = []
        for summary in (each.wanted for each in known if each.wanted.kind is AlertKind.SUMMARY):
            its = [each.wanted for each in known if each.within == summary.fingerprint]
            state = (
                IssueState.OPEN if any(each.state is IssueState.OPEN for each in its) else IssueState.CLOSED
            )
            lines = [f"- [{'x' if each.state is IssueState.CLOSED else ' '}] {each.title}" for each in its]
            body = "\n".join(["Too many in one night for an issue each:", "", *lines])
            closing = "all of them are gone" if state is IssueState.CLOSED else ""
            wanted.append(
                WantedIssue(summary.fingerprint, AlertKind.SUMMARY, summary.title, body, state, closing)
            )
        if wanted:
            with self._database.writing() as connection:
                alert_outbox.want(connection, wanted, self._clock())

    # --- one alert

    def _give_up(self, alert: Alert) -> bool:
        waiting = alert.not_before is not None and alert.not_before > self._clock()
        return waiting or len(self.outcome.failed) >= GIVES_UP_AFTER

    def _attempt(self, alert: Alert, act: Callable[[Alert], None]) -> None:
        try:
            act(alert)
        except TrackerError as error:
            if error.status == DELETED and alert.issue is not None:
                self._silence(alert, f"#{alert.issue} was deleted")
                return
            self.outcome.failed[alert.wanted.fingerprint] = str(error)
            with self._database.writing() as connection:
                alert_outbox.failed(connection, alert, str(error), error.until)

    def _deliver(self, alert: Alert) -> None:
        body = f"{alert.wanted.body}\n\n{marker(alert)}\n"
        issue = self._known(alert)
        if issue is None:
            issue = self._issues.create(alert.wanted.title, body, self._labels)
            self.outcome.created.append(alert.wanted.fingerprint)
        elif (issue.title, issue.body, issue.state) != (alert.wanted.title, body, alert.wanted.state):
            self._issues.edit(issue, alert.wanted.title, body, alert.wanted.state)
            self._say(alert, issue)
        with self._database.writing() as connection:
            alert_outbox.sent(connection, alert, issue.number)

    def _known(self, alert: Alert) -> Issue | None:
        """Its issue, which may be there without our knowing: the answer to its creation can be lost."""
        if alert.issue is not None:
            return self._issues.read(alert.issue)
        return self._issues.find(marker(alert), alert.created_at - CLOCKS_DIFFER)

    def _say(self, alert: Alert, issue: Issue) -> None:
        """A word when an issue is closed or opened again; its body says everything else."""
        if issue.state is alert.wanted.state:
            self.outcome.updated.append(alert.wanted.fingerprint)
            return
        closed = alert.wanted.state is IssueState.CLOSED
        (self.outcome.closed if closed else self.outcome.updated).append(alert.wanted.fingerprint)
        with suppress(
            TrackerError
        ):  # said once or not at all: the issue is as it should be, its body says why
            self._issues.comment(issue, f"Closed: {alert.wanted.closing}" if closed else "It is back.")

    def _all(self) -> tuple[Alert, ...]:
        with self._database.reading() as connection:
            return alert_outbox.load(connection)
