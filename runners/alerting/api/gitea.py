"""The REST API of Gitea and Forgejo: what to do about what it refuses."""

from runners.alerting.api.dialect import ApiDialect

_TOKEN = "set GITEA_TOKEN anew, or write it to /etc/credstore/tidemark-gitea-token of the box"

SCOPES = "`write:issue` and `read:repository`"
"""What a token has to be allowed."""

GITEA = ApiDialect(
    tracker="Gitea",
    accept="application/json",
    signing="token {}".format,
    address_in="alerts.url of the plan",
    # It counts no requests; what stands before it may, with Retry-After.
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-reset",
    limits=("rate limit", "too many requests"),
    hints=(
        (401, "", f"the token is wrong or was deleted: {_TOKEN}"),
        (403, "scope", f"give the token the scopes {SCOPES}: {_TOKEN}"),
        (403, "archived", "unarchive the repository in its settings"),
        (403, "", "give the token's account the right to write in the repository"),
        (
            404,
            "",
            "check alerts.url and alerts.repository in the plan, and that the token may see the repository:"
            " of a private repository that a token may not see, Gitea says the same",
        ),
        (412, "", "close the issues on which it depends, or take the dependencies away"),
        (422, "", "Gitea does not take what was sent: see its message"),
        (423, "", "unarchive the repository in its settings"),
    ),
)
