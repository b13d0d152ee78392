"""Requests to GitHub's REST API: redirects are followed on its own host, and every failure is a TrackerError.

A client library that follows redirects, repeats requests or waits by itself cannot tell a renamed repository
from a transferred issue, nor an issue that was not opened from one whose answer was lost.
"""

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from runners.alerting.tracker import TrackerBusyError, TrackerError, TrackerRefusedError

TIMEOUT_SECONDS = 20
"""Without a byte."""

WHOLE_SECONDS = 60
"""For a whole answer."""

WAIT_SECONDS = 60
"""How long to wait when GitHub asks for a pause without saying for how long: what its documents advise."""

LONGEST_WAIT_HOURS = 24
"""The longest pause that is believed: GitHub's limits are counted by the hour."""

MOST_REDIRECTS = 5
MOST_BYTES = 64 << 20
LONGEST_MESSAGE = 500
"""Characters of what the tracker says in an error."""

_CHUNK = 1 << 16

_REDIRECTS = (301, 302, 307, 308)

_RATE_LIMITED = (403, 429)

_TRY_AGAIN = (408, 409, 425, 429)

_HINTS = {
    401: "the token is wrong or has expired: set GITHUB_TOKEN anew",
    403: "the token may not write issues: it needs the permission `issues: write`",
    404: "there is no such repository or issue, or the token may not see it",
    410: "issues are switched off in the repository, or the issue was deleted",
    422: "the tracker refuses what was sent: see its message",
}


class GitHubRefusedError(TrackerRefusedError):
    """GitHub answered with a status that says that the same request will fail again."""

    def __init__(self, what: str, *, where: str, status: int, message: str) -> None:
        super().__init__(what, where=where, hint=_HINTS.get(status, "see its message"))
        self.status = status
        self.message = message
        """What GitHub said, its list of errors included; one line."""


class RedirectedError(TrackerRefusedError):
    """GitHub sends the request to a place where it must not go."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    """Names in small letters."""

    content: bytes


class GitHubApi:
    """Sends requests and reads their answers, one at a time."""

    def __init__(self, url: str, token: str, pause_seconds: float, timeout_seconds: float) -> None:
        """`url` is that of the API; `pause_seconds` is kept between writes, as GitHub asks of its clients."""
        self._url, self._token = url.rstrip("/"), token
        self._pause_seconds, self._timeout_seconds = pause_seconds, timeout_seconds
        self._last_write = float("-inf")
        self._session = requests.Session()
        self._session.auth = self._sign  # also keeps requests from looking for a password in .netrc

    def request(
        self,
        method: str,
        path: str,
        *,
        where: str,
        allowed: Callable[[str], bool] = lambda path: True,
        query: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Any:
        """The JSON of the answer. `where` is what errors name.

        A redirect is followed, with the same method and body, to the same host and to paths that `allowed`
        accepts: the path is given without the API's own. Raises TrackerBusyError, GitHubRefusedError,
        RedirectedError.
        """
        target = f"{self._url}/{path}"
        for _ in range(1 + MOST_REDIRECTS):
            answer = self._ask(method, target, query, body, where)
            if answer.status not in _REDIRECTS:
                return self._content(answer, where)
            target = self._redirected(answer, target, where)
            if urlsplit(target).query:
                query = None
            if not allowed(self._path(target)):
                raise RedirectedError(
                    f"the tracker redirects to {self._clean(self._path(target))}, another repository",
                    where=where,
                    hint="nothing was changed there; name the right repository in the plan",
                )
        raise RedirectedError(
            f"the tracker redirects more than {MOST_REDIRECTS} times",
            where=where,
            hint="check the repository in the plan, and GITHUB_API_URL",
        )

    # --- one request

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"token {self._token}"
        return request

    def _ask(
        self, method: str, target: str, query: Mapping[str, str] | None, body: Any, where: str
    ) -> _Answer:
        if method != "GET":
            time.sleep(max(0.0, self._last_write + self._pause_seconds - time.monotonic()))
        try:
            # No redirects and no retries by the library: it would repeat a POST that was carried out.
            with self._session.request(
                method,
                target,
                params=query,
                json=body,
                headers={"Accept": "application/vnd.github+json", "User-Agent": "tidemark"},
                timeout=self._timeout_seconds,
                allow_redirects=False,
                stream=True,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return _Answer(response.status_code, headers, self._read(response))
        except TrackerError as error:
            error.where = where
            raise
        except (
            requests.RequestException,
            HTTPError,
            http.client.HTTPException,
            OSError,
            ValueError,
        ) as error:
            # Their texts may hold the address with a query, or a header that is not valid: the token's.
            raise TrackerBusyError(
                f"the tracker did not answer: {type(error).__name__}",
                where=where,
                hint="it is tried again with the next night",
            ) from None
        finally:
            if method != "GET":
                self._last_write = time.monotonic()

    def _read(self, response: requests.Response) -> bytes:
        """The content. The library's own limit is for every wait, so that drops would last for hours."""
        until = time.monotonic() + WHOLE_SECONDS
        content = bytearray()
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            content += chunk
            if len(content) > MOST_BYTES or time.monotonic() > until:
                raise TrackerBusyError(
                    f"the tracker's answer did not end within {WHOLE_SECONDS} s and {MOST_BYTES >> 20} MiB",
                    hint="it is tried again with the next night",
                )
        return bytes(content)

    def _redirected(self, answer: _Answer, target: str, where: str) -> str:
        try:
            other = urljoin(target, answer.headers.get("location", ""))
            parts, own = urlsplit(other), urlsplit(self._url)
            is_same = (parts.scheme, parts.hostname, parts.port) == (own.scheme, own.hostname, own.port)
        except ValueError:  # no address at all
            other, is_same = answer.headers["location"], False
        if other == target or not is_same:
            place = "itself" if other == target else self._clean(other)
            raise RedirectedError(
                f"the tracker answered {answer.status} and redirects to {place}",
                where=where,
                hint="the token is sent to no other host: check GITHUB_API_URL and what lies between",
            )
        return other

    def _path(self, target: str) -> str:
        return urlsplit(target).path.removeprefix(urlsplit(self._url).path).lstrip("/")

    # --- what it means

    def _content(self, answer: _Answer, where: str) -> Any:
        if answer.status >= 400:
            raise self._error(answer, where)
        hint = "it is tried again with the next night; check GITHUB_API_URL and what lies between"
        if not 200 <= answer.status < 300:
            raise TrackerBusyError(
                f"the tracker answered {answer.status}, which says nothing", where=where, hint=hint
            )
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            start = self._clean(answer.content[:60].decode(errors="replace"))
            raise TrackerBusyError(
                f"the tracker answered {answer.status} with something that is not JSON: '{start}'",
                where=where,
                hint=hint,
            ) from None

    def _error(self, answer: _Answer, where: str) -> TrackerError:
        message = self._clean(_message(answer.content))
        what = f"the tracker answered {answer.status}: {message or 'without a message'}"
        wait = _wait(answer, message)
        if wait is not None:
            retry_at = datetime.now(UTC) + wait
            return TrackerBusyError(what, where=where, hint="it is tried again", retry_at=retry_at)
        if answer.status >= 500 or answer.status in _TRY_AGAIN:
            return TrackerBusyError(what, where=where, hint="it is tried again")
        return GitHubRefusedError(what, where=where, status=answer.status, message=message)

    def _clean(self, text: str) -> str:
        """One line without control characters, and without the token, which a proxy may repeat."""
        line = " ".join(text.replace(self._token, "(token)").split())
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)[:LONGEST_MESSAGE]


