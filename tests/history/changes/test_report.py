"""A report of a change: complete, and data alone."""

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from history.changes.report import ChangeReport, report_changes
from history.rendering.changes import changes_json, render_changes
from history.store import bisects
from history.store.bisects import EventKind
from history.store.records import ChangeStatus
from history.store.session_writes import insert_counted, insert_profile
from history.store.writer import Store
from runners.alerting.issues.change_texts import body, title
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY
from tests.history.commits import Commits
from tests.history.handmade import MACHINE, NIGHT
from tests.history.profiled import profile
from tests.history.watched import QUIET, Nights, dated, every_change, night


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    with dated(tmp_path / "history.db", Nights) as nights:
        yield nights


@pytest.fixture
def commits(tmp_path: Path) -> Iterator[Commits]:
    with dated(tmp_path / "commits.db", Commits) as commits:
        yield commits


def the_report(store: Store) -> ChangeReport:
    (change,) = every_change(store)
    with store.database.reading() as connection:
        (report,) = report_changes(connection, [change])
    return report


@pytest.mark.deep("records and judges months of nights")
def test_levels_nights_since_and_what_changed_besides(nights: Nights) -> None:
    nights.more(QUIET)
    nights.machine = replace(MACHINE, fingerprint="new", kernel="6.8.0-60")
    nights.more(8, 0.93, delete=0.96)
    nights.judge()
    report = the_report(nights.store)
    assert (report.main_series.key.step, report.main_series.key.metric) == ("insert", "qps")
    assert report.main_series.ratio == pytest.approx(0.93, abs=0.01)
    assert report.base == "postgres@17"
    assert report.commits == (None, None)
    assert [point.night.started_at for point in report.later] == [night(QUIET + n) for n in range(1, 8)]
    assert report.change.status is ChangeStatus.EXPLAINED
    (environment,) = report.environment
    assert (environment.box, environment.night) == ("db1", report.change.first_after)
    assert environment.text == report.change.reason
    assert "kernel" in environment.text


def confirmed_and_profiled(commits: Commits) -> ChangeReport:
    """Of a regression that was confirmed with profiles, and for which a bisect has a verdict."""
    commits.more(3)
    commits.more(1, {"insert": 0.93})
    session = commits.confirm({"insert": 0.93})
    (change,) = commits.judge().new
    with commits.store.database.writing() as connection:
        for place, side in enumerate((change.last_before, change.first_after)):
            query = f"SELECT min(id) FROM runs WHERE session_id = {session} AND version = '{side.version}'"
            run = connection.exec_driver_sql(query).scalar_one()
            stacks = {"client backend;exec;heap_insert": 1000 + 800 * place, "client backend;exec": 500}
            insert_profile(connection, run, replace(profile({}), stacks=stacks))
        for uid in ("b1", "b2"):
            bisect = bisects.begin(connection, uid, MACHINE, {}, {}, change.fingerprint, NIGHT)
            if uid == "b1":
                bisects.append(connection, bisect, EventKind.VERDICT, {"verdict": {}}, NIGHT)
    return the_report(commits.store)


def test_confirmation_functions_and_bisect(commits: Commits) -> None:
    report = confirmed_and_profiled(commits)
    assert report.confirmation is not None
    assert (report.confirmation.uid, report.confirmation.key.metric) == ("night-4-new", "qps")
    assert report.return_confirmation is None
    assert [function.name for function in report.gained] == ["heap_insert"]
    assert report.bisect is not None
    assert report.bisect.uid == "b1", "the latest has no verdict"


@pytest.mark.deep("records and judges months of nights")
def test_a_change_of_instructions_names_the_functions_that_execute_more(nights: Nights) -> None:
    nights.more(QUIET)
    nights.more(8, 0.93)
    nights.judge()
    change = the_report(nights.store).change
    with nights.store.database.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE series SET metric = 'instructions_per_op' WHERE step = 'insert' AND metric = 'qps'"
        )
        connection.exec_driver_sql(
            "DELETE FROM change_series WHERE series_id NOT IN "
            "(SELECT id FROM series WHERE metric = 'instructions_per_op')"
        )
        for place, side in enumerate((change.last_before, change.first_after)):
            run = connection.exec_driver_sql(
                f"SELECT min(id) FROM runs WHERE session_id = {side.session_id} AND step = 'insert' "
                f"AND version = '{side.version}'"
            ).scalar_one()
            own = 500 + place
            stacks = {"client backend;exec;heap_insert": 1000 + 800 * place, "client backend;exec": own}
            counted = replace(profile({}), event=COUNTED_EVENT, frequency=COUNTED_FREQUENCY, stacks=stacks)
            insert_counted(connection, run, replace(counted, calls={"heap_insert": 1, "exec": 1}))
    report = the_report(nights.store)
    assert [function.name for function in report.gained] == ["heap_insert"], "one of 801 may be noise"
    told = body([replace(report, bisect=None)])
    assert re.search(r"Instructions per query grew most in heap_insert \+[\d,]+ \(100 %\)", told)


def test_it_is_read_without_a_database(commits: Commits, tmp_path: Path) -> None:
    report = replace(confirmed_and_profiled(commits), bisect=None)
    stored = pickle.dumps(report)
    (tmp_path / "commits.db").unlink()
    copy = pickle.loads(stored)
    assert copy == report
    assert "insert qps" in "\n".join(render_changes([copy]))
    assert changes_json([copy])[0]["fingerprint"] == report.change.fingerprint
    assert title([copy]) == "postgres master: insert 6.9 % slower (write-heavy)"
    assert "CPU time per query grew most in heap_insert +" in body([copy])
