"""What people are told: of changes, of what does not build, of what dies; golden texts of issues."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from history.changes import repository
from history.changes.confirmation import ConfirmationRequest
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.records import SessionStatus
from history.store.session_writes import insert_profile
from history.store.writer import Store
from runners.alerting.outbox import desired_issues
from tests.history.commits import Commits, commit
from tests.history.handmade import record_steps, run_record, session_start
from tests.history.profiled import profile
from tests.history.watched import NEW, dated, name_commits, night
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners"
BASE = "postgres@17.11"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def desired(store: Store, smallest: float = 0.02) -> list[DesiredIssue]:
    with store.database.reading() as connection:
        return desired_issues(connection, smallest, alert_outbox.load(connection))


def told(store: Store) -> list[DesiredIssue]:
    """The same, which the outbox has from now on."""
    issues = desired(store)
    with store.database.writing() as connection:
        alert_outbox.set_desired(connection, issues, night(100))
    return issues


def test_the_issue_of_a_regression(regressed: Path) -> None:
    with open_store(regressed) as store:
        (issue,) = desired(store)
        assert desired(store, smallest=0.2) == []
    assert (issue.kind, issue.state) == (AlertKind.CHANGE, IssueState.OPEN)
    require_golden("issue.md", f"# {issue.title}\n\n{issue.body}", GOLDEN)


@pytest.mark.parametrize(
    "several",
    [
        """UPDATE sessions SET options = '{"imported":true,"base":"postgres@17.11"}'""",
        "UPDATE nights SET branch = 'postgres@16' WHERE is_base = 1 AND session_id = 1",
    ],
    ids=["a table's base, which a person named", "two bases over the nights"],
)
def test_the_title_names_the_base_where_there_could_be_another(
    several: str, tmp_path: Path, regressed: Path
) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        (plain,) = desired(store)
        with store.database.writing() as connection:
            connection.exec_driver_sql(several)
        (issue,) = desired(store)
    assert "against" not in plain.title
    assert issue.title == plain.title.replace("(write-heavy)", "(write-heavy, against postgres 17)")


def test_the_issue_of_a_change_between_commits(tmp_path: Path, regressed: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        name_commits(store, "1" * 40, "2" * 40)
        (issue,) = desired(store)
    require_golden("issue-commits.md", f"# {issue.title}\n\n{issue.body}", GOLDEN)


@pytest.fixture
def commits(tmp_path: Path) -> Iterator[Commits]:
    with dated(tmp_path / "commits.db", Commits) as commits:
        yield commits


def test_the_issue_of_a_change_that_was_confirmed_and_went_away(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, {"insert": 0.93})
    commits.confirm({"insert": 0.93})
    (change,) = commits.judge().new
    (issue,) = told(commits.store)
    assert issue.fingerprint == change.fingerprint
    assert " --until-decided postgres@git:000000000003 postgres@git:000000000004\n" in issue.body
    commits.more(1)
    commits.confirm(old=3, question=ConfirmationRequest.GONE, change=change.fingerprint)
    commits.judge()
    (closed,) = desired(commits.store)
    assert closed.state is IssueState.CLOSED
    text = f"# {issue.title}\n\n{issue.body}\n# closed\n\n{closed.body}"
    require_golden("issue-confirmed.md", text, GOLDEN)


def test_functions_come_from_the_session_that_confirmed(commits: Commits) -> None:
    commits.more(3)
    commits.more(1, {"insert": 0.93})
    session = commits.confirm({"insert": 0.93})
    commits.judge()
    with commits.store.database.writing() as connection:
        for place, version in enumerate((commit(3), commit(4))):
            query = f"SELECT min(id) FROM runs WHERE session_id = {session} AND version = '{version}'"
            run = connection.exec_driver_sql(query).scalar_one()
            stacks = {"client backend;exec;heap_insert": 1000 + 800 * place, "client backend;exec": 500}
            insert_profile(connection, run, replace(profile({}), stacks=stacks))
    (issue,) = desired(commits.store)
    assert "CPU time per query grew most in heap_insert +" in issue.body


def test_a_change_that_went_away_closes_its_issue_only_if_there_is_one(
    regressed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        gone = "UPDATE changes SET status = 'closed', reason = 'back since Monday'"
        with store.database.writing() as connection:
            connection.exec_driver_sql(gone)
        assert desired(store) == []
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE changes SET status = 'open', reason = NULL")
        assert len(told(store)) == 1
        with store.database.writing() as connection:
            connection.exec_driver_sql(gone)
        (closed,) = desired(store)
        assert (closed.state, closed.closing) == (IssueState.CLOSED, "back since Monday")
        assert "**It is gone**: back since Monday." in closed.body


def test_improvements_open_no_issue(regressed: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE changes SET direction = 'improvement'")
        assert desired(store) == []


def test_functions_of_both_nights_are_named(regressed: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        with store.database.writing() as connection:
            (change,) = repository.load(connection)
            for place, session in enumerate((change.last_before, change.first_after)):
                run = connection.exec_driver_sql(
                    f"SELECT id FROM runs WHERE session_id = {session.session_id} AND version = '{NEW}'"
                    " AND step = 'insert'"
                ).scalar_one()
                stacks = {"client backend;exec;heap_insert": 1000 + 800 * place, "client backend;exec": 500}
                insert_profile(connection, run, replace(profile({}), stacks=stacks))
        (issue,) = desired(store)
    assert "CPU time per query grew most in heap_insert +" in issue.body


def test_a_version_that_does_not_build_is_told_once_and_closed(store: Store) -> None:
    options = {"versions": [BASE, NEW], "not_built": {NEW: "make failed:\n  ```\n@everyone error: x"}}
    start = replace(session_start("one"), options=options)
    record_steps(store, start, {"insert": {BASE: [1.0]}})
    (issue,) = desired(store)
    assert (issue.kind, issue.title) == (AlertKind.BUILD, "postgres REL_18_STABLE cannot be built")
    assert "\n    not built: make failed:\n      ```\n    @everyone error: x\n" in issue.body
    record_steps(store, replace(start, uid="two"), {"insert": {BASE: [1.0]}})
    assert [issue_now.fingerprint for issue_now in desired(store)] == [issue.fingerprint]
    told(store)
    record_steps(store, session_start("three"), {"insert": {BASE: [1.0], NEW: [1.0]}})
    (closed,) = told(store)
    assert (closed.state, closed.closing) == (IssueState.CLOSED, f"{NEW} was built again")
    record_steps(store, session_start("four"), {"insert": {BASE: [1.0], NEW: [1.0]}})
    assert desired(store) == []


def test_a_server_that_dies_is_told_with_the_end_of_its_log(store: Store) -> None:
    session = store.start_session(session_start())
    store.record_runs(
        session,
        [
            run_record(version=BASE),
            run_record(version=NEW, failure="died during insert: PANIC", repetition=2),
        ],
    )
    store.finish_session(session, SessionStatus.FINISHED)
    (issue,) = told(store)
    assert (issue.kind, issue.title) == (AlertKind.CRASH, "postgres REL_18_STABLE fails while it is measured")
    assert "    died during insert: PANIC" in issue.body
    record_steps(store, session_start("two"), {"insert": {BASE: [1.0], NEW: [1.0]}})
    (closed,) = desired(store)
    assert closed.state is IssueState.CLOSED


def test_what_the_machine_did_is_no_issue_of_a_branch(store: Store) -> None:
    """A server that was killed, a source that could not be fetched: the box is told, not the branch."""
    failed = {NEW: {"cause": "machine", "reason": "killed by SIGKILL"}}
    for uid, options in (("one", {}), ("two", {"not_built": {NEW: "no network"}})):
        start = replace(session_start(uid), options={"versions": [BASE, NEW], "failed": failed, **options})
        rates = {BASE: [1.0]} if options else {BASE: [1.0], NEW: [0.0]}
        record_steps(store, start, {"insert": rates})
        assert desired(store) == []


def test_what_is_wanted_twice_changes_nothing(regressed: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(regressed.read_bytes())
    with open_store(path) as store:
        for _ in range(2):
            with store.database.writing() as connection:
                alert_outbox.set_desired(connection, desired(store), night(100))
        with store.database.reading() as connection:
            (alert,) = alert_outbox.load(connection)
    assert alert.is_due
