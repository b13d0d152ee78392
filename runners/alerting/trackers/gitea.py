"""The issues of Gitea and of Forgejo as a tracker."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ValidationError

from history.store.alert_outbox import IssueState
from runners.alerting.api.client import TIMEOUT_SECONDS, TrackerApi
from runners.alerting.api.dialect import ApiRefusedError
from runners.alerting.api.gitea import GITEA
from runners.alerting.rest_issues import MAX_PAGES, RestIssues, TrackedRepository, closing_event
from runners.alerting.tokens import required_token
from runners.alerting.tracker import (
    AssigneesRefusedError,
    Issue,
    IssueEdit,
    IssueRefusedError,
    LabelsRefusedError,
    TrackerRefusedError,
)

LABEL_COLOUR = "#d93f0b"
"""Of a label that is created because the plan names it."""

_PLACE = re.compile(r"/repos/([^/]+/[^/]+)/issues/([0-9]+)$")

_Answer = TypeVar("_Answer", bound=BaseModel)


class _Account(BaseModel):
    id: int
    """Below 0 for those that are nobody's: of workflows, and of accounts that were deleted."""

    login: str


class _Label(BaseModel):
    id: int
    name: str


class _IssueAnswer(BaseModel):
    """What is needed of an answer about an issue."""

    number: int
    title: str
    body: str = ""
    state: IssueState
    labels: tuple[_Label, ...] | None = None
    assignees: tuple[_Account, ...] | None = None
    user: _Account | None = None
    closed_at: AwareDatetime | None = None
    url: str
    html_url: str = ""
    content_version: int | None = None
    """By which Gitea 1.26 and later refuse an edit of a body that somebody changed meanwhile."""


class _Event(BaseModel):
    """What happened to an issue."""

    type: str
    body: str = ""
    user: _Account | None = None
    label: _Label | None = None


class _RepositoryAnswer(BaseModel):
    """What is needed of an answer about a repository; what it does not say is taken to be well."""

    id: int
    full_name: str
    archived: bool = False
    has_issues: bool = True
    external_tracker: Any = None
    permissions: dict[str, bool] = {}  # pydantic copies it


def issue_pages(url: str | None) -> str:
    """The address of an issue's page, with `{repository}`, which holds the host, and `{number}`."""
    return f"{(url or '').partition('://')[0]}://{{repository}}/issues/{{number}}"


def connect(repository: str, url: str | None = None) -> "GiteaTracker":
    """The issues of `owner/name` in the Gitea whose pages are at `url`. Raises MissingTokenError."""
    return GiteaTracker(repository, required_token("gitea"), url or "")


