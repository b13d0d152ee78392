"""A real Gitea is told, answers, is renamed, refuses and goes away, as what stands in for it does."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.tracker import (
    AssigneesRefusedError,
    IssueChangedError,
    IssueDeletedError,
    IssueEdit,
    IssueRefusedError,
    Tracker,
    TrackerRefusedError,
)
from runners.cli import main
from tests.runners.alerting.trackers.real_gitea import (
    ADMINISTRATOR,
    OWNER,
    READER,
    REPOSITORY,
    TIDEMARK,
    WRITER,
    RealGitea,
)
from tests.runners.small_plan import small_plan

pytestmark = pytest.mark.server

DESIRED = DesiredIssue(
    "f1", AlertKind.CHANGE, "insert is 9 % slower", Markdown("since Monday\n\n    /close"), IssueState.OPEN
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def deliver(store: Store, tracker: Tracker, *desired: DesiredIssue) -> DeliveryResult:
    with store.database.writing() as connection:
        alert_outbox.set_desired(connection, desired, datetime.now(UTC))
    return Delivery(store.database, tracker, ("performance",), 9).run()


def alert(store: Store) -> Alert:
    with store.database.reading() as connection:
        (alert,) = alert_outbox.load(connection)
    return alert


def test_an_issue_lives_as_its_alert_does(gitea: RealGitea, store: Store) -> None:
    assert deliver(store, gitea.tracker(), DESIRED).created == ["f1"]
    number = alert(store).issue
    issue = gitea.tracker().read(number or 0)
    assert (issue.title, issue.labels, issue.author) == (DESIRED.title, ("performance",), TIDEMARK)
    assert issue.address == f"{gitea.url}/{REPOSITORY}/issues/{number}"
    assert deliver(store, gitea.tracker(), replace(DESIRED, body=Markdown("worse"))).updated == ["f1"]
    closed = replace(DESIRED, state=IssueState.CLOSED, closing="gone since Friday")
    assert deliver(store, gitea.tracker(), closed).closed == ["f1"]
    after = gitea.tracker().read(number or 0)
    assert (after.state, after.closed_by) == (IssueState.CLOSED, TIDEMARK)
    assert deliver(store, gitea.tracker(), DESIRED).updated == ["f1"]
    comments = gitea.ask("GET", f"repos/{REPOSITORY}/issues/{number}/comments", OWNER)
    assert [comment["body"] for comment in comments] == ["Closed: gone since Friday", "It is back."]
    assert deliver(store, gitea.tracker()) == DeliveryResult()


@pytest.mark.parametrize("how", ["closed", "labelled", "deleted"])
def test_people_decide(gitea: RealGitea, store: Store, how: str) -> None:
    deliver(store, gitea.tracker(), DESIRED)
    number = alert(store).issue
    place = f"repos/{REPOSITORY}/issues/{number}"
    if how == "closed":
        gitea.ask("PATCH", place, WRITER, {"state": "closed"})
    elif how == "labelled":
        known = gitea.ask(
            "POST", f"repos/{REPOSITORY}/labels", OWNER, {"name": "Acknowledged", "color": "#000000"}
        )
        gitea.ask("POST", f"{place}/labels", WRITER, {"labels": [known["id"]]})
    else:
        gitea.ask("DELETE", place, OWNER)
    assert deliver(store, gitea.tracker()).muted == ["f1"]
    said = {
        "closed": f"#{number} was closed by a person",
        "labelled": f"label Acknowledged of #{number}",
        "deleted": f"#{number} was deleted",
    }
    assert alert(store).muted == said[how]


@pytest.mark.parametrize("who", [WRITER, OWNER, ADMINISTRATOR])
def test_whoever_may_close_and_label_decides(gitea: RealGitea, who: str) -> None:
    tracker = gitea.tracker()
    issue = tracker.create("t", "text", ("performance",))
    place = f"repos/{REPOSITORY}/issues/{issue.number}"
    gitea.ask("DELETE", f"{place}/labels", who)
    gitea.ask("POST", f"{place}/labels", who, {"labels": ["performance"]})
    gitea.ask("PATCH", place, who, {"state": "closed"})
    closed = tracker.read(issue.number)
    assert closed.closed_by == who
    assert tracker.may_decide(closed)
    assert tracker.may_decide(closed, "Performance")


def test_nobody_else_may_close_or_label(gitea: RealGitea) -> None:
    issue = gitea.tracker().create("t", "text", ("performance",))
    place = f"repos/{REPOSITORY}/issues/{issue.number}"
    for method, path, body in (
        ("PATCH", place, {"state": "closed"}),
        ("DELETE", f"{place}/labels", None),
        ("POST", f"{place}/labels", {"labels": ["performance"]}),
    ):
        with pytest.raises(requests.HTTPError, match="403"):
            gitea.ask(method, path, READER, body)


def test_an_issue_that_depends_on_another_cannot_be_closed(gitea: RealGitea) -> None:
    tracker = gitea.tracker()
    first, issue = (tracker.create(title, "text", ()) for title in ("first", "second"))
    owner, name = REPOSITORY.split("/")
    path = f"repos/{REPOSITORY}/issues/{issue.number}/dependencies"
    gitea.ask("POST", path, WRITER, {"owner": owner, "repo": name, "index": first.number})
    with pytest.raises(IssueRefusedError, match="open dependencies") as caught:
        tracker.edit(issue, IssueEdit(state=IssueState.CLOSED))
    assert "take the dependencies away" in caught.value.hint
    tracker.edit(first, IssueEdit(state=IssueState.CLOSED))
    assert tracker.edit(issue, IssueEdit(state=IssueState.CLOSED)).state is IssueState.CLOSED


def test_what_people_write_meanwhile_is_kept(gitea: RealGitea) -> None:
    tracker = gitea.tracker()
    issue = tracker.create("t", "text", ("performance",))
    gitea.ask("PATCH", f"repos/{REPOSITORY}/issues/{issue.number}", WRITER, {"body": "theirs"})
    with pytest.raises(IssueChangedError):
        tracker.edit(issue, IssueEdit(body="ours"))
    present = tracker.read(issue.number)
    tracker.remove_label(present, "Performance")
    assigned = tracker.edit(tracker.read(issue.number), IssueEdit(assignees=(WRITER,)))
    assert (assigned.body, assigned.labels, assigned.assignees) == ("theirs", (), (WRITER,))
    with pytest.raises(AssigneesRefusedError):
        tracker.edit(assigned, IssueEdit(title="other", assignees=("nobody",)))
    assert tracker.read(issue.number).title == "t"


def test_the_newest_come_first_over_pages(gitea: RealGitea) -> None:
    tracker = gitea.tracker()
    numbers = [tracker.create(f"{place}", "text", ()).number for place in range(53)]
    assert [issue.number for issue in tracker.newest(numbers[0] - 1)] == numbers[::-1]


def test_tokens_that_do_not_suffice(gitea: RealGitea) -> None:
    with pytest.raises(TrackerRefusedError, match="401"):
        gitea.tracker("0" * 40).check()
    reading = gitea.tracker(gitea.new_token(TIDEMARK, "read:issue", "read:repository"))
    assert reading.check() is None
    with pytest.raises(TrackerRefusedError, match="403") as caught:
        reading.create("t", "text", ())
    assert "`write:issue`" in caught.value.hint
    of_reader = gitea.tracker(gitea.new_token(READER, "write:issue", "read:repository"))
    assert of_reader.create("t", "text", ("performance",)).labels == ()
    with pytest.raises(TrackerRefusedError, match="404"):
        gitea.tracker(repository=f"{OWNER}/nothing").check()


def test_a_renamed_repository(gitea: RealGitea, store: Store) -> None:
    name = gitea.new_repository("named")
    deliver(store, gitea.tracker(repository=name), DESIRED)
    gitea.ask("PATCH", f"repos/{name}", OWNER, {"name": "renamed"})
    closed = replace(DESIRED, state=IssueState.CLOSED, closing="gone")
    assert deliver(store, gitea.tracker(repository=name), closed).closed == ["f1"]
    other = replace(DESIRED, fingerprint="f2")
    assert deliver(store, gitea.tracker(repository=name), other).created == ["f2"]


def test_an_archived_repository_and_one_without_issues(gitea: RealGitea) -> None:
    name = gitea.new_repository("old")
    tracker = gitea.tracker(repository=name)
    issue = tracker.create("t", "text", ())
    gitea.ask("PATCH", f"repos/{name}", OWNER, {"archived": True})
    with pytest.raises(TrackerRefusedError, match="is archived"):
        tracker.check()
    with pytest.raises(TrackerRefusedError, match="423") as caught:
        tracker.create("t", "text", ())
    assert "unarchive" in caught.value.hint
    assert tracker.edit(issue, IssueEdit(body="others")).body == "others"
    gitea.ask("PATCH", f"repos/{name}", OWNER, {"archived": False})
    gitea.ask("PATCH", f"repos/{name}", OWNER, {"has_issues": False})
    with pytest.raises(TrackerRefusedError, match="switched off") as caught:
        tracker.read(issue.number)
    assert not isinstance(caught.value, IssueRefusedError)
    gitea.ask("PATCH", f"repos/{name}", OWNER, {"has_issues": True})
    assert tracker.read(issue.number).body == "others"
    with pytest.raises(IssueDeletedError):
        tracker.read(9_999)


def test_it_goes_away_and_comes_back(gitea: RealGitea, store: Store) -> None:
    gitea.stop()
    result = deliver(store, gitea.tracker(), DESIRED)
    assert ("Connection refused" in result.failed["f1"], result.waiting) == (True, 1)
    gitea.start()
    assert deliver(store, gitea.tracker()).created == ["f1"]


def test_a_test_alert_by_command(
    gitea: RealGitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITEA_TOKEN", gitea.token)
    plan = tmp_path / "plan.toml"
    alerts = f'tracker = "gitea"\nurl = "{gitea.url}/"\nrepository = "{REPOSITORY}"'
    plan.write_text(small_plan(["insert"], alerts))
    assert main(["service", "test-alert", "--plan", str(plan)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"opened, and closed again: {gitea.url}/{REPOSITORY}/issues/")
    assert gitea.token not in said.out + said.err
