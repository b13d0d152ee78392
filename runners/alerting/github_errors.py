"""What a failed request to GitHub's API means: GitHub's own sentence, and what to do about it."""

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from build.sources import certificates
from runners.alerting.tracker import TrackerRefusedError

WAIT_SECONDS = 60
"""How long to wait when GitHub asks for a pause without saying for how long: what its documents advise."""

LONGEST_WAIT_HOURS = 24
"""The longest pause that is believed: GitHub's limits are counted by the hour."""

LARGEST_DIFFERENCE = timedelta(days=3650)
"""Between two clocks that are believed."""

NEXT_NIGHT = "it is tried again with the next night"

_RATE_LIMITED = (403, 429)

TRY_AGAIN = (408, 409, 425, 429)

_LIMITS = ("rate limit", "abuse detection", "temporarily blocked from content creation", "too quickly")
"""What GitHub says, in small letters, with a 403 that is one of its limits and not a matter of rights."""

LIMIT_HINT = (
    "GitHub limits how many requests an account makes: nothing has to be done, and it is tried again after"
    " the pause; if that happens often, give Tidemark an account of its own"
)

_TOKEN = "set GITHUB_TOKEN anew, or write it to /etc/credstore/tidemark-github-token of the box"

_OTHER_REPOSITORY = "or name another repository in the plan (alerts.repository)"

ARCHIVED_HINT = f"unarchive the repository in its settings, {_OTHER_REPOSITORY}"
BLOCKED_HINT = f"GitHub has blocked the repository: ask its support, {_OTHER_REPOSITORY}"
SWITCHED_OFF_HINT = f"switch issues on in the repository's settings, {_OTHER_REPOSITORY}"

_HINTS: tuple[tuple[int, str, str], ...] = (
    (401, "", f"the token is wrong, has expired or was revoked: {_TOKEN}"),
    (403, "archived", ARCHIVED_HINT),
    (403, "saml", "authorize the token for the organization's single sign-on, in the token's settings"),
    (403, "ip allow list", "have an owner of the organization add this machine's address to that list"),
    (403, "suspended", f"use a token of an account that is not suspended: {_TOKEN}"),
    (403, "by integration", "give the job, or the app, the permission `issues: write`"),
    (403, "by personal access token", "give the token the permission Issues: read and write"),
    (403, "access blocked", BLOCKED_HINT),
    (403, "", "the token may not do that: it needs the permission `issues: write`"),
    (
        404,
        "",
        "check the repository's name in the plan, and that the token may see it: of a private repository that"
        " a token may not see, GitHub says the same",
    ),
    (410, "deleted", "somebody deleted the issue"),
    (410, "", SWITCHED_OFF_HINT),
    (422, "", "GitHub does not take what was sent: see its message"),
    (451, "", BLOCKED_HINT),
)
"""Status, a part of GitHub's message in small letters, and what to do. The first that matches counts."""


@dataclass(frozen=True)
class ApiAnswer:
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""

    content: bytes


class GitHubRefusedError(TrackerRefusedError):
    """GitHub answered with a status that says that the same request will fail again."""

    def __init__(self, what: str, *, where: str, status: int, message: str) -> None:
        super().__init__(what, where=where, hint=_hint(status, message))
        self.status = status
        self.message = message
        """What GitHub said, its list of errors included; one line."""


def _hint(status: int, message: str) -> str:
    said = message.lower()
    found = (hint for code, part, hint in _HINTS if code == status and part in said)
    return next(found, "see its message")


# --- what GitHub says


def message_of(content: bytes) -> str:
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


# --- how long it wants to be left alone


def requested_pause(answer: ApiAnswer, message: str) -> timedelta | None:
    """How long a client is asked to wait; None when it is not asked to.

    GitHub's secondary limits say it in `retry-after`, its primary limit in `x-ratelimit-reset`. A server that
    is down for maintenance says it in `retry-after` too, in seconds or as a date (RFC 9110, 10.2.3).
    """
    if answer.status < 500 and answer.status not in (*_RATE_LIMITED, *TRY_AGAIN):
        return None
    headers = answer.headers
    wait = _retry_after(headers.get("retry-after", ""), headers.get("date", ""))
    if wait is None and answer.status in _RATE_LIMITED and headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        if re.fullmatch(r"[0-9]{1,12}", reset):
            wait = timedelta(seconds=int(reset) - datetime.now(UTC).timestamp())
    if wait is None and is_limit(answer.status, message):
        wait = timedelta(seconds=WAIT_SECONDS)
    return None if wait is None else min(max(wait, timedelta(0)), timedelta(hours=LONGEST_WAIT_HOURS))


def is_limit(status: int, message: str) -> bool:
    """Whether GitHub refuses because of one of its limits, of which the secondary ones have no header."""
    said = message.lower()
    return status == 429 or (status == 403 and any(limit in said for limit in _LIMITS))


def _retry_after(text: str, date: str) -> timedelta | None:
    """A date counts from the answer's own, because the tracker's clock may differ from ours."""
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        return timedelta(seconds=min(int(text.strip()[:12]), 3600 * LONGEST_WAIT_HOURS))
    until, now = _moment(text), _moment(date) or datetime.now(UTC)
    return None if until is None else until - now


def clock_difference(headers: Mapping[str, str]) -> timedelta:
    """How far the tracker's clock is ahead of this machine's; 0 if its answer says nothing sensible."""
    moment = _moment(headers.get("date", ""))
    difference = timedelta(0) if moment is None else moment - datetime.now(UTC)
    return difference if abs(difference) < LARGEST_DIFFERENCE else timedelta(0)


def token_expiry(headers: Mapping[str, str]) -> datetime | None:
    """When the token expires, as GitHub says of one that does: `2026-12-31 10:00:00 UTC`, or `-0800`."""
    text = headers.get("github-authentication-token-expiration", "")
    for form in ("%Y-%m-%d %H:%M:%S %Z", "%Y-%m-%d %H:%M:%S %z"):
        with suppress(ValueError):
            moment = datetime.strptime(text, form)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# --- no answer at all


def connection_problem(error: BaseException, timeout_seconds: float) -> tuple[str, str]:
    """Why there was no answer, and what to do.

    Texts of the client library are not taken over: they may hold the address with its query, or a header that
    is not valid, which is the token's.
    """
    if distrust := certificates.refused_certificate(error):
        return f"its certificate is not trusted: {distrust}", certificates.HINT
    if isinstance(error, certificates.CertificateError):
        return f"{error.what}: {error.where}", error.hint
    chain = tuple(_chain(error))
    if any(isinstance(cause, (TimeoutError, requests.Timeout)) for cause in chain):
        return f"nothing came within {timeout_seconds:g} s", NEXT_NIGHT
    reasons = map(_reason, chain)
    return next((reason for reason in reasons if reason), type(error).__name__), NEXT_NIGHT


def _reason(error: BaseException) -> str:
    """What the system says of a connection, such as `Connection refused`; empty for other errors."""
    if isinstance(error, socket.gaierror):
        return f"the name of its host cannot be resolved: {error.strerror}"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return error.strerror or ""
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those from which it came, the first one first."""
    earlier = error.__cause__ or error.__context__
    if earlier is not None:
        yield from _chain(earlier)
    yield error
