"""What routes are told of a history, line by line, and that nothing is told twice."""

from collections.abc import Sequence

import pytest

from build.home import ROOT
from history.changes.confirmation import ConfirmationRequest
from history.changes.stored_rules import Owner, set_owners
from history.escaping.markdown import md
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from runners.alerting.issues.box_names import box_prefix
from runners.alerting.notices.digest import night_notice, report_trouble
from runners.alerting.notices.routes import Route
from runners.alerting.notices.telling import Trouble
from tests.history.commits import Commits
from tests.runners.alerting.notices.conftest import Told
from tests.runners.alerting.notices.receivers import Webhook
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners"


def regress(commits: Commits) -> str:
    """Record a confirmed regression; return its fingerprint."""
    commits.more(1, {"insert": 0.93})
    commits.confirm({"insert": 0.93})
    (change,) = commits.judge().new
    return change.fingerprint


def test_the_lines_of_a_life(commits: tuple[Told, Commits], hook: Webhook) -> None:
    told, nights = commits
    change = regress(nights)
    told.tell()
    told.tell()
    with told.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE notices SET occasion = '' WHERE kind = 'new'")
    told.tell()
    nights.more(1)
    nights.confirm(old=3, question=ConfirmationRequest.GONE, change=change)
    nights.judge()
    told.tell(days=1)
    told.tell()
    with told.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE changes SET status = 'open'")
        connection.exec_driver_sql("UPDATE alerts SET issue = 12, issue_state = 'closed', repository = 'o/n'")
    told.tell()
    told.tell(told.trouble("the backup failed: no space left", "alerts wait in the outbox (3): refused"))
    told.tell(told.trouble("alerts wait in the outbox (4): refused", "the backup failed: no space left"))
    told.tell(told.trouble("the git source was away"), days=1)
    told.tell(told.trouble(), days=1)
    told.tell(told.trouble())
    told.nights += [
        night_notice("box", "2 of 2 versions measured", measured=True, failed=False),
        night_notice("box", "0 of 1 version measured; not measured: ...", measured=False, failed=True),
    ]
    told.tell(told.trouble("the git source was away"))
    told.tell(told.trouble("the git source was away"), days=6)
    told.tell()
    shown = "\n\n".join(f"{title}\n{line}" for title, line in zip(hook.titles, hook.lines, strict=True))
    require_golden("notices.txt", f"{shown}\n", GOLDEN)


def test_a_digest_comes_once_a_week_and_when_nothing_is_open(told: Told, hook: Webhook) -> None:
    for _ in range(6):
        told.tell(days=1)
    assert hook.lines == []
    told.tell(days=2)  # Monday was missed
    told.tell()
    told.tell(days=1)
    (digest,) = hook.lines
    assert digest.splitlines() == [
        "Week to 2026-12-08: 0 changes open, 0 troubles open; in these 7 days 0 new, 0 returned, 0 fixed.",
        "Box box: no night in 7 days. Is it on? ./tidemark status on the box says more.",
    ]


@pytest.mark.parametrize(("days", "titles"), [(0, ["a change is new", "the week"]), (2, ["the week"])])
def test_what_issues_told_before_the_first_route_is_in_the_first_digest(
    days: int, titles: list[str], commits: tuple[Told, Commits], hook: Webhook
) -> None:
    told, nights = commits
    regress(nights)
    told.tell()
    hook.taken.clear()
    with told.store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM notices")
        set_owners(connection, 1, [Owner("alice", True, "suites write-heavy")])
    told.tell(days=days)
    assert [title.removeprefix("Tidemark: ") for title in hook.titles] == titles
    age = "for 2 days" if days else "since today"
    assert f"1 change open, 0 troubles open; in these 7 days {len(titles) - 1} new," in hook.lines[-1]
    assert f"- open {age}: postgres@" in hook.lines[-1]
    assert all("; owner: alice (assignee)" in line for line in hook.lines)


def test_a_person_who_closed_an_issue_is_told_nothing(commits: tuple[Told, Commits], hook: Webhook) -> None:
    told, nights = commits
    regress(nights)
    told.tell()
    with told.store.database.writing() as connection:
        (alert,) = alert_outbox.load(connection)
        alert_outbox.mute(connection, alert, "closed as not planned by alice")
    told.tell(days=1)
    assert [line.partition(":")[0] for line in hook.lines] == ["New"]


def silence(told: Told, state: IssueState, box: str = "box") -> None:
    issue = DesiredIssue(
        f"{box_prefix(box)}x", AlertKind.CRASH, "box db1: its night is missing", md(""), state, "it is well"
    )
    with told.store.database.writing() as connection:
        alert_outbox.set_desired(connection, [issue], told.when)


def test_a_box_that_falls_silent_again_is_told_again(told: Told, hook: Webhook) -> None:
    for state in (IssueState.OPEN, IssueState.CLOSED, IssueState.OPEN, IssueState.OPEN):
        silence(told, state)
        told.tell(judges=False)
    assert [line.partition(";")[0] for line in hook.lines] == [
        "Trouble: box db1: its night is missing",
        "Over: box db1: its night is missing",
        "Trouble: box db1: its night is missing",
    ]


