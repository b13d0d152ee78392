"""Issues that need no history: each is found again by the marker in its body, whoever looks for it.

Delivery (runners/alerting/delivery.py) knows numbers and secrets of its issues from the outbox. What is told
here has neither, because the history is what cannot be reached.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from history.escaping.markdown import Markdown
from history.store.alert_outbox import ClosedAs, IssueState
from history.timestamps import now
from runners.alerting.issue_block import ANY_MARKER, IssueText, edited, end_marker, new_body
from runners.alerting.tracker import (
    Issue,
    IssueChangedError,
    IssueEdit,
    LabelsRefusedError,
    Tracker,
    TrackerError,
)

TRUSTED = timedelta(days=1)
"""How long a person who closed the issue of a box as completed is believed while the trouble lasts."""

OPENED = "was opened"
"""How it is said that an issue was opened, or opened again."""

BOT = "[bot]"
"""How the names of accounts end that no person can have."""


@dataclass(frozen=True)
class DirectAlert:
    """An issue that is to be open."""

    subject: str
    """What it is about: `box-1a2b3c4d-jobs`. A subject has one open issue at most."""

    occasion: str
    """What distinguishes this time from others. An issue that a person closed for good stays closed for its
    own."""

    title: str
    text: Markdown

    @property
    def name(self) -> str:
        """The words of its markers."""
        return f"{self.subject} {self.occasion}"


class DirectIssues:
    """The issues of a tracker that Tidemark opened. Raises TrackerError."""

    def __init__(self, tracker: Tracker, labels: Sequence[str]) -> None:
        """Read all issues once. In a workflow only those count that a bot opened: markers are no secret."""
        self._tracker, self._labels = tracker, tuple(labels)
        marked = (issue for issue in tracker.newest(0) if ANY_MARKER in issue.body)
        in_workflow = bool(os.environ.get("GITHUB_ACTIONS"))
        self._ours = [issue for issue in marked if not in_workflow or issue.author.endswith(BOT)]

    def tell(self, alert: DirectAlert, told_by: str = "") -> str:
        """Open the issue of an alert, or bring it up to date; return what was done, empty for nothing.

        Nothing is done when a person closed it, as completed less than a day ago or for good, or when another
        issue is open whose marker begins with `told_by`.
        """
        known = self._about(alert.subject)
        opened = [issue for issue in known if issue.state is IssueState.OPEN]
        if opened:
            return self._update(opened[-1], alert)
        elsewhere = [issue for issue in self._about(told_by) if issue.state is IssueState.OPEN]
        if told_by and elsewhere:
            return f"#{elsewhere[-1].number} tells of it"
        for issue in known:
            if end_marker(alert.name) in issue.body and self._is_settled(
                found := self._tracker.read(issue.number)
            ):
                return self._opened_again(found)
        body = new_body(alert.name, IssueText(alert.title, alert.text))
        try:
            issue = self._tracker.create(alert.title, body, self._labels)
        except LabelsRefusedError:
            issue = self._tracker.create(alert.title, body, ())
        return f"#{issue.number} {OPENED}"

    def settle(self, subject: str, why: str) -> str:
        """Close the open issues about a subject; return what was done, empty for nothing."""
        closed = [issue for issue in self._about(subject) if issue.state is IssueState.OPEN]
        for issue in closed:
            self._tracker.edit(issue, IssueEdit(state=IssueState.CLOSED))
            with suppress(TrackerError):  # it is closed, and its last lines say why it was open
                self._tracker.comment(issue, f"Closed: {why}")
        return _numbers(closed, "closed")

    def _about(self, subject: str) -> list[Issue]:
        """The issues whose markers begin with a subject, the newest first."""
        return [issue for issue in self._ours if f"{ANY_MARKER}{subject}" in issue.body]

    def _is_settled(self, issue: Issue) -> bool:
        """Whether somebody who may write closed an issue, and not its author, who may close it, too."""
        by_other = issue.state is IssueState.CLOSED and issue.closed_by != issue.author
        return by_other and self._tracker.may_decide(issue)

    def _opened_again(self, issue: Issue) -> str:
        """Open an issue again that was closed as completed for longer than that is believed."""
        closed_at = issue.closed_at
        if issue.closed_as is not ClosedAs.COMPLETED or closed_at is None or now() - closed_at < TRUSTED:
            return f"a person closed #{issue.number}"
        self._tracker.edit(issue, IssueEdit(state=IssueState.OPEN))
        with suppress(TrackerError):
            self._tracker.comment(issue, "It lasts.")
        return f"#{issue.number} {OPENED} again"

    def _update(self, issue: Issue, alert: DirectAlert) -> str:
        """Write our part of an issue anew, under the occasion for which it was opened."""
        name = _name_in(issue, alert)
        title, body = edited(name, issue.title, issue.body, IssueText(alert.title, alert.text), None)
        if title is None and body is None:
            return ""
        with suppress(IssueChangedError):  # the next watch looks again
            self._tracker.edit(issue, IssueEdit(title=title, body=body))
        return f"#{issue.number} was updated"


def _name_in(issue: Issue, alert: DirectAlert) -> str:
    """The words of the marker that an open issue has: an earlier watch may have taken another occasion."""
    beginning = f"{ANY_MARKER}{alert.subject} "
    rest = issue.body[issue.body.rindex(beginning) + len(beginning) :]
    return f"{alert.subject} {rest.split()[0]}"


def _numbers(issues: Iterable[Issue], what: str) -> str:
    names = ", ".join(f"#{issue.number}" for issue in issues)
    return f"{names} {what}" if names else ""
