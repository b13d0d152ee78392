"""GitHub's issues, through PyGithub: a few requests, and errors that say whether to try again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
from github import Auth, Github, GithubException

from build.errors import TidemarkError
from history.store.alert_outbox import IssueState

TIMEOUT_SECONDS = 20

WAIT_SECONDS = 60
"""When the tracker asks to be left alone and does not say how long: its own advice."""

PAGE = 100

_LIMITED = (403, 429)

_HINTS = {
    401: "the token is wrong or has expired: set GITHUB_TOKEN anew",
    403: "the token may not write issues: it needs the permission `issues: write`",
    404: "there is no such repository or issue, or the token may not see it",
    410: "issues are switched off in the repository, or the issue was deleted",
    422: "the tracker refuses what was sent: see its message",
}


class TrackerError(TidemarkError):
    """The tracker did not do what it was asked."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        hint: str = "",
        status: int = 0,
        passing: bool,
        until: datetime | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status
        """Of the answer; 0 when there was none."""
        self.passing = passing
        """Whether the same request may do later."""
        self.until = until
        """When the tracker wants to be asked again; None when it does not say."""


@dataclass(frozen=True)
class Issue:
    """An issue as the tracker has it."""

    number: int
    title: str
    body: str
    state: IssueState
    labels: tuple[str, ...]


class Tracker:
    """The issues of one repository."""

    def __init__(
        self,
        repository: str,
        token: str,
        url: str,
        pause_seconds: float = 1.0,
        timeout_seconds: int = TIMEOUT_SECONDS,
    ) -> None:
        """`url` is that of the API; `pause_seconds` is kept between writes, as GitHub asks of its clients."""
        self.repository = repository
        self._token = token
        # No retries: the library would repeat a POST that had succeeded before the answer was lost, and the
        # outbox tries again anyway.
        self._github = Github(
            auth=Auth.Token(token),
            base_url=url,
            timeout=timeout_seconds,
            lazy=True,
            retry=None,
            per_page=PAGE,
            seconds_between_requests=0,
            seconds_between_writes=pause_seconds,
        )
        self._repo = self._github.get_repo(repository)
        self._handles: dict[int, Any] = {}
        """The library's objects of the issues that were seen: getting one anew is a request."""

    def find(self, marker: str, since: datetime) -> Issue | None:
        """The oldest issue created since then whose body holds `marker`."""
        found = None
        with _explained(self.repository, self._token):
            for issue in self._repo.get_issues(state="all", sort="created", direction="desc"):
                if issue.created_at < since:
                    break
                if issue.pull_request is None and marker in (issue.body or ""):
                    found = self._seen(issue)
        return found

    def read(self, number: int) -> Issue:
        """An issue."""
        with _explained(f"{self.repository}#{number}", self._token):
            return self._seen(self._repo.get_issue(number).complete())

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """A new issue. When its answer is lost it may be there all the same: find it before trying again."""
        with _explained(self.repository, self._token):
            return self._seen(self._repo.create_issue(title=title, body=body, labels=list(labels)))

    def edit(self, issue: Issue, title: str, body: str, state: IssueState) -> None:
        """Make an issue so."""
        with _explained(f"{self.repository}#{issue.number}", self._token):
            self._handles[issue.number].edit(title=title, body=body, state=state)

    def comment(self, issue: Issue, text: str) -> None:
        """A comment."""
        with _explained(f"{self.repository}#{issue.number}", self._token):
            self._handles[issue.number].create_comment(text)

    def _seen(self, issue: Any) -> Issue:
        self._handles[issue.number] = issue
        labels = tuple(label.name for label in issue.labels)
        return Issue(issue.number, issue.title, issue.body or "", IssueState(issue.state), labels)


@contextmanager
def _explained(where: str, token: str) -> Iterator[None]:
    """Turn what the library raises into a TrackerError, which never holds the token."""
    try:
        yield
    except GithubException as error:
        raise _of_answer(error, where, token) from None  # its text is all that was answered
    except requests.RequestException as error:
        # Its text may hold the address with a query, but never the token: that is in a header.
        raise TrackerError(
            f"the tracker did not answer: {type(error).__name__}",
            where=where,
            hint="it is tried again with the next night",
            passing=True,
        ) from error


def _of_answer(error: GithubException, where: str, token: str) -> TrackerError:
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    until = _asked_until(error.status, headers)
    passing = error.status >= 500 or until is not None
    said = str(error.data.get("message", "") if isinstance(error.data, dict) else "")
    said = said.replace(token, "(token)")  # a proxy that repeats the request would have it stored and shown
    hint = "it is tried again" if passing else _HINTS.get(error.status, "see its message")
    return TrackerError(
        f"the tracker answered {error.status}: {said or 'without a message'}",
        where=where,
        hint=hint,
        status=error.status,
        passing=passing,
        until=until,
    )


def _asked_until(status: int, headers: dict[str, str]) -> datetime | None:
    """When a limited client may come back: of the two kinds of limit GitHub has, each says it its own way."""
    if status not in _LIMITED:
        return None
    now = datetime.now(UTC)
    if headers.get("retry-after", "").isdigit():
        return now + timedelta(seconds=int(headers["retry-after"]))
    if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        return datetime.fromtimestamp(int(headers["x-ratelimit-reset"]), UTC)
    return now + timedelta(seconds=WAIT_SECONDS) if status == 429 else None
