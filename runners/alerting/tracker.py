"""What an issue tracker has to offer: its protocol, the types it speaks in, and its errors.

    TidemarkError
    └── TrackerError                   the tracker did not do what it was asked
        ├── TrackerBusyError           try again: it did not answer, failed inside, or asks for a pause
        └── TrackerRefusedError        trying again is no use until a person changes something
            └── IssueRefusedError      about one issue: others may be delivered
                ├── IssueDeletedError  somebody deleted the issue
                └── LabelsRefusedError the issue may be opened without its labels

Delivery knows nothing else of trackers. Another tracker is a module in `runners/alerting/trackers/`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from build.errors import TidemarkError
from history.store.alert_outbox import IssueState

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
    author: str = ""
    """The account that opened it; empty when the tracker does not say."""

    closed_by: str = ""
    """The account that closed it; empty when it is open, and when the tracker does not say."""

    moved_to: str | None = None
    """The repository that a person transferred it to; None as long as it is in the tracker's own."""


class Tracker(Protocol):
    """The issues of one repository. Every method raises TrackerError, whose text never holds a token."""

    repository: str
    """As the plan names it."""

    def find(self, marker: str, since: datetime) -> tuple[Issue, ...]:
        """The issues created since then whose body holds `marker`, the oldest first.

        Who closed them may be missing.
        """

    def read(self, number: int) -> Issue:
        """The issue with this number, or what a person transferred it to."""

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue, once. Raises LabelsRefusedError when it can be opened without these labels.

        An implementation does not repeat the request by itself: when the answer is lost, the issue may exist
        all the same, and delivery looks for it before it tries again.
        """

    def edit(self, issue: Issue, title: str, body: str, state: IssueState) -> None:
        """Give an issue, which was read, found or created before, this title, body and state.

        Never edits an issue of another repository.
        """

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment to an issue, which was read, found or created before."""


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


class TrackerRefusedError(TrackerError):
    """The same request fails until a person changes something: token, permission, repository or text."""


class IssueRefusedError(TrackerRefusedError):
    """A request about one issue is refused, which says nothing of other issues."""


class IssueDeletedError(IssueRefusedError):
    """The issue does not exist any more."""


class LabelsRefusedError(IssueRefusedError):
    """The issue was not opened because of its labels."""


class MissingTokenError(TrackerError):
    """There is no token to sign in with, so that nothing was asked of the tracker."""
