"""GitLab and Gitea are told, closed and answered as GitHub is, whatever differs between their APIs."""

from datetime import UTC, date, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.escaping.characters import JOINER
from history.store.alert_outbox import IssueState
from runners.alerting.api.gitlab import with_commands, with_references, without_commands, without_references
from runners.alerting.tracker import (
    AssigneesRefusedError,
    IssueChangedError,
    IssueDeletedError,
    IssueEdit,
    IssueRefusedError,
    LabelsRefusedError,
    TrackerBusyError,
    TrackerRefusedError,
)
from runners.alerting.tracker_registry import issue_pages
from runners.cli import main
from runners.nightly.plan import Alerts
from tests.runners.alerting.conftest import Stand, other_trackers
from tests.runners.alerting.github import PERSON, REPOSITORY, TOKEN, Fault, GitHub
from tests.runners.alerting.others.gitea import ACTIONS, LARGEST_PAGE, Gitea
from tests.runners.alerting.others.gitlab import GitLab

gitlab_alone = pytest.mark.parametrize("github", ["gitlab"], indirect=True)
gitea_alone = pytest.mark.parametrize("github", ["gitea"], indirect=True)


@other_trackers
def test_an_issue_lives_as_its_alert_does(stand: Stand) -> None:
    assert stand.report()[0] == 0
    assert [label["name"] for label in stand.github.issues[1]["labels"]] == ["performance"]
    stand.end()
    assert stand.report()[0] == 0
    assert stand.open_issues() == []
    assert "was built again on" in stand.github.issues[1]["body"]
    assert stand.github.comments[0][1].startswith("Closed: ")
    stand.fail()
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues()) == (1, [1])


@other_trackers
def test_a_test_alert_is_opened_and_closed(stand: Stand) -> None:
    assert main(["service", "test-alert", "--plan", str(stand.plan)]) == 0
    said = stand.capsys.readouterr()
    assert said.out == f"opened, and closed again: {stand.github.issues[1]['html_url']}\n"
    assert stand.github.issues[1]["state"] == "closed"


# --- who may decide


@other_trackers
@pytest.mark.parametrize("how", ["closed", "labelled"])
def test_a_decision_counts_of_those_who_may_write(stand: Stand, how: str) -> None:
    stand.report()
    if how == "closed":
        stand.github.close(1, reason=None)
    else:
        stand.github.label(1, "Acknowledged")
    assert stand.report()[0] == 0
    said = {"closed": "#1 was closed by a person", "labelled": "label Acknowledged of #1"}
    assert stand.alert().muted == said[how]


@pytest.mark.parametrize(
    ("github", "who"),
    [("gitlab", "guest"), ("gitlab", "reporter"), ("gitea", ACTIONS)],
    indirect=["github"],
)
def test_an_issue_that_somebody_else_closes_is_opened_again(stand: Stand, who: str) -> None:
    stand.report()
    stand.github.label(1, "acknowledged", who)
    stand.github.close(1, reason=None, who=who)
    assert stand.report()[0] == 0
    assert (stand.open_issues(), stand.alert().muted) == ([1], None)
    why = f"{who} closed it, who may not write to this repository: that does not count."
    assert stand.github.comments == [(1, why)]
    assert stand.report()[0] == 0
    assert len(stand.github.comments) == 1


@gitlab_alone
def test_a_label_of_somebody_else_does_not_hide_that_a_writer_closed_it(stand: Stand) -> None:
    stand.report()
    stand.github.label(1, "acknowledged", "guest")
    stand.github.close(1, reason=None)
    stand.report()
    assert stand.alert().muted == "#1 was closed by a person"


# --- what is refused


