"""Whether results arrive: which silence is quiet and which needs somebody, from the history alone."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from history.open import open_store
from history.series.task_states import TaskCheck, TaskOutcome, TrackedTask, read_states, record_checks
from runners.nightly.health import BUDGET_NIGHTS, BoxHealth, TaskHealth, box_healths
from runners.nightly.heartbeat import MISSED_HOURS
from tests.history.handmade import MACHINE, NIGHT
from tests.runners.nightly.pretended import BRANCH, Lab

SOON = timedelta(hours=6)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


def of_box(lab: Lab, after: timedelta = SOON, heard: dict[str, datetime] | None = None) -> BoxHealth:
    """The health of the only box, some time after its last night."""
    with open_store(lab.home.history) as store, store.database.reading() as connection:
        (found,) = box_healths(lab.plan(), connection, NIGHT + timedelta(days=lab.day) + after, heard=heard)
    return found


def of_task(lab: Lab, after: timedelta = SOON) -> TaskHealth:
    (task,) = of_box(lab, after).tasks
    return task


def line(lab: Lab) -> str:
    return of_task(lab).line(NIGHT + timedelta(days=lab.day) + SOON)


@pytest.mark.deep("months of simulated nights")
def test_a_branch_on_which_nobody_commits_for_weeks_is_well(lab: Lab) -> None:
    tip = lab.commit()
    lab.night()
    assert line(lab).endswith(", 6 hours ago; by the last night")
    for _ in range(30):
        lab.night()
    assert of_box(lab).is_well
    commit = tip.rpartition(":")[2]
    assert line(lab) == (
        f"{BRANCH}, write-heavy smoke: measured 2026-03-02 02:00 UTC ({commit}), 30 days ago;"
        " nothing is new; fetched 2026-04-01 02:00 UTC"
    )


@pytest.mark.deep("months of simulated nights")
def test_a_source_that_does_not_answer_is_overdue_with_the_first_night(lab: Lab) -> None:
    lab.commit()
    lab.night()
    lab.source.rename(lab.source.with_name("elsewhere"))
    lab.night()
    task = of_task(lab)
    assert task.is_overdue
    assert task.newest is not None
    assert task.why.startswith("the branch could not be fetched: git ls-remote failed")
    assert task.why.endswith("; no result since 2026-03-03 02:00 UTC")
    assert task.state is not None
    assert task.state.fetched_at == NIGHT + timedelta(days=1)
    lab.night()
    assert line(lab).endswith("; no result since 2026-03-03 02:00 UTC, 2 nights in a row")
    lab.source.with_name("elsewhere").rename(lab.source)
    lab.night()
    assert of_box(lab).is_well


@pytest.mark.parametrize("how", ["unbuildable", "unavailable"])
def test_a_version_without_a_build_is_overdue(lab: Lab, how: str) -> None:
    getattr(lab, how).add(lab.commit())
    lab.night()
    assert of_task(lab).is_overdue
    assert "no result; " in line(lab)


def test_a_full_disk_is_overdue(lab: Lab) -> None:
    def full(count: int) -> None:
        raise OSError(28, "No space left on device")

    lab.commit()
    lab.before_round = full
    lab.night()
    task = of_task(lab)
    assert task.is_overdue
    assert "its measurement was cut short: [Errno 28] No space left on device" in task.why


@pytest.mark.deep("months of simulated nights")
def test_a_budget_that_is_too_small_is_overdue_after_some_nights(lab: Lab) -> None:
    lab.minutes_a_round = 200.0
    task = {"suite": "write-heavy", "profile": "smoke", "steps": ["insert"], "rounds": 1, "perf": False}
    tasks = [task, task | {"seconds": 9.0}]
    found = []
    for _ in range(BUDGET_NIGHTS):
        lab.commit()
        assert not lab.night(tasks=tasks, confirm=False).has_failed
        with open_store(lab.home.history) as store, store.database.reading() as connection:
            now = NIGHT + timedelta(days=lab.day) + SOON
            (box,) = box_healths(lab.plan(tasks=tasks), connection, now)
        found.append([task_health.is_overdue for task_health in box.tasks])
    assert found == [[False, False], [False, False], [False, True]]
    assert "time budget exhausted; no result since 2026-03-02" in box.tasks[1].why


def test_a_night_that_dies_before_its_first_round_is_overdue_after_a_day(lab: Lab) -> None:
    lab.commit()
    lab.day += 1
    lab.killed(after=0)
    task = of_task(lab)
    assert (task.is_overdue, task.why) == (False, "to be measured since 2026-03-02 02:00 UTC")
    lab.day += 1
    lab.killed(after=0)
    assert of_task(lab).is_overdue


def test_a_box_without_a_sign_is_silent_even_if_all_was_well(lab: Lab) -> None:
    with open_store(lab.home.history) as store, store.database.writing() as connection:
        place = TrackedTask("db1", "write-heavy", "smoke relaxed 3s", BRANCH)
        record_checks(connection, [TaskCheck(place, "host", TaskOutcome.CURRENT)], NIGHT)
    early, late = (timedelta(hours=MISSED_HOURS + change) for change in (-1, 1))
    assert of_box(lab, early).is_well
    assert of_box(lab, late).is_silent
    assert of_task(lab, late).is_overdue
    assert not of_box(lab, late, {"db1": NIGHT + late}).is_silent


def test_a_box_that_never_had_a_night_is_silent(lab: Lab) -> None:
    found = of_box(lab)
    assert (found.last_sign, found.is_silent, found.is_well) == (None, True, False)
    assert line(lab) == f"{BRANCH}, write-heavy smoke: no result; the next night is its first"


def test_a_history_of_an_older_tidemark_is_well_until_its_next_night(lab: Lab) -> None:
    lab.commit()
    lab.night()
    with open_store(lab.home.history) as store, store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM task_states")
    with open_store(lab.home.history) as store, store.database.reading() as connection:
        plan = lab.plan(box={"hostname": MACHINE.hostname})
        (found,) = box_healths(plan, connection, NIGHT + timedelta(days=lab.day) + SOON)
    assert found.is_well
    assert found.tasks[0].newest is not None


def test_a_night_that_begins_hides_no_failure_of_the_last_one(lab: Lab) -> None:
    task = TrackedTask("db1", "write-heavy", "smoke", BRANCH)

    def check(outcome: TaskOutcome, day: int, reason: str = "") -> tuple[TaskOutcome, str, datetime]:
        with open_store(lab.home.history) as store, store.database.writing() as connection:
            record_checks(connection, [TaskCheck(task, "host", outcome, reason)], NIGHT + timedelta(days=day))
            state = read_states(connection, ["db1"])[task]
        return state.outcome, state.reason, state.since

    first, second = NIGHT, NIGHT + timedelta(days=2)
    assert check(TaskOutcome.PENDING, 0) == (TaskOutcome.PENDING, "", first)
    assert check(TaskOutcome.STOPPED, 0, "full") == (TaskOutcome.STOPPED, "full", first)
    assert check(TaskOutcome.PENDING, 1) == (TaskOutcome.STOPPED, "full", first)
    assert check(TaskOutcome.BUDGET, 1) == (TaskOutcome.BUDGET, "", first)
    assert check(TaskOutcome.MEASURED, 2) == (TaskOutcome.MEASURED, "", second)
    assert check(TaskOutcome.CURRENT, 3) == (TaskOutcome.CURRENT, "", second)
