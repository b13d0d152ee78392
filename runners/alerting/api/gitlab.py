"""GitLab's REST API: its limits, what to do about what it refuses, and texts that it takes for commands."""

import re

from history.escaping.characters import JOINER
from runners.alerting.api.dialect import ApiDialect

_TOKEN = "set GITLAB_TOKEN anew, or write it to /etc/credstore/tidemark-gitlab-token of the box"

GITLAB = ApiDialect(
    tracker="GitLab",
    accept="application/json",
    # Personal, project and group access tokens are taken like this, and tokens of OAuth in no other way.
    signing="Bearer {}".format,
    address_in="alerts.url of the plan",
    remaining="ratelimit-remaining",
    reset="ratelimit-reset",
    limits=("rate limit", "too many requests", "too many times", "retry later"),
    hints=(
        (401, "", f"the token is wrong, has expired or was revoked: {_TOKEN}"),
        (403, "insufficient_scope", f"give the token the scope `api`: {_TOKEN}"),
        (
            403,
            "insufficient_granular_scope",
            f"make a token with the permissions that the message names: {_TOKEN}",
        ),
        (403, "", "give the token's account the role Reporter or a higher one in the project"),
        (
            404,
            "",
            "check alerts.url and alerts.repository in the plan, and that the token may see the project: of a"
            " private project that a token may not see, GitLab says the same",
        ),
        (400, "", "GitLab does not take what was sent: see its message"),
        (405, "", "the project has moved: name its new path in the plan (alerts.repository)"),
        (422, "", "GitLab does not take what was sent: see its message"),
    ),
)

_COMMAND = r"(?m)^([ \t]*/){}(?=[A-Za-z_]+(?:[ \t\r]|$))"
"""The beginning of a line that GitLab may carry out as a quick action: a word behind a slash, no path."""


_REFERENCE = r"([@#!~%&$]){}(?=[\w\"])"
"""What GitLab takes for a person, or for something else that it links, in a title, too."""


def without_references(title: str) -> str:
    """Return a title that mentions nobody and links nothing."""
    return re.sub(_REFERENCE.format(""), rf"\g<1>{JOINER}", title)


def with_references(title: str) -> str:
    """Return a title as it was before `without_references`."""
    return re.sub(_REFERENCE.format(JOINER), r"\g<1>", title)


def without_commands(text: str) -> str:
    """Return a text in which no line is a quick action such as `/close`, whoever wrote it."""
    return re.sub(_COMMAND.format(""), rf"\g<1>{JOINER}", text)


def with_commands(text: str) -> str:
    """Return a text as it was before `without_commands`, so that it can be compared with what was written."""
    return re.sub(_COMMAND.format(JOINER), r"\g<1>", text)
