"""GitLab's issues as a tracker."""

from datetime import UTC, date, datetime, time
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ValidationError

from history.store.alert_outbox import IssueState
from runners.alerting.api.client import TIMEOUT_SECONDS, TrackerApi
from runners.alerting.api.dialect import ApiRefusedError
from runners.alerting.api.gitlab import (
    GITLAB,
    with_commands,
    with_references,
    without_commands,
    without_references,
)
from runners.alerting.rest_issues import RestIssues, TrackedRepository, closing_event
from runners.alerting.tokens import required_token
from runners.alerting.tracker import (
    AssigneesRefusedError,
    Issue,
    IssueEdit,
    LabelsRefusedError,
    TrackerRefusedError,
)

PAGES = "https://gitlab.com"
"""Unless the plan names another."""

PAGE = 100

DEVELOPER = 30
"""The access level from which on an account may write to a project."""

FINE_GRAINED = ("granular",)
"""The scopes of a token that may do what was chosen for it one by one (GitLab 19.2 and later)."""

_Answer = TypeVar("_Answer", bound=BaseModel)


class _Account(BaseModel):
    id: int
    username: str


class _IssueAnswer(BaseModel):
    """What is needed of GitLab's answer about an issue."""

    iid: int
    project_id: int
    title: str
    description: str | None = None
    state: Literal["opened", "closed"]
    labels: tuple[str, ...] = ()
    assignees: tuple[_Account, ...] = ()
    author: _Account | None = None
    closed_by: _Account | None = None
    closed_at: AwareDatetime | None = None
    web_url: str = ""


class _ProjectAnswer(BaseModel):
    """What is needed of GitLab's answer about a project; what it does not say is taken to be well."""

    id: int
    path_with_namespace: str
    archived: bool = False
    issues_enabled: bool = True
    issues_access_level: str = "enabled"


class _TokenAnswer(BaseModel):
    """What GitLab says of the token with which it is asked."""

    scopes: tuple[str, ...] = ()
    expires_at: date | None = None


class _Member(BaseModel):
    access_level: int
    state: str = "active"


class _Label(BaseModel):
    name: str


class _LabelEvent(BaseModel):
    """A label that was set or taken away."""

    user: _Account | None = None
    label: _Label | None = None
    action: str


def issue_pages(url: str | None) -> str:
    """The address of an issue's page, with `{repository}`, which holds the host, and `{number}`."""
    return f"{(url or PAGES).partition('://')[0]}://{{repository}}/-/issues/{{number}}"


def connect(repository: str, url: str | None = None) -> "GitLabTracker":
    """The issues of `group/project`, in the GitLab whose pages are at `url`. Raises MissingTokenError."""
    return GitLabTracker(repository, required_token("gitlab"), url or PAGES)


