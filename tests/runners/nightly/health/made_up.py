"""A made-up status in which every number is different, so that a view that leaves one out is noticed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from history.series.task_states import TaskOutcome, TaskState, TrackedTask
from history.spool.journal import Waiting
from runners.nightly.health import BoxHealth, NewestResult, TaskHealth
from runners.nightly.heartbeat import Beat, State, Status
from runners.nightly.plan import Task
from runners.nightly.status import ServiceStatus
from runners.occupancy.pause import Pause

NOW = datetime(2026, 11, 26, 6, 0, tzinfo=UTC)
NIGHT = datetime(2026, 11, 26, 2, 17, tzinfo=UTC)


def made_up() -> ServiceStatus:
    """A box whose last night left one of two tasks without a result, and which is paused since."""
    moment = NIGHT.isoformat()
    ended = (NIGHT + timedelta(minutes=95)).isoformat()
    beat_at = (NIGHT + timedelta(minutes=94)).isoformat()
    beat = Beat("db1", "nothing", moment, moment, beat_at, 5.0, None, 4711, 99, "boot", ended, "1 of 2")
    return ServiceStatus(
        box="db1",
        at=NOW,
        found=Status(State.ENDED, beat),
        pause=Pause("alice", "a new lock manager", NOW - timedelta(hours=1), NOW + timedelta(hours=3)),
        health=BoxHealth("db1", "host", NIGHT, False, (_task("postgres@18.7"), _task("postgres@master"))),
        changes=("open: change for the worse, postgres@18",),
        alerts_waiting=3,
        waiting=(Waiting("postgresql://db/history", 2, 34, NIGHT - timedelta(days=1)),),
        free_bytes=210_000_000_000,
        newest_backup=NIGHT + timedelta(minutes=101),
        backups_beside=True,
        problems=("the disk is full",),
    )


def labelled(text: str) -> ServiceStatus:
    """The same, in which every name that a person can choose is `text`."""
    whole = made_up()
    assert whole.health is not None
    task = whole.health.tasks[0]
    odd = replace(task, tracked=text, configuration=text, task=task.task.model_copy(update={"profile": text}))
    return replace(whole, box=text, health=replace(whole.health, tasks=(odd,)))


def _task(tracked: str) -> TaskHealth:
    is_branch = tracked.endswith("master")
    outcome = TaskOutcome.CURRENT if is_branch else TaskOutcome.UNAVAILABLE
    place = TrackedTask("db1", "write-heavy", "short relaxed 10s", tracked)
    why = "" if is_branch else "no network"
    state = TaskState(place, "host", outcome, why, tracked, NIGHT, NIGHT, None)
    newest = NewestResult("postgres@git:5bf748b86b12", NIGHT - timedelta(days=9)) if is_branch else None
    task = Task(suite="write-heavy", profile="short")
    return TaskHealth(
        task, place.configuration, tracked, newest, state, not is_branch, why or "nothing is new"
    )