def _message(content: bytes) -> str:
    """GitHub's message, followed by its list of errors; empty when the content is something else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    listed = "; ".join(map(_one_error, errors)) if isinstance(errors, list) else ""
    message = str(data.get("message") or "")
    return f"{message} ({listed})" if listed else message


def _one_error(error: Any) -> str:
    """Such as `Label name: is too long` or `Issue title: missing_field` (GitHub's client errors)."""
    if not isinstance(error, dict):
        return str(error)
    field = " ".join(str(error[name]) for name in ("resource", "field") if error.get(name))
    why = str(error.get("message") or error.get("code") or "")
    return f"{field}: {why}" if field and why else field or why


def _wait(answer: _Answer, message: str) -> timedelta | None:
    """How long a client is asked to wait; None when it is not asked to.

    GitHub's secondary limits say it in `retry-after`, its primary limit in `x-ratelimit-reset`. A server that
    is down for maintenance says it in `retry-after` too, in seconds or as a date (RFC 9110, 10.2.3).
    """
    if answer.status < 500 and answer.status not in (*_RATE_LIMITED, *_TRY_AGAIN):
        return None
    headers = answer.headers
    wait = _retry_after(headers.get("retry-after", ""), headers.get("date", ""))
    if wait is None and answer.status in _RATE_LIMITED and headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        if re.fullmatch(r"[0-9]{1,12}", reset):
            wait = timedelta(seconds=int(reset) - datetime.now(UTC).timestamp())
    if wait is None and (answer.status == 429 or _says_limit(answer.status, message)):
        wait = timedelta(seconds=WAIT_SECONDS)
    return None if wait is None else min(max(wait, timedelta(0)), timedelta(hours=LONGEST_WAIT_HOURS))


def _says_limit(status: int, message: str) -> bool:
    return status == 403 and "rate limit" in message.lower()


def _retry_after(text: str, date: str) -> timedelta | None:
    """A date counts from the answer's own, because the tracker's clock may differ from ours."""
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        return timedelta(seconds=min(int(text.strip()[:12]), 3600 * LONGEST_WAIT_HOURS))
    until, now = _moment(text), _moment(date) or datetime.now(UTC)
    return None if until is None else until - now


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