@other_trackers
def test_a_deleted_issue_is_told_from_one_that_a_proxy_does_not_find(github: GitHub) -> None:
    tracker = github.tracker()
    tracker.create("insert is 9 % slower", "since Monday", ())
    github.faults = [Fault(404, content=b"<html>not found</html>")]
    with pytest.raises(IssueRefusedError) as caught:
        tracker.read(1)
    assert not isinstance(caught.value, IssueDeletedError)
    github.deleted.add(1)
    with pytest.raises(IssueDeletedError):
        tracker.read(1)
    github.is_switched_off = True
    with pytest.raises(TrackerRefusedError, match="switched off") as refused:
        tracker.read(1)
    assert not isinstance(refused.value, IssueRefusedError)


@other_trackers
@pytest.mark.parametrize(
    ("state", "what"),
    [({"is_archived": True}, "is archived"), ({"is_switched_off": True}, "issues are switched off")],
)
def test_a_check_says_why_no_alert_would_arrive(github: GitHub, state: dict[str, bool], what: str) -> None:
    for name, value in state.items():
        setattr(github, name, value)
    with pytest.raises(TrackerRefusedError, match=what):
        github.tracker().check()


@other_trackers
def test_a_wrong_token_is_told_with_what_to_do(github: GitHub) -> None:
    with pytest.raises(TrackerRefusedError, match="401") as caught:
        github.tracker(token="wrong-and-secret").check()
    assert f"set {github.kind.upper()}_TOKEN anew" in caught.value.hint
    assert "wrong-and-secret" not in str(caught.value)


@other_trackers
def test_labels_that_cannot_be_set_are_left_out(stand: Stand) -> None:
    stand.github.refused_labels = {"performance"}
    code, told = stand.report()
    assert (code, "was opened without its labels" in told) == (2, True)
    assert stand.github.issues[1]["labels"] == []


@other_trackers
def test_a_label_is_taken_away_and_an_unknown_account_refused(github: GitHub) -> None:
    tracker = github.tracker()
    issue = tracker.create("insert is 9 % slower", "since Monday", ("performance",))
    tracker.remove_label(issue, "Performance")
    issue = tracker.read(1)
    assert issue.labels == ()
    with pytest.raises(AssigneesRefusedError, match="nobody"):
        tracker.edit(issue, IssueEdit(title="insert is 8 % slower", assignees=("nobody",)))
    assert github.issues[1]["title"] == "insert is 9 % slower"
    assigned = tracker.edit(issue, IssueEdit(assignees=(PERSON,)))
    assert assigned.assignees == (PERSON,)
    assert tracker.edit(assigned, IssueEdit(assignees=())).assignees == ()


# --- addresses and pages


@other_trackers
def test_the_same_path_in_another_tracker_is_another_repository(stand: Stand) -> None:
    """Else its issues, which are not there, would be taken for ones that a person deleted."""
    stand.report()
    assert stand.alert().repository == f"{stand.github.url.removeprefix('http://')}/{REPOSITORY}"
    stand.execute(f"UPDATE alerts SET repository = '{REPOSITORY}'")
    stand.github.deleted.add(1)
    stand.change("changed")
    assert stand.report()[0] == 0
    assert (stand.alert().muted, stand.alert().issue) == (None, 2)


@other_trackers
def test_a_renamed_repository_still_gets_issues(stand: Stand) -> None:
    stand.report()
    stand.github.rename("example/renamed")
    stand.end()
    assert stand.report()[0] == 0
    assert stand.open_issues() == []
    stand.fail()
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues()) == (1, [1])


@other_trackers
def test_all_pages_are_read_and_no_more_than_needed(github: GitHub) -> None:
    count = 5 * LARGEST_PAGE + 1
    for number in range(count):
        github.create({"title": f"{number}", "body": "text"})
    tracker = github.tracker()
    assert [issue.number for issue in tracker.newest(0)] == list(range(count, 0, -1))
    before = len(github.requests)
    assert [issue.number for issue in tracker.newest(count - 1)] == [count]
    assert len(github.requests) == before + 1


