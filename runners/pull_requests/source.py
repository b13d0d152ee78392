"""Pull requests, comments, rights and pushes of a repository, as GitHub knows them."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, RootModel, StringConstraints, ValidationError

from build.errors import TidemarkError
from runners.alerting.api.client import TrackerApi
from runners.alerting.api.dialect import ApiRefusedError
from runners.alerting.api.github import GITHUB
from runners.alerting.tokens import required_token
from runners.alerting.tracker import TrackerBusyError
from runners.alerting.trackers.github import API

PAGE = 100

MAX_PAGES = 20
"""Pages of comments, or of events, in which one is looked for."""

UNKNOWN = (403, 404)
"""The answers about what there is not, or what the token may not see."""

_PULL = re.compile(r"([A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})#([1-9][0-9]{0,8})")

CommitName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]


class PullRequestError(TidemarkError):
    """There is no such pull request or comment, or it is not about what was asked."""


class Account(BaseModel):
    """An account of GitHub."""

    login: str
    type: str = "User"


class Comment(BaseModel):
    """A comment in the conversation of a pull request."""

    id: int
    body: str = ""
    user: Account | None = None
    """None for an account that was deleted."""

    created_at: AwareDatetime
    issue_url: str
    html_url: str = ""


class Label(BaseModel):
    """A label of a pull request."""

    name: str


class LabelEvent(BaseModel):
    """What happened to a pull request; of all that can, only labels matter here."""

    id: int
    event: str
    """`labeled` or `unlabeled`, or another word."""

    actor: Account | None = None
    """None for an account that was deleted."""

    created_at: AwareDatetime
    label: Label | None = None


class HeadRepository(BaseModel):
    """The repository of a head."""

    full_name: str


class Head(BaseModel):
    """What a pull request would merge, or into what."""

    sha: CommitName
    ref: str
    repo: HeadRepository | None = None
    """None for a fork that was deleted."""


class PullRequest(BaseModel):
    """A pull request."""

    number: int
    state: str
    head: Head
    base: Head


class Push(BaseModel):
    """What changed a branch last, by GitHub's clock."""

    after: str
    timestamp: AwareDatetime


class _Permission(BaseModel):
    permission: str


class _Comments(RootModel[list[Comment]]):
    pass


class _Pushes(RootModel[list[Push]]):
    pass


class _Events(RootModel[list[LabelEvent]]):
    pass


_Answer = TypeVar("_Answer", bound=BaseModel)


class SourceRepository:
    """One repository, signed in as the environment says. Methods raise TrackerError."""

    def __init__(self, api: TrackerApi, name: str) -> None:
        self._api, self.name = api, name

    def comment(self, number: int) -> Comment:
        """Return a comment."""
        return self._read(f"issues/comments/{number}", Comment)

    def pull_request(self, number: int) -> PullRequest:
        """Return a pull request."""
        return self._read(f"pulls/{number}", PullRequest)

    def permission(self, login: str) -> str:
        """Return what an account may do here: `admin`, `write`, `read` or `none`."""
        try:
            return self._read(f"collaborators/{quote(login, safe='')}/permission", _Permission).permission
        except ApiRefusedError as error:
            if error.status == 404:
                return "none"
            raise

    def last_push(self, head: Head) -> Push | None:
        """Return what changed the branch of a head last; None where that cannot be seen."""
        if head.repo is None:
            return None
        query = {"ref": f"refs/heads/{head.ref}", "per_page": "1"}
        try:
            found = self._read("activity", _Pushes, query, repository=head.repo.full_name)
        except ApiRefusedError as error:
            if error.status in UNKNOWN:
                return None
            raise
        return found.root[0] if found.root else None

    def comments(self, number: int) -> Iterator[Comment]:
        """Yield the comments of a pull request, the oldest first."""
        for page in count(1):
            query = {"per_page": str(PAGE), "page": str(page)}
            found = self._read(f"issues/{number}/comments", _Comments, query).root
            yield from found
            if len(found) < PAGE or page == MAX_PAGES:
                return

    def last_labelling(self, number: int, name: str) -> LabelEvent | None:
        """Return what happened last to a label of a pull request; None where that cannot be seen."""
        named: list[LabelEvent] = []
        for page in range(1, MAX_PAGES + 1):
            query = {"per_page": str(PAGE), "page": str(page)}
            found = self._read(f"issues/{number}/events", _Events, query).root
            named += (event for event in found if event.label is not None and event.label.name == name)
            if len(found) < PAGE:
                return max(named, key=lambda event: (event.created_at, event.id), default=None)
        return None

    def remove_label(self, number: int, name: str) -> None:
        """Take a label from a pull request, if it has it."""
        try:
            self._write("DELETE", f"issues/{number}/labels/{quote(name, safe='')}", None)
        except ApiRefusedError as error:
            if error.status != 404:
                raise

    def own_login(self) -> str:
        """Return the account of the token; empty for a token of an app, which has none."""
        try:
            return _understood(self._api.request("GET", "user", where=self.name), Account, self.name).login
        except ApiRefusedError as error:
            if error.status in UNKNOWN:
                return ""
            raise

    def add_comment(self, number: int, text: str) -> None:
        """Write a comment."""
        self._write("POST", f"issues/{number}/comments", {"body": text})

    def edit_comment(self, comment: Comment, text: str) -> None:
        """Replace the text of a comment."""
        self._write("PATCH", f"issues/comments/{comment.id}", {"body": text})

    def set_status(self, commit: str, status: Mapping[str, str]) -> None:
        """Set a status of a commit: `state`, `context`, `description` and `target_url`."""
        self._write("POST", f"statuses/{commit}", dict(status))

    # --- requests

    def _read(
        self, path: str, kind: type[_Answer], query: Mapping[str, str] | None = None, repository: str = ""
    ) -> _Answer:
        where = repository or self.name
        return _understood(
            self._api.request("GET", f"repos/{where}/{path}", where=where, query=query), kind, where
        )

    def _write(self, method: str, path: str, body: Any) -> None:
        self._api.request(method, f"repos/{self.name}/{path}", where=self.name, body=body)


def connect(name: str) -> SourceRepository:
    """Return the repository `owner/name`. Raises MissingTokenError."""
    url = os.environ.get("GITHUB_API_URL", API)
    return SourceRepository(TrackerApi(GITHUB, url, required_token("github")), name)


def parse_pull(text: str) -> tuple[str, int]:
    """Return repository and number of `owner/name#12`. Raises PullRequestError."""
    match = _PULL.fullmatch(text)
    if match is None:
        raise PullRequestError(
            f"'{text}' does not name a pull request", where="--pull", hint="write it as owner/name#12"
        )
    return match[1], int(match[2])


def is_before(push: Push, moment: datetime) -> bool:
    """Return whether a push was before a moment; both are in whole seconds, so that the same one is not."""
    return push.timestamp < moment


def _understood(answer: Any, kind: type[_Answer], where: str) -> _Answer:
    try:
        return kind.model_validate(answer)
    except ValidationError:
        raise TrackerBusyError(
            f"GitHub's answer is no {kind.__name__.lstrip('_').lower()}",
            where=where,
            hint="check GITHUB_API_URL and what lies between",
        ) from None
