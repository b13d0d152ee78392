"""A tracker without a server: its issues are in memory, and it can be away."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from history.store.alert_outbox import IssueState
from runners.alerting.tracker import Issue, IssueEdit, TrackerBusyError

REPOSITORY = "databases/performance"
HOST = "tracker.example.org"
ADDRESS = f"https://{HOST}"
ACCOUNT, PERSON = "tidemark", "alice"


class RecordedTracker:
    """Implements `runners.alerting.tracker.Tracker`."""

    def __init__(self) -> None:
        self.repository = f"{HOST}/{REPOSITORY}"
        self.issues: dict[int, Issue] = {}
        self.is_away = False

    @property
    def opened(self) -> list[Issue]:
        """The issues that are open."""
        return [issue for issue in self.issues.values() if issue.state is IssueState.OPEN]

    def close_by_person(self, commit: str, when: datetime) -> None:
        """Let a person close the open issue that names a commit."""
        for issue in self.opened:
            if commit in issue.body:
                closed = replace(issue, state=IssueState.CLOSED, closed_by=PERSON, closed_at=when)
                self.issues[issue.number] = closed

    # --- the protocol

    def check(self) -> None:
        """Do nothing but answer."""
        self._answer()

    def newest(self, above: int) -> Iterator[Issue]:
        """Yield the issues with a higher number, the newest first."""
        self._answer()
        yield from [self.issues[number] for number in sorted(self.issues, reverse=True) if number > above]

    def read(self, number: int) -> Issue:
        """Return an issue."""
        self._answer()
        return self.issues[number]

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        self._answer()
        number = len(self.issues) + 1
        address = f"{ADDRESS}/{REPOSITORY}/issues/{number}"
        issue = Issue(number, title, body, IssueState.OPEN, labels, author=ACCOUNT, address=address)
        self.issues[number] = issue
        return issue

    def edit(self, issue: Issue, edit: IssueEdit) -> Issue:
        """Change an issue."""
        self._answer()
        found = self.issues[issue.number]
        changed = replace(
            found,
            title=found.title if edit.title is None else edit.title,
            body=found.body if edit.body is None else edit.body,
            assignees=found.assignees if edit.assignees is None else edit.assignees,
        )
        if edit.state is not None and edit.state is not found.state:
            is_closed = edit.state is IssueState.CLOSED
            changed = replace(
                changed,
                state=edit.state,
                closed_by=ACCOUNT if is_closed else "",
                closed_as=edit.closed_as if is_closed else None,
            )
        self.issues[issue.number] = changed
        return changed

    def remove_label(self, issue: Issue, label: str) -> None:
        """Take a label from an issue."""
        self._answer()
        found = self.issues[issue.number]
        self.issues[issue.number] = replace(
            found, labels=tuple(name for name in found.labels if name != label)
        )

    def comment(self, issue: Issue, text: str) -> None:
        """Take a comment, which nobody reads."""
        del issue, text
        self._answer()

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        """Return that everybody may decide."""
        del issue, label
        self._answer()
        return True

    def _answer(self) -> None:
        if self.is_away:
            raise TrackerBusyError("no answer within 20 seconds", where=self.repository)