@other_trackers
def test_when_an_issue_was_closed_is_told_by_the_clock_of_the_box(github: GitHub) -> None:
    github.ahead = timedelta(days=5)
    github.create({"title": "ours", "body": "marker"})
    github.close(1)
    issue = github.tracker().read(1)
    assert issue.closed_at is not None
    assert abs(issue.closed_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert issue.closed_by == PERSON


def test_a_plan_names_the_address_and_the_repository_of_a_tracker() -> None:
    url = "https://git.example.org/sub/path"
    assert Alerts(tracker="gitea", repository=REPOSITORY, url=url).url == url
    assert Alerts(tracker="gitlab", repository="group/sub/project").url is None
    with pytest.raises(ValueError, match="gitea needs the address of its pages"):
        Alerts(tracker="gitea", repository=REPOSITORY)
    with pytest.raises(ValueError, match="a repository of github is owner/name"):
        Alerts(repository="group/sub/project")
    with pytest.raises(ValueError, match="url"):
        Alerts(tracker="gitea", repository=REPOSITORY, url="https://me:secret@git.example.org")
    assert issue_pages("gitea", url) == "https://{repository}/issues/{number}"
    assert issue_pages("gitlab") == "https://{repository}/-/issues/{number}"
    assert issue_pages("github", "https://git.example.org/").startswith("https://git.example.org/{rep")


# --- GitLab's own


@gitlab_alone
def test_a_quick_action_in_a_log_is_not_carried_out(github: GitHub) -> None:
    tracker = github.tracker()
    text = "it says:\n\n    /close\n/label ~x\n/usr/bin/ld: error\nsee /assign"
    issue = tracker.create("@ann: postgres@18.6, see #7", text, ())
    assert (issue.title, issue.body) == ("@ann: postgres@18.6, see #7", text)
    assert github.issues[1]["title"] == f"@{JOINER}ann: postgres@{JOINER}18.6, see #{JOINER}7"
    kept = str(github.issues[1]["body"])
    assert f"    /{JOINER}close\n/{JOINER}label ~x\n/usr/bin/ld: error\nsee /assign" in kept
    changed = tracker.edit(issue, IssueEdit(body=f"{text}\n/reopen"))
    assert changed.body == f"{text}\n/reopen"
    assert str(github.issues[1]["body"]).endswith(f"\n/{JOINER}reopen")
    tracker.comment(changed, "/close")
    assert github.comments == [(1, f"/{JOINER}close")]


@given(st.text(alphabet="/aclose \t\r\n~>-@" + JOINER))
def test_texts_come_back_as_they_were_sent(text: str) -> None:
    sent = without_commands(text)
    assert without_commands(sent) == sent
    assert with_commands(sent) == with_commands(text)
    assert with_references(without_references(text)) == with_references(text)
    assert not [line for line in sent.split("\n") if line.strip().split(" ")[0] in ("/close", "/a")]


@gitlab_alone
def test_when_the_token_expires_and_what_it_may_do_is_asked(github: GitHub) -> None:
    lab = cast(GitLab, github)
    assert lab.tracker().check() is None
    lab.token = {"scopes": ["api"], "expires_at": f"{date(2027, 1, 31)}"}
    assert lab.tracker().check() == datetime(2027, 1, 31, tzinfo=UTC)
    lab.token = {"scopes": ["read_api"], "expires_at": None}
    with pytest.raises(TrackerRefusedError, match="its scopes are read_api"):
        lab.tracker().check()
    lab.token = {"scopes": ["granular"], "expires_at": f"{date(2027, 1, 31)}"}
    assert lab.tracker().check() == datetime(2027, 1, 31, tzinfo=UTC)
    lab.is_personal = False
    assert lab.tracker().check() is None


@gitlab_alone
def test_a_fine_grained_token_that_lacks_a_permission_is_told_which(github: GitHub) -> None:
    tracker = github.tracker()
    issue = tracker.create("t", "text", ())
    said = b'{"error":"insufficient_granular_scope","error_description":"requires: [User: Read]"}'
    github.faults = [Fault(403, content=said, method="GET")]
    with pytest.raises(TrackerRefusedError, match=r"requires: \[User: Read\]") as caught:
        tracker.read(1)
    assert "permissions that the message names" in caught.value.hint
    lab = cast(GitLab, github)
    lab.refuses_accounts = said
    with pytest.raises(AssigneesRefusedError, match="User: Read"):
        tracker.edit(issue, IssueEdit(assignees=(PERSON,)))


@gitlab_alone
@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "90"}, {"RateLimit-Remaining": "0", "RateLimit-Reset": "{}"}],
)
def test_a_limit_is_a_pause(github: GitHub, headers: dict[str, str]) -> None:
    until = datetime.now(UTC) + timedelta(seconds=90)
    named = {name: value.format(int(until.timestamp())) for name, value in headers.items()}
    github.faults = [Fault(429, named, content=b"Retry later\n")]
    with pytest.raises(TrackerBusyError) as caught:
        github.tracker().read(1)
    assert caught.value.retry_at is not None
    assert abs(caught.value.retry_at - until) < timedelta(seconds=10)
    assert "nothing has to be done" in caught.value.hint


