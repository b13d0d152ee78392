"""GitHub's issues as a tracker."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ValidationError

from history.store.alert_outbox import ClosedAs, IssueState
from runners.alerting.api.client import TIMEOUT_SECONDS, RedirectedError, TrackerApi
from runners.alerting.api.dialect import ApiRefusedError
from runners.alerting.api.github import (
    ARCHIVED_HINT,
    BLOCKED_HINT,
    GITHUB,
    SWITCHED_OFF_HINT,
    token_expiry,
)
from runners.alerting.tokens import required_token
from runners.alerting.tracker import (
    AssigneesRefusedError,
    Issue,
    IssueChangedError,
    IssueDeletedError,
    IssueEdit,
    IssueRefusedError,
    LabelsRefusedError,
    TrackerRefusedError,
)

API = "https://api.github.com"
"""Unless $GITHUB_API_URL names another."""

PAGES = "https://github.com"
"""The pages of that. A GitHub of one's own has its API below its pages, at /api/v3."""

PAGE = 100

MAX_PAGES = 100
"""Pages of issues in which one of ours is looked for."""

_DELETED = "deleted"
"""In the message for a deleted issue: 410 is the answer for every issue while they are switched off, too."""

_PLACE = re.compile(r"/repos/([^/]+/[^/]+)(?:/issues/([0-9]+))?/?$")


class _Account(BaseModel):
    login: str


class _Label(BaseModel):
    name: str


class _IssueAnswer(BaseModel):
    """What is needed of GitHub's answer about an issue."""

    number: int
    title: str
    body: str | None = None
    state: IssueState
    labels: tuple[_Label | str, ...] = ()
    assignees: tuple[_Account, ...] | None = None
    user: _Account | None = None
    closed_by: _Account | None = None
    closed_at: AwareDatetime | None = None
    state_reason: str | None = None
    url: str
    html_url: str = ""
    repository_url: str | None = None
    pull_request: Any = None

    def places(self) -> Iterator[tuple[str, int]]:
        """Repository and number as its addresses say them, which agree unless something is wrong."""
        for address in (self.url, self.repository_url):
            if address is not None:
                place = _PLACE.search(address)
                if place is None:
                    raise ValueError(f"no address of an issue: {address}")
                yield place[1], int(place[2] or self.number)


class _RepositoryAnswer(BaseModel):
    """What is needed of GitHub's answer about a repository; what it does not say is taken to be well."""

    id: int
    full_name: str
    archived: bool = False
    disabled: bool = False
    has_issues: bool = True
    private: bool = False
    permissions: dict[str, bool] = {}  # pydantic copies it


def issue_pages(url: str | None) -> str:
    """The address of an issue's page, with `{repository}` and `{number}`.

    Without a `url` in the plan, it is `$GITHUB_SERVER_URL` as in a job, else that which the API belongs to.
    """
    return f"{_pages(url)}/{{repository}}/issues/{{number}}"


def _pages(url: str | None) -> str:
    named = url or os.environ.get("GITHUB_SERVER_URL")
    if named:
        return named.rstrip("/")
    api = os.environ.get("GITHUB_API_URL", API).rstrip("/")
    return PAGES if api == API else api.removesuffix("/api/v3")


def connect(repository: str, url: str | None = None) -> "GitHubTracker":
    """The issues of `owner/name`, signed in as the environment says. Raises MissingTokenError.

    `url` is that of the pages of a GitHub of one's own, instead of `$GITHUB_API_URL`.
    """
    if url is None:
        api = os.environ.get("GITHUB_API_URL", API)
    else:
        api = API if url.rstrip("/") == PAGES else f"{url.rstrip('/')}/api/v3"
    return GitHubTracker(repository, required_token("github"), api)


