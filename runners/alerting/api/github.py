"""GitHub's REST API: its limits, and what to do about what it refuses."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from runners.alerting.api.dialect import ApiDialect

_LIMITS = ("rate limit", "abuse detection", "temporarily blocked from content creation", "too quickly")
"""What GitHub says, in small letters, with a 403 that is one of its limits and not a matter of rights."""

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


GITHUB = ApiDialect(
    tracker="GitHub",
    accept="application/vnd.github+json",
    signing="token {}".format,
    address_in="GITHUB_API_URL",
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-reset",
    limits=_LIMITS,
    hints=_HINTS,
)


def token_expiry(headers: Mapping[str, str]) -> datetime | None:
    """When the token expires, as GitHub says of one that does: `2026-12-31 10:00:00 UTC`, or `-0800`."""
    text = headers.get("github-authentication-token-expiration", "")
    for form in ("%Y-%m-%d %H:%M:%S %Z", "%Y-%m-%d %H:%M:%S %z"):
        with suppress(ValueError):
            moment = datetime.strptime(text, form)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
