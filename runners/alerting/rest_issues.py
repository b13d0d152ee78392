"""The issues of a repository over a REST API, as far as GitLab's and Gitea's are alike.

Neither says of an issue that it was deleted, nor where it was moved to: both answer 404, as for a repository
that the token may not see. So the repository is asked, too, before a person is taken to have deleted one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from history.store.alert_outbox import IssueState
from runners.alerting.api.client import RedirectedError, TrackerApi
from runners.alerting.api.dialect import ApiConflictError, ApiRefusedError
from runners.alerting.tracker import (
    Issue,
    IssueChangedError,
    IssueDeletedError,
    IssueEdit,
    IssueRefusedError,
    LabelsRefusedError,
    TrackerRefusedError,
)

MAX_PAGES = 200
"""Pages of issues in which one of ours is looked for."""

_OTHER_REPOSITORY = "or name another repository in the plan (alerts.repository)"

_UNTAKEN = (400, 412, 413, 422)
"""What a tracker answers when it does not take what was sent, or not as long as the issue is as it is."""


@dataclass(frozen=True)
class TrackedRepository:
    """A repository as the tracker describes it now, which may be renamed since the plan was written."""

    id: int
    name: str
    is_archived: bool
    has_issues: bool


class RestIssues(ABC):
    """The issues of one repository: what a `runners.alerting.tracker.Tracker` over a REST API needs."""

    says_missing: tuple[str, ...]
    """What the tracker says, in small letters, with 404 for an issue that is not there."""

    def __init__(self, repository: str, url: str, api: TrackerApi) -> None:
        """`url` is that of the tracker's pages, which is a part of how the repository is known.

        Otherwise a repository with the same path in another tracker would be taken for it, and issues that
        are not there for ones that people deleted.
        """
        self.repository = f"{url.rstrip('/').partition('://')[2]}/{repository}"
        self._name = repository
        """As the plan has it."""

        self._api = api
        self._known: TrackedRepository | None = None

    # --- what differs

    @abstractmethod
    def _ask_repository(self) -> TrackedRepository:
        """Read the repository by the name in the plan."""

    @abstractmethod
    def _is_within(self, path: str) -> bool:
        """Whether a path of the API, to which it redirects, is in the repository."""

    @abstractmethod
    def _path(self, rest: str) -> str:
        """The path of its issues, and what is behind it."""

    @abstractmethod
    def _page(self, number: int) -> dict[str, str]:
        """The query for a page of all issues, the newest first."""

    @abstractmethod
    def _issue(self, data: Any, where: str, number: int | None = None) -> Issue:
        """The issue in an answer, which should have this number."""

    @abstractmethod
    def _create(self, title: str, body: str, labels: tuple[str, ...]) -> Any:
        """Ask for a new issue, once."""

    @abstractmethod
    def _send_edit(self, number: int, edit: IssueEdit, where: str) -> Any:
        """Ask for a change of an issue that was read right before."""

    @abstractmethod
    def _expiry(self) -> datetime | None:
        """When the token expires. Raises TrackerRefusedError for one that may not write issues."""

    # --- the protocol

    def check(self) -> datetime | None:
        """Make sure that issues can be opened; returns when the token expires."""
        self._known = None
        found = self._resolved()
        if found.is_archived:
            raise TrackerRefusedError(
                "the repository is archived: its issues can only be read",
                where=self.repository,
                hint=f"unarchive the repository in its settings, {_OTHER_REPOSITORY}",
            )
        if not found.has_issues:
            raise self._switched_off()
        return self._expiry()

    def newest(self, above: int) -> Iterator[Issue]:
        """The issues with a number above this one, the newest first.

        A page is read to its end: issues that were created within one second stand there in any order.
        """
        seen = 0
        for page in range(1, MAX_PAGES + 1):
            data = self._list(self._path(""), self._page(page))
            listed = [self._issue(item, self.repository) for item in data]
            seen += len(listed)
            yield from (issue for issue in listed if issue.number > above)
            if self._is_last(seen, len(listed)) or any(issue.number <= above for issue in listed):
                return
        if above:
            raise TrackerRefusedError(
                f"there are more than {seen} issues since #{above}",
                where=self.repository,
                hint="name a repository with fewer issues in the plan",
            )

    def read(self, number: int) -> Issue:
        """The issue with this number."""
        where = f"{self.repository}#{number}"
        with self._about_one_issue():
            data = self._api.request("GET", self._path(f"/{number}"), where=where, allowed=self._is_within)
            return self._issue(data, where, number)

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        self._resolved()
        try:
            data = self._create(title, body, labels)
        except ApiRefusedError as error:
            if labels and error.status in (403, *_UNTAKEN) and "label" in error.message.lower():
                raise LabelsRefusedError(error.what, where=error.where, hint=error.hint) from None
            if error.status in _UNTAKEN:
                raise IssueRefusedError(error.what, where=error.where, hint=error.hint) from None
            raise
        return self._issue(data, self.repository)

    def edit(self, issue: Issue, edit: IssueEdit) -> Issue:
        """Change an issue that is as it was read; it is read again right before."""
        self._resolved()
        with self._about_one_issue():
            self._api.pause()  # before it is read, so that as little time as possible lies between
            present = self.read(issue.number)
            if not present.is_as(issue):
                raise IssueChangedError(present, where=self.repository)
            where = f"{self.repository}#{issue.number}"
            try:
                return self._issue(self._send_edit(issue.number, edit, where), where, issue.number)
            except ApiConflictError:
                changed = self.read(issue.number)
                if changed.is_as(issue):
                    raise
                raise IssueChangedError(changed, where=self.repository) from None

    # --- requests

    def _write(self, method: str, path: str, where: str, body: Any, *, has_content: bool = True) -> Any:
        """A write. It follows no redirect to another repository."""
        return self._api.request(
            method, path, where=where, body=body, allowed=self._is_within, has_content=has_content
        )

    def _list(self, path: str, query: Mapping[str, str], *, may_be_null: bool = False) -> list[Any]:
        """One page of a list. An empty one `may_be_null`, as servers in Go write it here and there."""
        data = self._api.request("GET", path, where=self.repository, query=query, allowed=self._is_within)
        if data is None and may_be_null:
            return []
        if not isinstance(data, list):
            raise self._api.dialect.not_understood("no list", self.repository)
        return data

    def _pages(self, path: str) -> Iterator[Any]:
        """The entries of a whole list."""
        seen = 0
        for page in range(1, MAX_PAGES + 1):
            data = self._list(path, {"page": str(page)})
            yield from data
            seen += len(data)
            if self._is_last(seen, len(data)):
                return

    def _is_last(self, seen: int, count: int) -> bool:
        """Whether the latest answer was the last page, which has `count` entries; all until now have `seen`.

        A server may give fewer entries on a page than were asked for, so that their number says nothing.
        """
        headers = self._api.headers
        if count == 0:
            return True
        if "x-next-page" in headers:
            return not headers["x-next-page"].strip()
        if "link" in headers:
            return 'rel="next"' not in headers["link"]
        total = headers.get("x-total-count", "")
        return total.isdecimal() and seen >= int(total[:12])

    def _resolved(self) -> TrackedRepository:
        if self._known is None:
            self._known = self._ask_repository()
        return self._known

    def _switched_off(self) -> TrackerRefusedError:
        return TrackerRefusedError(
            "issues are switched off in the repository",
            where=self.repository,
            hint=f"switch issues on in the repository's settings, {_OTHER_REPOSITORY}",
        )

    @contextmanager
    def _about_one_issue(self) -> Iterator[None]:
        """Tell what is refused of one issue from what is refused of all of them."""
        try:
            yield
        except RedirectedError as error:
            raise IssueRefusedError(error.what, where=error.where, hint=error.hint) from None
        except ApiRefusedError as error:
            if error.status == 404:
                raise self._missing(error) from None
            if error.status in _UNTAKEN:
                raise IssueRefusedError(error.what, where=error.where, hint=error.hint) from None
            raise

    def _missing(self, error: ApiRefusedError) -> TrackerRefusedError:
        """What a 404 for an issue means. A proxy's own says nothing of the issue."""
        self._known = None
        if not self._resolved().has_issues:
            return self._switched_off()
        if any(said in error.message.lower() for said in self.says_missing):
            return IssueDeletedError(error.what, where=error.where, hint="somebody deleted the issue")
        return IssueRefusedError(error.what, where=error.where, hint=error.hint)


def closing_event(edit: IssueEdit, *, close: str, reopen: str) -> str | None:
    """What a tracker calls the change of state in an edit; None without one."""
    if edit.state is None:
        return None
    return close if edit.state is IssueState.CLOSED else reopen