class GitHubTracker:
    """The issues of one repository. It implements `runners.alerting.tracker.Tracker`."""

    def __init__(
        self,
        repository: str,
        token: str,
        url: str,
        pause_seconds: float = 1.0,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """`url` is that of the API; `pause_seconds` is kept between writes, as GitHub asks of its clients."""
        self.repository = repository
        self._api = TrackerApi(GITHUB, url, token, pause_seconds, timeout_seconds)
        self._canonical: _RepositoryAnswer | None = None

    def check(self) -> datetime | None:
        """Make sure that issues can be opened; returns when the token expires."""
        self._canonical = None
        found = self._resolved()
        problems = (
            (
                found.archived,
                "the repository is archived: its issues can only be read",
                ARCHIVED_HINT,
            ),
            (found.disabled, "the repository is disabled", BLOCKED_HINT),
            (not found.has_issues, "issues are switched off in the repository", SWITCHED_OFF_HINT),
            (
                bool(found.permissions) and not any(found.permissions.values()),
                "the token's account has no rights in the repository",
                "give it the right to write, or use a token of another account",
            ),
        )
        for is_so, what, hint in problems:
            if is_so:
                raise TrackerRefusedError(what, where=self.repository, hint=hint)
        self._require_scope(found)
        return token_expiry(self._api.headers)

    def _require_scope(self, found: _RepositoryAnswer) -> None:
        """Raise TrackerRefusedError for a classic token without the scope; of others, GitHub names none."""
        scopes = {part.strip() for part in self._api.headers.get("x-oauth-scopes", "").split(",")} - {""}
        wanted = {"repo"} if found.private else {"repo", "public_repo"}
        if scopes and not scopes & wanted:
            raise TrackerRefusedError(
                f"the token may not write issues: its scopes are {', '.join(sorted(scopes))}",
                where=self.repository,
                hint=f"give it the scope `{'repo' if found.private else 'public_repo'}`",
            )

    def newest(self, above: int) -> Iterator[Issue]:
        """The issues with a number above this one, the newest first; no pull requests.

        A page is read to its end: issues that were created within one second stand there in any order.
        """
        for page in range(1, MAX_PAGES + 1):
            query = {"state": "all", "sort": "created", "direction": "desc"}
            query |= {"per_page": str(PAGE), "page": str(page)}
            data = self._api.request(
                "GET", self._path(""), where=self.repository, query=query, allowed=self._is_within
            )
            if not isinstance(data, list):
                raise GITHUB.not_understood("no list of issues", self.repository)
            listed = [self._issue(item, self.repository) for item in data]
            for issue, answer in listed:
                if answer.pull_request is None and issue.moved_to is None and issue.number > above:
                    yield issue
            if len(listed) < PAGE or any(issue.number <= above for issue, _ in listed):
                return
        if above:
            raise TrackerRefusedError(
                f"there are more than {MAX_PAGES * PAGE} issues since #{above}",
                where=self.repository,
                hint="name a repository with fewer issues in the plan",
            )

    def read(self, number: int) -> Issue:
        """The issue with this number, or what a person transferred it to."""
        where = f"{self.repository}#{number}"
        with _about_one_issue():
            data = self._api.request("GET", self._path(f"/{number}"), where=where)
            return self._issue(data, where, number)[0]

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        sent = {"title": title, "body": body} | ({"labels": list(labels)} if labels else {})
        try:
            data = self._send("POST", "", self.repository, sent)
        except ApiRefusedError as error:
            if labels and error.status in (403, 422) and "label" in error.message.lower():
                raise LabelsRefusedError(error.what, where=error.where, hint=error.hint) from None
            if error.status == 422:
                raise IssueRefusedError(error.what, where=error.where, hint=error.hint) from None
            raise
        issue, _ = self._issue(data, self.repository)
        if issue.moved_to is not None:
            raise TrackerRefusedError(
                f"the tracker opened the issue in {issue.moved_to}",
                where=self.repository,
                hint="close it there; name the right repository in the plan",
            )
        return issue

    def edit(self, issue: Issue, edit: IssueEdit) -> Issue:
        """Change an issue that is as it was read.

        GitHub takes no condition with an edit (If-Match is for reading alone), so that it is read again
        right before.
        """
        where = self._required(issue)
        with _about_one_issue():
            self._api.pause()  # before it is read, so that as little time as possible lies between
            present = self.read(issue.number)
            if not present.is_as(issue):
                raise IssueChangedError(present, where=self.repository)
            sent: dict[str, Any] = {}
            if edit.title is not None:
                sent["title"] = edit.title
            if edit.body is not None:
                sent["body"] = edit.body
            if edit.state is not None:
                closes = edit.state is IssueState.CLOSED
                sent |= {"state": edit.state, "state_reason": edit.closed_as if closes else "reopened"}
            if edit.assignees is not None:
                sent["assignees"] = list(edit.assignees)
            try:
                data = self._send("PATCH", f"/{issue.number}", where, sent)
            except ApiRefusedError as error:
                if edit.assignees and error.status == 422 and "assignee" in error.message.lower():
                    raise AssigneesRefusedError(error.what, where=error.where, hint=error.hint) from None
                raise
            return self._issue(data, where, issue.number)[0]

    def remove_label(self, issue: Issue, label: str) -> None:
        """Take a label from an issue."""
        where = self._required(issue)
        with _about_one_issue():
            self._send("DELETE", f"/{issue.number}/labels/{quote(label, safe='')}", where, None)

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment."""
        where = self._required(issue)
        with _about_one_issue():
            self._send("POST", f"/{issue.number}/comments", where, {"body": text})

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        """GitHub lets nobody close or label an issue of others who may not at least triage the repository."""
        return True

    # --- requests

    def _send(self, method: str, path: str, where: str, body: Any) -> Any:
        """A write. It follows no redirect to another repository, where a transferred issue would lead."""
        return self._api.request(method, self._path(path), where=where, body=body, allowed=self._is_within)

    def _path(self, rest: str) -> str:
        name = self._canonical.full_name if self._canonical else self.repository
        return f"repos/{name}/issues{rest}"

    def _required(self, issue: Issue) -> str:
        """How errors name the issue. Raises IssueRefusedError for one that is in another repository."""
        if issue.moved_to is not None:
            raise IssueRefusedError(
                f"the issue was transferred to {issue.moved_to}#{issue.number}, where nothing is changed",
                where=self.repository,
                hint="transfer it back, or label it `acknowledged` there",
            )
        return f"{self.repository}#{issue.number}"

    # --- which repository is ours

    def _resolved(self) -> _RepositoryAnswer:
        """The repository under its present name: the plan may have that of before it was renamed."""
        if self._canonical is None:
            data = self._api.request("GET", f"repos/{self.repository}", where=self.repository)
            try:
                self._canonical = _RepositoryAnswer.model_validate(data)
            except ValidationError:
                raise GITHUB.not_understood("no repository", self.repository) from None
        return self._canonical

    def _is_ours(self, name: str) -> bool:
        return name.lower() == self.repository.lower() or name.lower() == self._resolved().full_name.lower()

    def _is_within(self, path: str) -> bool:
        """Whether a path of the API is in the repository, which GitHub names by number when it redirects."""
        own = self._resolved()
        return ".." not in path and f"{path}/".lower().startswith(
            (f"repositories/{own.id}/", f"repos/{own.full_name.lower()}/")
        )

    # --- answers

    def _issue(self, data: Any, where: str, number: int | None = None) -> tuple[Issue, _IssueAnswer]:
        """An issue, which should have this number, from an answer."""
        try:
            answer = _IssueAnswer.model_validate(data)
            places = tuple(answer.places())
        except ValueError:  # pydantic's are among them
            raise GITHUB.not_understood("no issue", where) from None
        others = [name for name, place in places if not self._is_ours(name)]
        numbers = {place for _, place in places} | {answer.number}
        if not others and numbers != {number or answer.number}:
            raise GITHUB.not_understood(f"issue {answer.number}, which was not asked for", where)
        issue = Issue(
            answer.number,
            answer.title,
            answer.body or "",
            answer.state,
            tuple(label if isinstance(label, str) else label.name for label in answer.labels),
            tuple(account.login for account in answer.assignees or ()),
            author=answer.user.login if answer.user else "",
            closed_by=answer.closed_by.login if answer.closed_by else "",
            closed_as=_closed_as(answer),
            closed_at=answer.closed_at and answer.closed_at - self._api.clock_difference,
            address=answer.html_url,
            moved_to=others[0] if others else None,
        )
        return issue, answer


def _closed_as(answer: _IssueAnswer) -> ClosedAs | None:
    known = {closeda.value: closeda for closeda in ClosedAs}
    return known.get(answer.state_reason or "") if answer.state is IssueState.CLOSED else None


@contextmanager
def _about_one_issue() -> Iterator[None]:
    """Tell what is refused of one issue from what is refused of all of them."""
    try:
        yield
    except RedirectedError as error:
        raise IssueRefusedError(error.what, where=error.where, hint=error.hint) from None
    except ApiRefusedError as error:
        is_deleted = error.status == 410 and _DELETED in error.message.lower()
        if is_deleted or error.status in (404, 422):
            kind = IssueDeletedError if is_deleted else IssueRefusedError
            raise kind(error.what, where=error.where, hint=error.hint) from None
        raise
