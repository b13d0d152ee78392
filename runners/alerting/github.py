"""GitHub's issues as a tracker, through PyGithub."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
from github import Auth, Github, GithubException

from history.store.alert_outbox import IssueState
from runners.alerting.tokens import CREDENTIAL, token
from runners.alerting.tracker import (
    Issue,
    IssueDeletedError,
    MissingTokenError,
    TrackerBusyError,
    TrackerError,
    TrackerRefusedError,
)

API = "https://api.github.com"
"""Unless $GITHUB_API_URL names another."""

TOKEN_VARIABLE = "GITHUB_TOKEN"

TIMEOUT_SECONDS = 20

WAIT_SECONDS = 60
"""How long to wait when GitHub asks for a pause without saying for how long: what its documents advise."""

PAGE = 100

_RATE_LIMITED = (403, 429)

_DELETED = 410

_HINTS = {
    401: "the token is wrong or has expired: set GITHUB_TOKEN anew",
    403: "the token may not write issues: it needs the permission `issues: write`",
    404: "there is no such repository or issue, or the token may not see it",
    410: "issues are switched off in the repository, or the issue was deleted",
    422: "the tracker refuses what was sent: see its message",
}


def connect(repository: str) -> "GitHubTracker":
    """The issues of `owner/name`, signed in as the environment says. Raises MissingTokenError."""
    return GitHubTracker(repository, github_token(), os.environ.get("GITHUB_API_URL", API))


def github_token() -> str:
    """`$GITHUB_TOKEN`, else what systemd hands to the unit. Raises MissingTokenError."""
    found = token(TOKEN_VARIABLE, CREDENTIAL)
    if not found:
        raise MissingTokenError(f"{TOKEN_VARIABLE} is not set")
    return found


class GitHubTracker:
    """The issues of one repository. It implements `runners.alerting.tracker.Tracker`."""

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
        """The library's objects by number of the issue: to get one again would be a request."""

    def find(self, marker: str, since: datetime) -> Issue | None:
        """The oldest issue created since then whose body holds `marker`; pull requests do not count."""
        oldest = None
        with _translated(self.repository, self._token):
            for issue in self._repo.get_issues(state="all", sort="created", direction="desc"):
                if issue.created_at < since:
                    break
                if issue.pull_request is None and marker in (issue.body or ""):
                    oldest = self._remember(issue)
        return oldest

    def read(self, number: int) -> Issue:
        """The issue with this number."""
        with _translated(f"{self.repository}#{number}", self._token):
            return self._remember(self._repo.get_issue(number).complete())

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        """Open an issue."""
        with _translated(self.repository, self._token):
            return self._remember(self._repo.create_issue(title=title, body=body, labels=list(labels)))

    def edit(self, issue: Issue, title: str, body: str, state: IssueState) -> None:
        """Give an issue this title, body and state."""
        with _translated(f"{self.repository}#{issue.number}", self._token):
            self._handles[issue.number].edit(title=title, body=body, state=state)

    def comment(self, issue: Issue, text: str) -> None:
        """Add a comment."""
        with _translated(f"{self.repository}#{issue.number}", self._token):
            self._handles[issue.number].create_comment(text)

    def _remember(self, issue: Any) -> Issue:
        self._handles[issue.number] = issue
        labels = tuple(label.name for label in issue.labels)
        return Issue(issue.number, issue.title, issue.body or "", IssueState(issue.state), labels)


@contextmanager
def _translated(where: str, token: str) -> Iterator[None]:
    """Turn what the library raises into a TrackerError, which never holds the token."""
    try:
        yield
    except GithubException as error:
        raise _error_of_answer(error, where, token) from None  # its text is all that was answered
    except requests.RequestException as error:
        # Its text may hold the address with a query, but never the token: that is in a header.
        raise TrackerBusyError(
            f"the tracker did not answer: {type(error).__name__}",
            where=where,
            hint="it is tried again with the next night",
        ) from error


def _error_of_answer(error: GithubException, where: str, token: str) -> TrackerError:
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    message = str(error.data.get("message", "") if isinstance(error.data, dict) else "")
    # A proxy may repeat the request in its answer: the token must not be stored or shown with it.
    message = message.replace(token, "(token)")
    what = f"the tracker answered {error.status}: {message or 'without a message'}"
    retry_at = _retry_at(error.status, headers)
    if error.status >= 500 or retry_at is not None:
        return TrackerBusyError(what, where=where, hint="it is tried again", retry_at=retry_at)
    refused = IssueDeletedError if error.status == _DELETED else TrackerRefusedError
    return refused(what, where=where, hint=_HINTS.get(error.status, "see its message"))


def _retry_at(status: int, headers: dict[str, str]) -> datetime | None:
    """When a rate-limited client may ask again; None for an answer that is no rate limit.

    GitHub's secondary limits say it in `retry-after`, its primary limit in `x-ratelimit-reset`.
    """
    if status not in _RATE_LIMITED:
        return None
    now = datetime.now(UTC)
    if headers.get("retry-after", "").isdigit():
        return now + timedelta(seconds=int(headers["retry-after"]))
    if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
        return datetime.fromtimestamp(int(headers["x-ratelimit-reset"]), UTC)
    return now + timedelta(seconds=WAIT_SECONDS) if status == 429 else None
