"""What the tracker refuses is told in its own words, with what to do about it; and so is no answer at all."""

import socket

import pytest

from runners.alerting.tracker import TrackerBusyError, TrackerError
from runners.alerting.trackers.github import GitHubTracker
from tests.runners.alerting.conftest import Stand
from tests.runners.alerting.github import REPOSITORY, TOKEN, Fault, GitHub

REFUSALS = {
    (401, "Bad credentials"): "has expired or was revoked: set GITHUB_TOKEN anew",
    (403, "Repository was archived so is read-only."): "unarchive the repository in its settings",
    (403, "Resource not accessible by integration"): "give the job, or the app, the permission",
    (403, "Resource not accessible by personal access token"): "the permission Issues: read and write",
    (403, "Resource protected by organization SAML enforcement."): "single sign-on",
    (403, "Although you appear to have the correct authorization credentials, the `x` organization has an IP"
     " allow list enabled, and your IP address is not permitted"): "add this machine's address to that list",
    (403, "Sorry. Your account was suspended."): "use a token of an account that is not suspended",
    (403, "Must have admin rights to Repository."): "it needs the permission `issues: write`",
    (404, "Not Found"): "check the repository's name in the plan, and that the token may see it",
    (410, "Issues has been disabled in this repository."): "switch issues on in the repository's settings",
    (422, "Validation Failed"): "see its message",
    (451, "Repository access blocked"): "GitHub has blocked the repository: ask its support",
}  # fmt: skip

LIMITS = (
    (403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
    (403, "You have triggered an abuse detection mechanism. Please wait a few minutes before you try again."),
    (403, "You have been temporarily blocked from content creation. Please retry your request again later."),
    (429, "API rate limit exceeded for user ID 1."),
)


@pytest.mark.parametrize(("status", "message"), REFUSALS)
def test_a_refusal_is_told_with_what_to_do(stand: Stand, status: int, message: str) -> None:
    stand.github.faults = [Fault(status, method="POST", message=message)]
    (why,) = stand.failures().values()
    assert f"the tracker answered {status}: {message}" in why
    assert REFUSALS[status, message] in why
    others = {hint for hint in REFUSALS.values() if hint != REFUSALS[status, message]}
    assert [hint for hint in others if hint in why] == []


@pytest.mark.parametrize(("status", "message"), LIMITS)
def test_a_limit_is_a_pause_and_not_a_matter_of_rights(stand: Stand, status: int, message: str) -> None:
    stand.github.faults = [Fault(status, method="POST", message=message)]
    code, told = stand.report()
    assert (code, "the tracker wants no request before" in told) == (2, True)
    (why,) = stand.failures().values()
    assert "nothing has to be done" in why
    assert "permission" not in why
    assert len(stand.github.issues) == 0


def test_an_archived_repository_is_named(stand: Stand) -> None:
    stand.github.is_archived = True
    (why,) = stand.failures().values()
    assert "403: Repository was archived so is read-only." in why
    assert "unarchive the repository" in why


def failure(url: str, timeout_seconds: float = 1.0) -> TrackerError:
    with pytest.raises(TrackerBusyError) as caught:
        GitHubTracker(REPOSITORY, TOKEN, url, timeout_seconds=timeout_seconds).read(1)
    return caught.value


def test_no_answer_has_its_reason(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert failure(f"http://127.0.0.1:{port}", 0.2).what.endswith("nothing came within 0.2 s")
    assert failure(f"http://127.0.0.1:{port}").what.endswith("did not answer: Connection refused")
    assert "the name of its host cannot be resolved" in failure("http://nowhere.invalid").what
    github.faults = [Fault()]
    assert failure(github.url).what.endswith("the connection was closed without an answer")
    github.faults = [Fault(cut=True)]
    assert "did not answer: " in failure(github.url).what
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    refused = failure("http://tracker.invalid")
    assert refused.what.endswith("did not answer: Connection refused")
    assert "secret" not in str(refused)
