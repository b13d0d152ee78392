"""Requests to a tracker's REST API: redirects are followed on its own host, every failure is a TrackerError.

A client library that follows redirects, repeats requests or waits by itself cannot tell a renamed repository
from a transferred issue, nor an issue that was not opened from one whose answer was lost.
"""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from build.sources.connections import CertificateError, no_answer, verified_by
from runners.alerting.api.dialect import (
    NEXT_NIGHT,
    ApiAnswer,
    ApiConflictError,
    ApiDialect,
    ApiRefusedError,
    message_of,
)
from runners.alerting.api.pauses import TRY_AGAIN, clock_difference, is_limit, requested_pause
from runners.alerting.tracker import TrackerBusyError, TrackerError, TrackerRefusedError

TIMEOUT_SECONDS = 20
"""Without a byte."""

WHOLE_SECONDS = 60
"""For a whole answer."""

MAX_REDIRECTS = 5
MAX_BYTES = 64 << 20
LONGEST_MESSAGE = 500
"""Characters of what the tracker says in an error."""

_CHUNK = 1 << 16

_REDIRECTS = (301, 302, 307, 308)


class RedirectedError(TrackerRefusedError):
    """The tracker sends the request to a place where it must not go."""


class TrackerApi:
    """Sends requests and reads their answers, one at a time."""

    def __init__(
        self,
        dialect: ApiDialect,
        url: str,
        token: str,
        pause_seconds: float = 1.0,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """`url` is that of the API; `pause_seconds` is kept between writes, as GitHub asks of its clients."""
        self.dialect, self._url, self._token = dialect, url.rstrip("/"), token
        self._pause_seconds, self._timeout_seconds = pause_seconds, timeout_seconds
        self._last_write = float("-inf")
        self.clock_difference = timedelta(0)
        """How far the tracker's clock is ahead of this machine's, by its latest answer."""

        self.headers: Mapping[str, str] = {}
        """Of the latest answer, with names in small letters."""

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
        has_content: bool = True,
    ) -> Any:
        """The JSON of the answer; None for one that has no content. `where` is what errors name.

        A redirect is followed, with the same method and body, to the same host and to paths that `allowed`
        accepts: the path is given without the API's own. Raises TrackerBusyError, ApiRefusedError,
        RedirectedError.
        """
        target = f"{self._url}/{path}"
        for _ in range(1 + MAX_REDIRECTS):
            answer = self._ask(method, target, query, body, where)
            if answer.status not in _REDIRECTS:
                return self._content(answer, where, has_content)
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
            f"the tracker redirects more than {MAX_REDIRECTS} times",
            where=where,
            hint=f"check the repository in the plan, and {self.dialect.address_in}",
        )

    def pause(self) -> None:
        """Wait until a write may follow the one before."""
        time.sleep(max(0.0, self._last_write + self._pause_seconds - time.monotonic()))

    # --- one request

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self.dialect.signing(self._token)
        return request

    def _ask(
        self, method: str, target: str, query: Mapping[str, str] | None, body: Any, where: str
    ) -> ApiAnswer:
        if method != "GET":
            self.pause()
        try:
            # No redirects and no retries by the library: it would repeat a POST that was carried out.
            with self._session.request(
                method,
                target,
                params=query,
                json=body,
                headers={"Accept": self.dialect.accept, "User-Agent": "tidemark"},
                timeout=self._timeout_seconds,
                verify=verified_by(),
                allow_redirects=False,
                stream=True,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                self.clock_difference, self.headers = clock_difference(headers), headers
                return ApiAnswer(response.status_code, headers, self._read(response))
        except TrackerError as error:
            error.where = where
            raise
        except (
            CertificateError,
            requests.RequestException,
            HTTPError,
            http.client.HTTPException,
            OSError,
            ValueError,
        ) as error:
            why, hint = no_answer(error, self._timeout_seconds)
            raise TrackerBusyError(
                f"the tracker did not answer: {why}", where=where, hint=hint or NEXT_NIGHT
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
            if len(content) > MAX_BYTES or time.monotonic() > until:
                raise TrackerBusyError(
                    f"the tracker's answer did not end within {WHOLE_SECONDS} s and {MAX_BYTES >> 20} MiB",
                    hint=NEXT_NIGHT,
                )
        return bytes(content)

    def _redirected(self, answer: ApiAnswer, target: str, where: str) -> str:
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
                hint="the token is sent to no other host: check"
                f" {self.dialect.address_in} and what lies between",
            )
        return other

    def _path(self, target: str) -> str:
        return urlsplit(target).path.removeprefix(urlsplit(self._url).path).lstrip("/")

    # --- what it means

    def _content(self, answer: ApiAnswer, where: str, has_content: bool) -> Any:
        if answer.status >= 400:
            raise self._error(answer, where)
        hint = f"{NEXT_NIGHT}; check {self.dialect.address_in} and what lies between"
        if not 200 <= answer.status < 300:
            raise TrackerBusyError(
                f"the tracker answered {answer.status}, which says nothing", where=where, hint=hint
            )
        if not has_content:
            return None
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            start = self._clean(answer.content[:60].decode(errors="replace"))
            raise TrackerBusyError(
                f"the tracker answered {answer.status} with something that is not JSON: '{start}'",
                where=where,
                hint=hint,
            ) from None

    def _error(self, answer: ApiAnswer, where: str) -> TrackerError:
        message = self._clean(message_of(answer.content))
        what = f"the tracker answered {answer.status}: {message or 'without a message'}"
        wait = requested_pause(self.dialect, answer, message)
        if wait is not None:
            is_ours = is_limit(self.dialect, answer.status, message)
            hint = self.dialect.limit_hint if is_ours else "it is tried again after the pause"
            return TrackerBusyError(what, where=where, hint=hint, retry_at=datetime.now(UTC) + wait)
        if answer.status == 409:
            return ApiConflictError(what, where=where, hint=NEXT_NIGHT)
        if answer.status >= 500 or answer.status in TRY_AGAIN:
            return TrackerBusyError(what, where=where, hint=NEXT_NIGHT)
        hint = self.dialect.hint(answer.status, message)
        return ApiRefusedError(what, where=where, hint=hint, status=answer.status, message=message)

    def _clean(self, text: str) -> str:
        """One line without control characters, and without the token, which a proxy may repeat."""
        line = " ".join(text.replace(self._token, "(token)").split())
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)[:LONGEST_MESSAGE]
