"""What people do to the issues of a stand-in tracker in their browsers."""

from datetime import UTC, datetime, timedelta
from typing import Any


class IssuesOfPeople:
    """Issues, as GitHub's API shows them, that people label, close, reopen and edit."""

    person: str
    """The account that does it, unless another is named."""

    url: str
    name: str
    """Of the repository."""

    def __init__(self) -> None:
        self.issues: dict[int, dict[str, Any]] = {}
        self.labelled: list[tuple[int, str, str]] = []
        """The issue, label and account of each label that a person set."""
        self.ahead = timedelta(0)
        """How far the tracker's clock is ahead of that of the tests."""

    def moment(self, days: float = 0) -> str:
        """So many days from now by the tracker's clock, as GitHub writes it."""
        return (datetime.now(UTC) + self.ahead + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def label(self, number: int, name: str, who: str = "") -> None:
        self.issues[number]["labels"].append({"name": name})
        self.labelled.append((number, name, who or self.person))

    def close(self, number: int, reason: str | None = "completed", days: float = 0, who: str = "") -> None:
        """Close an issue so many days from now; older trackers give no reason."""
        closed = {"state": "closed", "closed_by": {"login": who or self.person}, "state_reason": reason}
        self.issues[number] |= closed | {"closed_at": self.moment(days)}

    def reopen(self, number: int) -> None:
        self.issues[number] |= {"state": "open", "closed_by": None, "state_reason": "reopened"}

    def write(self, number: int, **fields: str) -> None:
        """Edit title or body in the web page, which ends lines as browsers do."""
        self.issues[number] |= {name: text.replace("\n", "\r\n") for name, text in fields.items()}
        self.issues[number]["updated_at"] = self.moment()

    def rename(self, name: str) -> None:
        self.name = name
        for number, issue in self.issues.items():
            place = f"{self.url}/repos/{name}"
            issue |= {"url": f"{place}/issues/{number}", "repository_url": place}
