"""What an issue tracker has to offer: its protocol, the types it speaks in, and its errors.

    TidemarkError
    └── TrackerError                   the tracker did not do what it was asked
        ├── TrackerBusyError           try again: it did not answer, failed inside, or asks for a pause
        │   └── IssueChangedError      the issue is not as it was read: read it again, and decide anew
        └── TrackerRefusedError        trying again is no use until a person changes something
            └── IssueRefusedError      about one issue: others may be delivered
                ├── IssueDeletedError  somebody deleted the issue
                ├── LabelsRefusedError the issue may be opened without its labels
                └── AssigneesRefusedError  nobody else is assigned; the issue is as it was

Delivery knows nothing else of trackers. Another tracker is a module in `runners/alerting/trackers/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from build.errors import TidemarkError
from history.store.alert_outbox import ClosedAs, IssueState

MUTING_LABELS = ("acknowledged", "not-a-regression")
"""Labels with which a person says that an alert is to be muted, in whatever capitals."""


def muting_label(labels: tuple[str, ...]) -> str | None:
    """The first of the labels with which a person mutes an alert; None when there is none."""
    return next((label for label in labels if label.casefold() in MUTING_LABELS), None)


@dataclass(frozen=True)
class Issue:
    """An issue as the tracker has it."""

    number: int
    title: str
    body: str
    """Markdown; empty when there is none."""

    state: IssueState
    labels: tuple[str, ...]
    assignees: tuple[str, ...] = ()
    """The accounts to which it is assigned."""

    author: str = ""
    """The account that opened it; empty when the tracker does not say."""

    closed_by: str = ""
    """The account that closed it; empty when it is open, and when the tracker does not say."""

    closed_as: ClosedAs | None = None
    """Why it was closed; None when it is open, and when the tracker does not say."""

    closed_at: datetime | None = None
    """When it was closed, by the clock of this machine; None when it is open, or when that is not known."""

    address: str = ""
    """Of its page, for people."""

    moved_to: str | None = None
    """The repository that a person transferred it to; None as long as it is in the tracker's own."""

    def is_as(self, other: "Issue") -> bool:
        """Whether nobody has changed what an edit could overwrite."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("title", "body", "state", "labels", "assignees", "moved_to")
        )


@dataclass(frozen=True)
class IssueEdit:
    """What is to be changed of an issue; None leaves a part as it is."""

    title: str | None = None
    body: str | None = None
    state: IssueState | None = None
    closed_as: ClosedAs = ClosedAs.COMPLETED
    """Why, if it is to be closed."""

    assignees: tuple[str, ...] | None = None
    """The accounts to which it is to be assigned, instead of all others. Delivery names one at most."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        return self.title is None and self.body is None and self.state is None and self.assignees is None


class Tracker(Protocol):
    """The issues of one repository. Every method raises TrackerError, whose text never holds a token."""

    repository: str
    """As the plan names it; outside GitHub, with the host before it."""

    def check(self) -> datetime | None:
        """Make sure, without changing anything, that issues can be opened, as far as the tracker says so.

        Returns when the token expires; None when that is not known.
        """

    def newest(self, above: int) -> Iterator[Issue]:
        """The issues with a number above this one, the newest first. Who closed them may be missing.

        Clocks play no part in that, because those of tracker and box can differ. With 0, it ends with the
        latest so many that the implementation looks at.
        """

    def read(self, number: int) -> Issue:
        """The issue with this number, or what a person transferred it to."""

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue, once. Raises LabelsRefusedError when it can be opened without these labels.

        An implementation does not repeat the request by itself: when the answer is lost, the issue may exist
        all the same, and delivery looks for it before it tries again.
        """

    def edit(self, issue: Issue, edit: IssueEdit) -> Issue:
        """Change an issue, which was read, found or created before, and return it as it is then.

        Raises IssueChangedError when a person has changed it since it was read. What a person writes within
        the time of one request can still be overwritten, unless the tracker compares and edits in one.
        Never edits an issue of another repository.

        Raises AssigneesRefusedError when it cannot be assigned to these accounts: nothing is changed then. A
        tracker that leaves them out without an error returns an issue without them.
        """

    def remove_label(self, issue: Issue, label: str) -> None:
        """Take a label from an issue, which was read, found or created before."""

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment to an issue, which was read, found or created before."""

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        """Whether the account that closed an issue, or that set this label, may write to the repository.

        A tracker that lets nobody else do either need not ask.
        """


class TrackerError(TidemarkError):
    """The tracker did not do what it was asked."""


class TrackerBusyError(TrackerError):
    """The same request may succeed later."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", retry_at: datetime | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_at = retry_at
        """When the tracker wants to be asked again; None when it does not say."""


class IssueChangedError(TrackerBusyError):
    """An issue is not as it was read, so that it was not edited."""

    def __init__(self, issue: Issue, *, where: str) -> None:
        super().__init__(
            f"#{issue.number} was changed meanwhile",
            where=where,
            hint="nothing of it was overwritten; it is tried again with the next night",
        )
        self.issue = issue
        """As it is now."""


class TrackerRefusedError(TrackerError):
    """The same request fails until a person changes something: token, permission, repository or text."""


class IssueRefusedError(TrackerRefusedError):
    """A request about one issue is refused, which says nothing of other issues."""


class IssueDeletedError(IssueRefusedError):
    """The issue does not exist any more."""


class LabelsRefusedError(IssueRefusedError):
    """The issue was not opened because of its labels."""


class AssigneesRefusedError(IssueRefusedError):
    """The issue was not edited because of the accounts to which it was to be assigned."""


class MissingTokenError(TrackerError):
    """There is no token to sign in with, so that nothing was asked of the tracker."""