class GiteaTracker(RestIssues):
    """The issues of one repository. It implements `runners.alerting.tracker.Tracker`."""

    says_missing = ("not found", "couldn't be found", "does not exist")

    def __init__(
        self,
        repository: str,
        token: str,
        url: str,
        pause_seconds: float = 0.1,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """`url` is that of the pages, which may be below a path; seconds are kept between writes."""
        api = TrackerApi(GITEA, f"{url.rstrip('/')}/api/v1", token, pause_seconds, timeout_seconds)
        super().__init__(repository, url, api)
        self._versions: dict[int, int | None] = {}
        """The version of each issue's content, as it was read last."""
        self._accounts: dict[str, int] = {}
        """The numbers of those who closed issues."""

    # --- the protocol

    def remove_label(self, issue: Issue, label: str) -> None:
        """Take a label from an issue."""
        where, path = f"{self.repository}#{issue.number}", self._path(f"/{issue.number}/labels")
        with self._about_one_issue():
            for item in self._list(path, {}):
                known = self._valid(_Label, item, "no label")
                if known.name.casefold() == label.casefold():
                    self._write("DELETE", f"{path}/{known.id}", where, None, has_content=False)
                    return
        raise IssueRefusedError(f"#{issue.number} has no label {label}", where=self.repository)

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment."""
        with self._about_one_issue():
            path = self._path(f"/{issue.number}/comments")
            self._write("POST", path, f"{self.repository}#{issue.number}", {"body": text})

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        """Whether a person closed an issue, or set this label.

        Gitea lets only those close an issue who may write to the issues, or who opened it; only those set a
        label who may write. Its own Actions can do both, and are no person.
        """
        who = self._accounts.get(issue.closed_by) if label is None else self._labelled_by(issue, label)
        return who is not None and who > 0

    # --- what differs

    def _ask_repository(self) -> TrackedRepository:
        where = self.repository
        data = self._api.request("GET", f"repos/{self._name}", where=where)
        found = self._valid(_RepositoryAnswer, data, "no repository")
        if found.permissions and not any(found.permissions.values()):
            raise TrackerRefusedError(
                "the token's account has no rights in the repository",
                where=where,
                hint="give it the right to write, or use a token of another account",
            )
        has_issues = found.has_issues and found.external_tracker is None
        return TrackedRepository(found.id, found.full_name, found.archived, has_issues)

    def _is_within(self, path: str) -> bool:
        own = f"repos/{self._resolved().name.lower()}/"
        return ".." not in path and f"{path}/".lower().startswith(own)

    def _path(self, rest: str) -> str:
        return f"repos/{self._known.name if self._known else self._name}/issues{rest}"

    def _page(self, number: int) -> dict[str, str]:
        return {"state": "all", "type": "issues", "page": str(number), "limit": "50"}

    def _issue(self, data: Any, where: str, number: int | None = None) -> Issue:
        answer = self._valid(_IssueAnswer, data, "no issue", where)
        place = _PLACE.search(answer.url)
        if place is None or {answer.number, int(place[2])} != {number or answer.number}:
            raise GITEA.not_understood(f"issue {answer.number}, which was not asked for", where)
        name = place[1].lower()
        if name != self._name.lower() and name != self._resolved().name.lower():
            raise GITEA.not_understood(f"an issue of {place[1]}", where)
        self._versions[answer.number] = answer.content_version
        is_closed = answer.state is IssueState.CLOSED
        return Issue(
            answer.number,
            answer.title,
            answer.body,
            answer.state,
            tuple(label.name for label in answer.labels or ()),
            tuple(account.login for account in answer.assignees or ()),
            author=answer.user.login if answer.user else "",
            closed_by=self._closed_by(answer) if is_closed and number is not None else "",
            closed_at=answer.closed_at and answer.closed_at - self._api.clock_difference,
            address=answer.html_url,
        )

    def _create(self, title: str, body: str, labels: tuple[str, ...]) -> Any:
        sent = {"title": title, "body": body}
        numbers = {"labels": self._label_numbers(labels)} if labels else {}
        return self._write("POST", self._path(""), self.repository, sent | numbers)

    def _send_edit(self, number: int, edit: IssueEdit, where: str) -> Any:
        self._require_assignable(edit.assignees or ())
        sent: dict[str, Any] = {"title": edit.title, "body": edit.body, "assignees": edit.assignees}
        sent["state"] = closing_event(edit, close="closed", reopen="open")
        sent["content_version"] = None if edit.body is None else self._versions.get(number)
        kept = {name: value for name, value in sent.items() if value is not None}
        return self._write("PATCH", self._path(f"/{number}"), where, kept)

    def _expiry(self) -> datetime | None:
        """Gitea's tokens do not expire, and say what they may do only when it is tried."""
        return None

    # --- accounts and labels

    def _assignable(self) -> set[str]:
        """The accounts to which issues can be assigned, in small letters: those that may write."""
        data = self._list(f"repos/{self._resolved().name}/assignees", {})
        return {self._valid(_Account, item, "no account").login.casefold() for item in data}

    def _require_assignable(self, accounts: tuple[str, ...]) -> None:
        """Gitea fails inside for an account that it does not know, when the rest of an edit is done."""
        known = self._assignable() if accounts else set()
        unknown = [account for account in accounts if account.casefold() not in known]
        if unknown:
            raise AssigneesRefusedError(
                f"issues cannot be assigned to {', '.join(unknown)}",
                where=self.repository,
                hint="give the account the right to write in the repository",
            )

    def _label_numbers(self, names: tuple[str, ...]) -> list[int]:
        """The ids of labels, of the repository or its organization; those that are missing are created."""
        repository = self._resolved().name
        known: dict[str, int] = {}
        for path in (f"repos/{repository}/labels", f"orgs/{repository.partition('/')[0]}/labels"):
            try:
                found = [self._valid(_Label, item, "no label") for item in self._pages(path)]
            except ApiRefusedError as error:
                if error.status not in (
                    403,
                    404,
                ):  # the owner is no organization, or the token may not see it
                    raise
                found = []
            known = {label.name.casefold(): label.id for label in found} | known
            if all(name.casefold() in known for name in names):
                break
        return [known.get(name.casefold()) or self._new_label(name) for name in names]

    def _new_label(self, name: str) -> int:
        body = {"name": name, "color": LABEL_COLOUR}
        path = f"repos/{self._resolved().name}/labels"
        try:
            return self._valid(_Label, self._write("POST", path, self.repository, body), "no label").id
        except ApiRefusedError as error:
            raise LabelsRefusedError(
                f"there is no label {name}, and it cannot be created: {error.what}",
                where=self.repository,
                hint="create the label, or give the token's account the right to write",
            ) from None

    def _closed_by(self, answer: _IssueAnswer) -> str:
        """The account that closed an issue, which the issue itself does not say."""
        since = answer.closed_at and answer.closed_at - timedelta(seconds=1)
        events = self._timeline(answer.number, since)
        closing = [event.user for event in events if event.type == "close"]
        if not closing or closing[-1] is None:
            return ""
        self._accounts[closing[-1].login] = closing[-1].id
        return closing[-1].login

    def _labelled_by(self, issue: Issue, label: str) -> int | None:
        """The number of the account that set a label last."""
        setting = [
            event.user.id
            for event in self._timeline(issue.number)
            # Its body is empty when the label was taken away.
            if event.type == "label" and event.body and event.user is not None
            if event.label is not None and event.label.name.casefold() == label.casefold()
        ]
        return setting[-1] if setting else None

    def _timeline(self, number: int, since: datetime | None = None) -> Iterator[_Event]:
        """What happened to an issue, the oldest first. The total in an answer is that of its page alone."""
        query = {} if since is None else {"since": since.isoformat()}
        for page in range(1, MAX_PAGES + 1):
            path = self._path(f"/{number}/timeline")
            data = self._list(path, {**query, "page": str(page)}, may_be_null=True)
            if not data:
                return
            yield from (self._valid(_Event, item, "no event") for item in data)

    def _valid(self, kind: type[_Answer], data: Any, otherwise: str, where: str = "") -> _Answer:
        try:
            return kind.model_validate(data)
        except ValidationError:
            raise GITEA.not_understood(otherwise, where or self.repository) from None
