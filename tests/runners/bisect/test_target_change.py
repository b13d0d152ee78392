"""The change that a bisect looks for, and what its issue says of the result."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from history.changes import repository
from history.changes.repository import Change
from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox, bisects
from history.store.alert_outbox import IssueState
from history.store.bisects import EventKind
from history.store.writer import Store
from runners.alerting.outbox import desired_issues, update_issue
from runners.bisect.domain.question import BisectPoint, CandidateRange, Question, QuestionError
from runners.bisect.run.event_log import Log, observations, read_log
from runners.bisect.run.target_change import target_change
from tests.history.handmade import MACHINE, NIGHT
from tests.runners.bisect.conftest import Line
from tests.runners.bisect.stand import Stand, a_question

SITE = "https://perf.example.org/t"


@pytest.fixture
def store(regressed: Path, tmp_path: Path) -> Store:
    path = tmp_path / "regressed.db"
    path.write_bytes(regressed.read_bytes())
    return open_store(path)


def the_change(store: Store) -> Change:
    with store.database.reading() as connection:
        (change,) = repository.load(connection)
    return change


def of_change(change: Change) -> tuple[Question, CandidateRange]:
    """A question and points that fit a change."""
    member = change.members[0]
    ends = (change.last_before.version, change.first_after.version)
    question = replace(a_question("x", "y"), suite=change.suite, step=member.key.step)
    return question, CandidateRange(tuple(map(BisectPoint, ends)))


@pytest.mark.deep("searches that are simulated many times")
def test_the_open_change_of_the_range_is_found(store: Store) -> None:
    change = the_change(store)
    question, span = of_change(change)
    assert target_change(store, None, question, span) == change.fingerprint
    assert target_change(store, None, replace(question, step="another"), span) is None
    assert target_change(store, None, replace(question, suite="pgbench"), span) is None
    other = CandidateRange((BisectPoint("postgres@1.0"), span.points[1]))
    assert target_change(store, None, question, other) is None


def test_a_change_can_be_named(store: Store) -> None:
    change = the_change(store)
    question = a_question("x", "y")
    assert target_change(store, change.fingerprint, question, CandidateRange(())) == change.fingerprint
    with pytest.raises(QuestionError, match="there is no change c0ffee"):
        target_change(store, "c0ffee", question, CandidateRange(()))


def answered(store: Store, change: Change, found: Log) -> Log:
    """The same bisect, begun for a change, with its verdict."""
    with store.database.writing() as connection:
        old = found.bisect
        new = bisects.begin(connection, "b1", MACHINE, old.question, old.span, change.fingerprint, NIGHT)
        assert old.verdict is not None
        kept = {**old.verdict, "observations": observations(found.all_rounds())}
        bisects.append(connection, new, EventKind.VERDICT, kept, NIGHT)
        return read_log(store, bisects.load(connection, "b1"))


def test_the_issue_gets_the_result_once(store: Store, stand: Callable[..., Stand], line: Line) -> None:
    change = the_change(store)
    log = answered(store, change, stand((11, 0.7)).bisect(a_question(line.good, line.code[-1])))
    assert not update_issue(store.database, log.bisect), "the change has no issue yet"
    with store.database.writing() as connection:
        (issue,) = desired_issues(connection, 0.02, (), SITE)
        (link,) = (text for text in issue.body.splitlines() if SITE in text)
        alert_outbox.set_desired(
            connection, [replace(issue, body=Markdown(f"as it was before\n{link}\n"))], NIGHT
        )
        (alert,) = alert_outbox.load(connection)
        alert_outbox.mark_sent(connection, alert, 7)
    assert update_issue(store.database, log.bisect)
    with store.database.writing() as connection:
        (alert,) = alert_outbox.load(connection)
        assert alert.desired.state is IssueState.OPEN
        assert "**Bisected** (b1): " in alert.desired.body
        assert line.code[10] in alert.desired.body
        assert "Change 11" in alert.desired.body
        assert link in alert.desired.body, "a bisect by hand knows no plan, and the issue keeps its link"
        alert_outbox.mark_sent(connection, alert, 7)
    assert not update_issue(store.database, log.bisect), "the tracker has it"
    # The next night wants the same.
    with store.database.reading() as connection:
        (again,) = desired_issues(connection, 0.02, alert_outbox.load(connection), SITE)
        assert again.body == alert.desired.body


def test_without_a_verdict_nothing_is_told(store: Store, stand: Callable[..., Stand], line: Line) -> None:
    log = stand((11, 0.7)).bisect(a_question(line.good, line.code[-1]), budget_seconds=120.0)
    assert not update_issue(store.database, log.bisect)
