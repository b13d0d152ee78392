"""What people do to issues, and requests that are lost or doubled: nobody's issue is touched."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from history.open import open_store
from runners.alerting.outbox import update_outbox
from runners.nightly.plan import load_plan
from runners.nightly.report import deliver
from tests.runners.alerting.conftest import Stand, every_tracker
from tests.runners.alerting.github import BOT, OTHER, PERSON, REPOSITORY, Fault
from tests.runners.alerting.pauses import LATER, retry_date

TIMES = 3
"""How often a fault is played, one after the other."""

FAILED = {"resource": "Issue", "field": "title", "code": "invalid"}


@every_tracker
def test_an_issue_that_a_person_closes_after_ours_failed_is_a_persons(stand: Stand) -> None:
    stand.report()
    stand.end()
    for _ in range(TIMES):
        stand.github.faults = [Fault(500, method="PATCH")]
        assert stand.report()[0] == 2
    stand.github.close(1, reason=None)
    assert stand.report()[0] == 0
    assert stand.alert().muted == "#1 was closed by a person"


@every_tracker
def test_our_closing_is_ours_when_opening_it_again_fails_too(stand: Stand) -> None:
    stand.report()
    stand.end()
    stand.github.faults = [Fault(502, method="PATCH", after=True)]
    assert stand.report()[0] == 2
    stand.fail()
    for _ in range(TIMES):
        stand.github.faults = [Fault(502, method="PATCH")]
        assert stand.report()[0] == 2
    assert stand.report()[0] == 0
    assert (stand.alert().muted, stand.open_issues()) == (None, [1])


@every_tracker
def test_an_issue_that_a_person_closed_before_we_knew_its_number_stays_closed(stand: Stand) -> None:
    stand.github.faults = [Fault(502, method="POST", after=True)]
    assert stand.report()[0] == 2
    stand.github.close(1, reason=None)
    assert stand.report()[0] == 0
    assert stand.alert().muted == "#1 was closed by a person"
    assert stand.open_issues() == []


@every_tracker
def test_an_issue_whose_opening_was_lost_is_closed_when_the_change_is_gone(stand: Stand) -> None:
    stand.github.faults = [Fault(502, method="POST", after=True)]
    assert stand.report()[0] == 2
    stand.end()
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues()) == (1, [])


def test_an_issue_that_was_not_opened_and_is_not_needed_is_not_asked_for_again(stand: Stand) -> None:
    stand.github.faults = [Fault(502, method="POST")]
    assert stand.report()[0] == 2
    stand.end()
    assert stand.report()[0] == 0
    assert (stand.github.issues, stand.alert().is_due) == ({}, False)


def test_a_transferred_issue_is_refused_and_said(stand: Stand) -> None:
    stand.report()
    stand.github.create({"title": "mine"})
    stand.github.transfer(1, 2)
    before = dict(stand.github.elsewhere[2])
    stand.end()
    for _ in range(TIMES):
        code, told = stand.report()
        assert (code, "1 waiting" in told) == (2, True)
        assert "was transferred to somebody/else" in told
    assert stand.github.elsewhere[2] == before
    assert stand.github.issues[2]["title"] == "mine"
    assert (stand.alert().issue, stand.alert().muted) == (1, None)
    stand.github.elsewhere[2]["labels"] = [{"name": "Acknowledged"}]
    assert stand.report()[0] == 0
    assert stand.alert().muted == "label Acknowledged of #2"


def test_an_issue_that_is_transferred_while_it_is_edited_is_left_alone(stand: Stand) -> None:
    stand.report()
    stand.end()
    place = f"{stand.github.url}/repositories/2/issues/2"
    stand.github.elsewhere[2] = stand.github.create({"title": "mine"})
    stand.github.faults = [Fault(307, {"Location": place}, method="PATCH") for _ in range(TIMES)]
    for _ in range(TIMES):
        code, told = stand.report()
        assert (code, "redirects to repositories/2/issues/2, another repository" in told) == (2, True)
    assert stand.report()[0] == 0
    assert stand.github.issues[1]["state"] == "closed"


@pytest.mark.parametrize("is_known", [True, False])
def test_an_issue_without_our_marker_is_not_changed(stand: Stand, is_known: bool) -> None:
    stand.report()
    stand.github.issues[1] |= {"body": "about something else", "title": "mine"}
    if not is_known:  # as an older Tidemark left it
        stand.execute("UPDATE alerts SET repository = NULL")
    stand.end()
    for _ in range(TIMES):
        code, told = stand.report()
        assert (code, "its body does not hold" in told) == (2, True)
    assert (stand.github.issues[1]["title"], stand.github.issues[1]["state"]) == ("mine", "open")
    stand.github.close(1)
    assert stand.report()[0] == 2
    assert stand.alert().muted is None


def test_another_repository_in_the_plan_does_not_lead_to_its_issues(stand: Stand) -> None:
    stand.report()
    stand.execute("UPDATE alerts SET repository = 'example/before'")
    stand.github.issues[1] |= {"body": "about something else", "title": "mine"}
    stand.change("changed")
    assert stand.report()[0] == 0
    assert stand.github.issues[1]["body"] == "about something else"
    assert (stand.alert().issue, stand.alert().repository) == (2, REPOSITORY)


def test_issues_that_are_switched_off_silence_nothing(stand: Stand) -> None:
    stand.report()
    stand.end()
    stand.github.is_switched_off = True
    for _ in range(TIMES):
        code, told = stand.report()
        assert (code, "Issues has been disabled" in told, "1 waiting" in told) == (2, True, True)
    stand.github.is_switched_off = False
    assert stand.report()[0] == 0
    assert (stand.open_issues(), stand.alert().muted) == ([], None)


@every_tracker
def test_a_deleted_issue_is_a_persons_answer(stand: Stand) -> None:
    stand.report()
    stand.github.deleted.add(1)
    assert stand.report()[0] == 0
    assert stand.alert().muted == "#1 was deleted"


def test_a_renamed_repository_still_gets_issues(stand: Stand) -> None:
    stand.github.rename("example/renamed")
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]
    stand.end()
    assert stand.report()[0] == 0
    assert stand.open_issues() == []
    stand.plan.write_text(stand.plan.read_text().replace(REPOSITORY, "example/renamed"))
    stand.fail()
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues()) == (1, [1])


def test_a_pause_holds_for_the_whole_run_and_the_next(stand: Stand) -> None:
    stand.execute(
        "INSERT INTO alerts (fingerprint, nonce, kind, title, body, wanted, closing, attempts, created_at,"
        " updated_at) VALUES ('f0', 'n', 'crash', 'it does not build', 'x', 'open', '', 0,"
        " '2026-11-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z')"
    )
    for fault in (Fault(429, LATER), Fault(503, retry_date()), Fault(403, LATER)):
        stand.github.faults = [fault]
        before = len(stand.github.requests)
        for _ in range(TIMES):
            code, told = stand.report()
            assert (code, "alerts wait in the outbox (2): the tracker wants no request before" in told) == (
                2,
                True,
            )
        assert len(stand.github.requests) == before + 1
        stand.pause_is_over()
    assert stand.report()[0] == 0
    assert len(stand.open_issues()) == 2


def test_422_shows_its_errors(stand: Stand) -> None:
    stand.github.faults = [Fault(422, method="POST", message="Validation Failed", errors=(FAILED, "too bad"))]
    code, told = stand.report()
    assert (code, "422: Validation Failed (Issue title: invalid; too bad)" in told) == (2, True)


def test_labels_that_cannot_be_set_do_not_keep_an_issue_from_being_opened(stand: Stand) -> None:
    stand.github.refused_labels = {"performance"}
    code, told = stand.report()
    assert (code, "was opened without its labels" in told) == (2, True)
    assert stand.github.issues[1]["labels"] == []
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]


@every_tracker
def test_a_request_that_was_carried_out_twice_leaves_one_issue_open(stand: Stand) -> None:
    stand.github.faults = [Fault(method="POST", twice=True)]
    assert stand.report()[0] == 0
    assert (len(stand.github.issues), stand.open_issues(), stand.alert().issue) == (2, [1], 1)
    assert stand.github.issues[2]["body"].startswith("Duplicate of #1.")
    assert stand.github.comments == [(2, "Duplicate of #1")]


@pytest.mark.parametrize("fault", [Fault(502, method="POST", after=True, twice=True), Fault(method="POST")])
def test_duplicates_of_a_lost_answer_are_closed_whatever_fails(stand: Stand, fault: Fault) -> None:
    stand.github.faults = [replace(fault, twice=True)]
    stand.report()
    for _ in range(TIMES):
        stand.github.faults = [Fault(502, method="PATCH")]
        stand.report()
    stand.github.faults = []
    assert stand.report()[0] == 0
    assert stand.open_issues() == [1]


@every_tracker
def test_a_copy_by_a_person_is_no_duplicate(stand: Stand) -> None:
    stand.report()
    ours = stand.github.issues[1]
    stand.github.create({"title": "look at this", "body": ours["body"]}, PERSON)
    stand.github.create({"title": "quoted", "body": f"{ours['body']}\n\nwhat do you think?"}, BOT)
    stand.end()
    assert stand.report()[0] == 0
    assert stand.open_issues() == [2, 3]


def test_refused_issues_do_not_keep_others_from_being_opened(stand: Stand) -> None:
    """Three that a person transferred, and the failed build, which comes after them."""
    for number in (1, 2, 3):
        stand.execute(
            "INSERT INTO alerts (fingerprint, nonce, kind, title, body, wanted, closing, attempts, issue,"
            f" issue_state, created_at, updated_at) VALUES ('f{number}', 'n', 'crash', 'x', 'x', 'open', '',"
            f" 0, {number}, 'open', '2026-11-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z')"
        )
        stand.github.create({"title": "x", "body": f"<!-- tidemark f{number} n -->"}, BOT)
        stand.github.transfer(number, number)
    assert stand.report()[0] == 2
    assert stand.github.issues[4]["title"] == "postgres REL_18_STABLE cannot be built"
    assert OTHER in stand.report()[1]


def test_two_homes_on_one_history_open_one_issue(stand: Stand) -> None:
    """Each reaches the file by a path of its own, and the answers take so long that both would look."""
    link = stand.folder / "link.db"
    link.symlink_to(stand.folder / "home/history.db")
    with stand.store() as store:
        update_outbox(store.database, 0.02)
    stand.github.faults = [replace(Fault(), wait=0.3, after=True) for _ in range(2)]
    problems: list[str] = []
    plan = load_plan(stand.plan)

    def home(path: Path) -> None:
        with open_store(path) as store:
            deliver(plan, Home(stand.folder / "home"), store, problems)

    with ThreadPoolExecutor() as pool:
        list(pool.map(home, (link, stand.folder / "home/history.db")))
    assert (problems, len(stand.github.issues)) == ([], 1)
