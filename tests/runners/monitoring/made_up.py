"""Made-up facts in which every number is different, so that a view that leaves one out is noticed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from history.changes.level_shift import Direction
from history.series.task_states import TaskOutcome, TaskState, TrackedTask
from history.spool.journal import Waiting
from history.store.records import SessionStatus
from runners.monitoring.facts import PlannedLimits, ServiceFacts
from runners.monitoring.history_facts import HistoryFacts, OpenChanges
from runners.monitoring.local_facts import CurrentFacts, StoredFacts
from runners.nightly.health import BoxHealth, NewestResult, TaskHealth
from runners.nightly.heartbeat import Beat, State, Status
from runners.nightly.plan import Task
from runners.occupancy.pause import Pause

NOW = datetime(2026, 11, 26, 6, 0, tzinfo=UTC)
NIGHT = datetime(2026, 11, 26, 2, 17, tzinfo=UTC)


def facts() -> ServiceFacts:
    """A box whose last night left one of two tasks without a result, and which is paused since."""
    return ServiceFacts(
        box="db1",
        version="05126eda",
        schema=17,
        limits=PlannedLimits(
            budget_seconds=28800.0, builds_bytes=5e10, logs_days=90, backups=14, backups_beside=True
        ),
        current=_current(),
        stored=StoredFacts(
            {"builds": 19_800_000_000, "copies": 4_510_000_000, "logs": 120_000_000, "backups": 77_000_000},
            backups=13,
            newest_backup=NIGHT + timedelta(minutes=101),
            waiting=(Waiting("postgresql://db/history", 2, 34, NIGHT - timedelta(days=1)),),
            problem="",
        ),
        history=_history(),
        runners=("the runner in /opt/runner is old",),
        problems=("the disk is full",),
    )


def labelled(text: str) -> ServiceFacts:
    """The same facts, in which every name that a person can choose is `text`."""
    whole = facts()
    assert whole.history is not None
    health = whole.history.health
    task = health.tasks[0]
    odd = replace(task, tracked=text, configuration=text, task=task.task.model_copy(update={"profile": text}))
    history = replace(whole.history, health=replace(health, tasks=(odd,)))
    return replace(whole, box=text, version=text, history=history)


def _current() -> CurrentFacts:
    moment = NIGHT.isoformat()
    ended = (NIGHT + timedelta(minutes=95)).isoformat()
    beat_at = (NIGHT + timedelta(minutes=94)).isoformat()
    beat = Beat("db1", "nothing", moment, moment, beat_at, 5.0, None, 4711, 99, "boot", ended, "1 of 2")
    pause = Pause("alice", "a new lock manager", NOW - timedelta(hours=1), NOW + timedelta(hours=3))
    return CurrentFacts(NOW, Status(State.ENDED, beat), pause, 210_000_000_000, 500_000_000_000)


def _history() -> HistoryFacts:
    return HistoryFacts(
        read_at=NOW - timedelta(minutes=2),
        schema=16,
        health=BoxHealth("db1", "host", NIGHT, False, (_task("postgres@18.7"), _task("postgres@master"))),
        sessions={status: 400 + number for number, status in enumerate(SessionStatus)},
        rounds=970,
        disturbed=30,
        failed_runs=7,
        changes=tuple(
            OpenChanges(direction, is_alerted, 20 + 2 * number + is_alerted)
            for number, direction in enumerate(Direction)
            for is_alerted in (True, False)
        ),
        change_lines=("open: change for the worse, postgres@18",),
        alerts_waiting=3,
        alert_waits_since=NIGHT - timedelta(days=2),
        knows_box=True,
    )


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