class GitLabTracker(RestIssues):
    """The issues of one project. It implements `runners.alerting.tracker.Tracker`."""

    says_missing = ("404 not found", "issue not found")

    def __init__(
        self,
        repository: str,
        token: str,
        url: str,
        pause_seconds: float = 1.0,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """`url` is that of the pages; `pause_seconds` is kept between writes, which GitLab limits."""
        api = TrackerApi(GITLAB, f"{url.rstrip('/')}/api/v4", token, pause_seconds, timeout_seconds)
        super().__init__(repository, url, api)
        self._accounts: dict[str, int] = {}
        """The numbers of accounts, as answers gave them."""

    # --- the protocol

    def remove_label(self, issue: Issue, label: str) -> None:
        """Take a label from an issue."""
        self._resolved()
        with self._about_one_issue():
            where = f"{self.repository}#{issue.number}"
            self._write("PUT", self._path(f"/{issue.number}"), where, {"remove_labels": label})

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment."""
        self._resolved()
        with self._about_one_issue():
            where, path = f"{self.repository}#{issue.number}", self._path(f"/{issue.number}/notes")
            self._write("POST", path, where, {"body": without_commands(text)})

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        """Whether who closed an issue, or set this label, has the role Developer or a higher one.

        GitLab lets the author and those who are assigned close an issue, whatever their role.
        """
        closer = self._accounts.get(issue.closed_by)
        account = closer if label is None else self._labelled_by(issue, label)
        if account is None:
            return False
        path = f"projects/{self._resolved().id}/members/all/{account}"
        try:
            data = self._api.request("GET", path, where=self.repository)
        except ApiRefusedError as error:
            if error.status == 404:
                return False
            raise
        member = self._valid(_Member, data, "no member")
        return member.access_level >= DEVELOPER and member.state == "active"

    # --- what differs

    def _ask_repository(self) -> TrackedRepository:
        path = f"projects/{quote(self._name, safe='')}"
        data = self._api.request("GET", path, where=self.repository)
        found = self._valid(_ProjectAnswer, data, "no project")
        has_issues = found.issues_enabled and found.issues_access_level != "disabled"
        return TrackedRepository(found.id, found.path_with_namespace, found.archived, has_issues)

    def _is_within(self, path: str) -> bool:
        own = self._resolved()
        named = f"projects/{quote(own.name, safe='')}/".lower()
        return ".." not in path and f"{path}/".lower().startswith((f"projects/{own.id}/", named))

    def _path(self, rest: str) -> str:
        name = str(self._known.id) if self._known else quote(self._name, safe="")
        return f"projects/{name}/issues{rest}"

    def _page(self, number: int) -> dict[str, str]:
        order = {"state": "all", "scope": "all", "order_by": "created_at", "sort": "desc"}
        return order | {"per_page": str(PAGE), "page": str(number)}

    def _issue(self, data: Any, where: str, number: int | None = None) -> Issue:
        answer = self._valid(_IssueAnswer, data, "no issue", where)
        if answer.iid != (number or answer.iid):
            raise GITLAB.not_understood(f"issue {answer.iid}, which was not asked for", where)
        if answer.project_id != self._resolved().id:
            raise GITLAB.not_understood(f"an issue of project {answer.project_id}", where)
        for account in (answer.author, answer.closed_by):
            if account is not None:
                self._accounts[account.username] = account.id
        return Issue(
            answer.iid,
            with_references(answer.title),
            with_commands(answer.description or ""),
            IssueState.OPEN if answer.state == "opened" else IssueState.CLOSED,
            answer.labels,
            tuple(account.username for account in answer.assignees),
            author=answer.author.username if answer.author else "",
            closed_by=answer.closed_by.username if answer.closed_by else "",
            closed_at=answer.closed_at and answer.closed_at - self._api.clock_difference,
            address=answer.web_url,
        )

    def _create(self, title: str, body: str, labels: tuple[str, ...]) -> Any:
        with_comma = next((label for label in labels if "," in label), None)
        if with_comma is not None:
            raise LabelsRefusedError(f"GitLab has no labels with commas: {with_comma}", where=self.repository)
        sent = {"title": without_references(title), "description": without_commands(body)}
        named = {"labels": ",".join(labels)} if labels else {}
        return self._write("POST", self._path(""), self.repository, sent | named)

    def _send_edit(self, number: int, edit: IssueEdit, where: str) -> Any:
        sent: dict[str, Any] = {
            "title": None if edit.title is None else without_references(edit.title),
            "description": None if edit.body is None else without_commands(edit.body),
            "state_event": closing_event(edit, close="close", reopen="reopen"),
        }
        if edit.assignees is not None:
            sent["assignee_ids"] = [self._account(name) for name in edit.assignees] or [0]
        kept = {name: value for name, value in sent.items() if value is not None}
        return self._write("PUT", self._path(f"/{number}"), where, kept)

    def _expiry(self) -> datetime | None:
        """The beginning of the token's last day. A token of OAuth says nothing of itself.

        What a fine-grained token may do is only known when it is tried.
        """
        where = self.repository
        try:
            data = self._api.request("GET", "personal_access_tokens/self", where=where)
        except ApiRefusedError as error:
            if error.status in (401, 403, 404):
                return None
            raise
        found = self._valid(_TokenAnswer, data, "no token")
        if "api" not in found.scopes and found.scopes != FINE_GRAINED:
            raise TrackerRefusedError(
                f"the token may not write issues: its scopes are {', '.join(found.scopes) or 'none'}",
                where=where,
                hint="give it the scope `api`",
            )
        last = found.expires_at
        return None if last is None else datetime.combine(last, time(), UTC)

    def _account(self, name: str) -> int:
        """The number of an account. One that is no member is left out by GitLab when it is assigned."""
        try:
            found = self._list("users", {"username": name})
        except ApiRefusedError as error:
            if error.status != 403:
                raise
            raise AssigneesRefusedError(error.what, where=error.where, hint=error.hint) from None
        if not found:
            raise AssigneesRefusedError(f"there is no account {name}", where=self.repository)
        return self._valid(_Account, found[0], "no account").id

    def _labelled_by(self, issue: Issue, label: str) -> int | None:
        """The number of the account that set a label last."""
        found: int | None = None
        for item in self._pages(self._path(f"/{issue.number}/resource_label_events")):
            event = self._valid(_LabelEvent, item, "no event")
            is_it = event.label is not None and event.label.name.casefold() == label.casefold()
            if is_it and event.action == "add":
                found = event.user.id if event.user else None
        return found

    def _valid(self, kind: type[_Answer], data: Any, otherwise: str, where: str = "") -> _Answer:
        try:
            return kind.model_validate(data)
        except ValidationError:
            raise GITLAB.not_understood(otherwise, where or self.repository) from None
