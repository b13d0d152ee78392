"""People write into issues, beside Tidemark and at the same time: nothing of it is overwritten."""

from dataclasses import replace
from typing import Any

import pytest

from build.home import Home
from history.store import alert_outbox
from history.store.alert_outbox import IssueState
from history.timestamps import now
from runners.alerting.delivery import MAX_READINGS
from runners.nightly.plan import load_plan
from runners.nightly.report import deliver
from tests.runners.alerting.conftest import Stand, every_tracker

NOTE = "**I look into this**: see #7\n\n- [ ] ask Ann\n"


def body(stand: Stand, number: int = 1) -> str:
    return str(stand.github.issues[number]["body"])


@every_tracker
def test_what_people_write_around_our_text_and_as_the_title_stays(stand: Stand) -> None:
    stand.report()
    stand.github.write(1, title="REL_18 does not build (Ann)", body=f"{NOTE}\n{body(stand)}\n{NOTE}")
    before = body(stand)
    stand.end()
    assert stand.report()[0] == 0
    assert stand.open_issues() == []
    assert stand.github.issues[1]["title"] == "REL_18 does not build (Ann)"
    in_browser = NOTE.replace("\n", "\r\n")
    assert body(stand).startswith(f"{in_browser}\r\n<!-- tidemark ")
    assert body(stand).endswith(f"{in_browser}")
    assert "was built again on" in body(stand)
    assert "make failed" in before
    assert "make failed" not in body(stand)


@every_tracker
def test_a_line_in_our_text_is_moved_out_of_it(stand: Stand) -> None:
    stand.report()
    stand.github.write(1, body=body(stand).replace("make failed", "make failed\n\nmine: a missing header"))
    stand.end()
    assert stand.report()[0] == 0
    assert body(stand).count("mine: a missing header") == 1
    assert body(stand).index("mine: ") > body(stand).index("was built again on")
    assert "make failed" not in body(stand)


def old_form(stand: Stand) -> None:
    """As an earlier version opened an issue, and what it kept of it."""
    issue = stand.github.issues[1]
    text = issue["body"].split("-->\n", 1)[1]
    issue["body"] = text
    stand.execute("UPDATE alerts SET sent_title = NULL, sent_body = NULL, asked_after = NULL")


@pytest.mark.parametrize("is_due", [False, True])
def test_an_issue_of_an_earlier_version_keeps_what_people_added(stand: Stand, is_due: bool) -> None:
    """When something was still to be sent before the update, it is not known any more what was sent."""
    stand.report()
    old_form(stand)
    stand.github.write(1, body=body(stand).replace("<!--", "a note above the marker\n\n<!--") + "and below")
    if is_due:
        stand.execute("UPDATE alerts SET sent_digest = 'of another text'")
    stand.end()
    assert stand.report()[0] == 0
    assert (stand.open_issues(), stand.alert().is_due) == ([], False)
    assert body(stand).count("a note above the marker") == 1
    assert body(stand).endswith("and below")
    assert ("make failed" in body(stand)) == is_due
    stand.fail()
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues()) == (1, [1])
    assert body(stand).count("a note above the marker") == 1


@every_tracker
def test_what_is_written_between_reading_and_editing_is_read_again(stand: Stand) -> None:
    stand.report()
    stand.end()

    def write(issue: dict[str, Any]) -> None:
        issue |= {"body": f"{issue['body']}\nmeanwhile", "title": "mine"}

    stand.github.after_reads = [lambda _: None, write]
    assert stand.report()[0] == 0
    assert body(stand).endswith("\nmeanwhile")
    assert "was built again on" in body(stand)
    assert stand.github.issues[1]["title"] == "mine"


def test_an_issue_that_a_person_mutes_meanwhile_is_not_closed(stand: Stand) -> None:
    stand.report()
    stand.end()
    label = [{"name": "acknowledged"}]
    stand.github.after_reads = [lambda _: None, lambda issue: issue.update(labels=label)]
    assert stand.report()[0] == 0
    assert (stand.open_issues(), stand.alert().muted) == ([1], "label acknowledged of #1")


@every_tracker
def test_an_issue_that_changes_all_the_time_is_left_to_the_next_night(stand: Stand) -> None:
    stand.report()
    stand.end()
    before = body(stand)

    def write(issue: dict[str, Any]) -> None:
        issue["body"] += "."

    stand.github.after_reads = [write] * 20
    code, told = stand.report()
    assert (code, "was changed meanwhile" in told) == (2, True)
    assert [request for request in stand.github.requests if request.startswith(("PATCH", "PUT"))] == []
    assert body(stand).startswith(before)
    left = 20 - len(stand.github.after_reads)
    assert left <= 2 + MAX_READINGS
    stand.github.after_reads = []
    assert stand.report()[0] == 0
    assert "..." in body(stand)


@every_tracker
def test_what_the_tracker_holds_afterwards_is_looked_at(stand: Stand) -> None:
    stand.report()
    stand.end()
    stand.github.after_edits = [lambda issue: issue.update(body="what a program of mine wrote")]
    code, told = stand.report()
    assert (code, "does not hold what was written" in told) == (2, True)
    assert stand.alert().is_due


def test_a_request_that_only_closes_sends_no_text(stand: Stand) -> None:
    """What is not sent overwrites nothing."""
    stand.report()
    with stand.store() as store, store.database.writing() as connection:
        (alert,) = alert_outbox.load(connection)
        gone = replace(alert.desired, state=IssueState.CLOSED, closing="gone")
        alert_outbox.set_desired(connection, [gone], now())
    with stand.store() as store:
        deliver(load_plan(stand.plan), Home(stand.folder / "home"), store, [])
    assert stand.open_issues() == []
    assert [edit.keys() for edit in stand.github.edits] == [{"state", "state_reason"}]