def test_the_silence_of_a_box_is_told_to_routes_about_it(told: Told, hook: Webhook) -> None:
    told.routes = [Route(name="team", boxes=("other",))]
    silence(told, IssueState.OPEN)
    told.tell(judges=False)
    assert hook.lines == []


def test_a_box_that_left_the_plan_is_still_told_to_routes_about_it(
    commits: tuple[Told, Commits], hook: Webhook
) -> None:
    told, _ = commits
    for routed, lines in (("other", 0), ("db1", 2)):
        told.routes = [Route(name="team", boxes=(routed,))]
        for state in (IssueState.OPEN, IssueState.CLOSED):
            silence(told, state, "db1")
            told.tell(judges=False)
        assert len(hook.lines) == lines


def test_a_history_on_a_server_keeps_what_was_told(anywhere: Told, hook: Webhook) -> None:
    for reasons in (["a backup failed"], ["a backup failed"], []):
        assert anywhere.tell(anywhere.trouble(*reasons), days=1) == []
    assert [line.partition(":")[0] for line in hook.lines] == ["Trouble", "Over"]


@pytest.mark.parametrize(
    ("wish", "titles"),
    [
        ({"kinds": ["fixed", "digest"]}, []),
        ({"kinds": ["confirmed"]}, ["a change is new"]),
        ({"kinds": ["new"], "min_percent": 6.9}, ["a change is new"]),
        ({"kinds": ["new"], "min_percent": 7.5}, []),
        ({"suites": ["tpcc"]}, ["the service needs somebody"]),
        ({"suites": ["write-heavy"], "kinds": ["new"]}, ["a change is new"]),
        ({"branches": ["postgres@REL_18_STABLE"], "boxes": ["box1"], "kinds": ["new"]}, []),
        ({"boxes": ["db2"], "kinds": ["trouble"]}, []),
        ({"boxes": ["db1"], "kinds": ["trouble"]}, ["the service needs somebody"]),
    ],
    ids=str,
)  # fmt: skip
def test_a_route_gets_what_it_asks_for(
    wish: dict[str, object], titles: list[str], commits: tuple[Told, Commits], hook: Webhook
) -> None:
    told, nights = commits
    told.routes = [Route.model_validate({"name": "team", **wish})]
    regress(nights)
    told.tell(told.trouble("the backup failed"))
    assert [title.removeprefix("Tidemark: ") for title in hook.titles] == titles


@pytest.mark.parametrize(
    ("wish", "changes", "troubles"),
    [
        ({"kinds": ["digest"]}, "1 change", "1 trouble"),
        ({"suites": ["tpcc"], "boxes": ["db1"]}, "0 changes", "1 trouble"),
        ({"boxes": ["db2"], "kinds": ["digest"]}, "0 changes", "0 troubles"),
        ({"min_percent": 7.5}, "0 changes", "1 trouble"),
    ],
    ids=str,
)
def test_a_digest_has_what_its_route_is_about(
    wish: dict[str, object],
    changes: str,
    troubles: str,
    commits: tuple[Told, Commits],
    hook: Webhook,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, nights = commits
    monkeypatch.setenv("TIDEMARK_NOTIFY_OTHERS", hook.url)
    told.routes = [Route(name="team"), Route.model_validate({"name": "others", **wish})]
    regress(nights)
    told.tell(told.trouble("the git source was away"))
    hook.taken.clear()
    told.tell(days=7)
    everything, chosen = (line.splitlines()[0] for line in sorted(hook.lines, key=len, reverse=True))
    new = changes.partition(" ")[0]
    assert "1 change open, 1 trouble open; in these 7 days 1 new" in everything
    assert f"{changes} open, {troubles} open; in these 7 days {new} new" in chosen


def test_one_outage_is_told_by_one_box(told: Told, hook: Webhook) -> None:
    def report(box: str, *reasons: str) -> Trouble:
        return Trouble(report_trouble(box), f"the report on {box}", reasons, "read", reported_by=box)

    def night(*reasons: str, own: str = "", boxes: Sequence[str] = ("db1", "db2", "db3")) -> list[str]:
        """Let each box have a night whose report has these problems, the second one of its `own`."""
        hook.taken.clear()
        for box in boxes:
            told.nights.append(night_notice(box, "measured", measured=True, failed=False))
            also = [own] if own and box == "db2" else []
            told.tell(report(box, *reasons, *also), days=1 / len(boxes))
        return [line.partition("; to do")[0] for line in hook.lines if not line.startswith("Week")]

    away = ("the tracker: no answer", "alerts wait (3)")
    assert night() == []
    assert night(*away) == ["Trouble: the report on db1: the tracker: no answer; alerts wait (3)"]
    assert night(*away, own="the backup failed") == ["Trouble: the report on db2: the backup failed"]
    assert night() == ["Over: the report on db1 had no problem", "Over: the report on db2 had no problem"]
    assert night(*away[:1]) == ["Trouble: the report on db1: the tracker: no answer"]
    # The first box is lost: what it told is told by another one, which will say when it is over.
    assert night(*away[:1], boxes=["db2", "db3"]) == []
    assert night(*away[:1], boxes=["db2", "db3"]) == ["Trouble: the report on db2: the tracker: no answer"]
    assert night(*away[:1], boxes=["db2", "db3"]) == []