@gitlab_alone
def test_messages_by_field_are_told(github: GitHub) -> None:
    github.faults = [Fault(400, content=b'{"message":{"title":["is too long","is bad"]}}', method="POST")]
    with pytest.raises(IssueRefusedError, match="title is too long; is bad"):
        github.tracker().create("t", "text", ())
    with pytest.raises(LabelsRefusedError, match="commas"):
        github.tracker().create("t", "text", ("a,b",))


# --- Gitea's own


@gitea_alone
def test_what_is_written_in_the_moment_of_an_edit_is_not_overwritten(github: GitHub) -> None:
    tracker = github.tracker()
    issue = tracker.create("t", "text", ())
    github.after_reads = [lambda kept: kept.update(body="meanwhile")]
    with pytest.raises(IssueChangedError) as caught:
        tracker.edit(issue, IssueEdit(body="ours", state=IssueState.CLOSED))
    assert (caught.value.issue.body, github.issues[1]["state"]) == ("meanwhile", "open")


@gitea_alone
def test_who_may_close_an_issue_need_not_be_one_who_can_be_assigned(stand: Stand) -> None:
    """An administrator of the server is among neither the collaborators nor the assignees."""
    stand.report()
    stand.github.close(1, reason=None, who="administrator")
    stand.report()
    assert stand.alert().muted == "#1 was closed by a person"


@gitea_alone
def test_an_issue_that_depends_on_others_is_refused_alone(github: GitHub) -> None:
    tracker = github.tracker()
    issue = tracker.create("t", "text", ())
    cast(Gitea, github).dependent.add(1)
    with pytest.raises(IssueRefusedError, match="open dependencies") as caught:
        tracker.edit(issue, IssueEdit(state=IssueState.CLOSED))
    assert "take the dependencies away" in caught.value.hint


@gitea_alone
def test_a_label_that_the_plan_names_is_created(github: GitHub) -> None:
    git = cast(Gitea, github)
    git.labels = [f"label {number}" for number in range(LARGEST_PAGE + 1)]
    assert git.tracker().create("t", "text", ("performance", "Label 20")).labels == (
        "performance",
        "label 20",
    )
    assert git.labels.count("performance") == 1


@gitea_alone
def test_who_closed_an_issue_is_found_behind_many_comments(github: GitHub) -> None:
    github.create({"title": "ours", "body": "marker"})
    for number in range(2 * LARGEST_PAGE):
        github.label(1, f"label {number}")
    github.close(1)
    assert github.tracker().read(1).closed_by == PERSON


@other_trackers
def test_the_token_is_in_no_address(github: GitHub) -> None:
    github.tracker().check()
    assert github.requests
    assert not [request for request in github.requests if TOKEN in request]
