"""What the last night of each box found of every version or branch that its plan tracks there.

A night writes one row for each. They are the state of the service, from which any machine that can read the
history tells whether results arrive (runners/nightly/health.py).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, and_, insert, select, update

from history.store.schema import task_states
from history.timestamps import from_text, to_text

LONGEST_REASON = 4_000
"""The most characters of a reason that are kept."""


class TaskOutcome(StrEnum):
    """What became of a version in a night."""

    PENDING = "pending"
    """It is to be measured by the night that runs, or by one that died."""

    MEASURED = "measured"
    DISTURBED = "disturbed"
    """It was measured, and every round was disturbed."""

    CURRENT = "current"
    """It has a result of an earlier night: nothing is new."""

    BUDGET = "budget"
    """The time budget ended before it."""

    UNREACHABLE = "unreachable"
    """The git source could not be fetched, so that nobody knows whether the branch has moved."""

    UNAVAILABLE = "unavailable"
    """It could not be fetched or built, for a reason outside of its source."""

    UNUSABLE = "unusable"
    """It does not compile, or cannot run the suite."""

    FAILED = "failed"
    """Its server failed in every step, while that of the base did not."""

    STOPPED = "stopped"
    """Something outside of it ended its measurement, such as a full disk."""

    BUSY = "busy"
    """Another measurement held the machine."""

    PAUSED = "paused"
    """A person paused the box."""


WELL = frozenset({TaskOutcome.MEASURED, TaskOutcome.CURRENT})
"""The outcomes with a result that nothing casts doubt on."""


@dataclass(frozen=True)
class TrackedTask:
    """A version or branch that the plan tracks, in a suite and configuration of a box."""

    box: str
    """The name of the box in the plan."""

    suite: str
    configuration: str
    tracked: str
    """`postgres@master` for a branch, `postgres@18.6` for a release, as the plan names it."""


@dataclass(frozen=True)
class TaskCheck:
    """What a night found of a task."""

    task: TrackedTask
    hostname: str
    outcome: TaskOutcome
    reason: str = ""
    """Why there is no result; empty when there is one."""

    version: str | None = None
    """The version that was to be measured: `postgres@git:5bf748b86b12`. None while it is unknown."""

    fetched_at: datetime | None = None
    """When the git source was fetched, if it was."""


@dataclass(frozen=True)
class TaskState:
    """A task as the last night of its box left it."""

    task: TrackedTask
    hostname: str
    outcome: TaskOutcome
    reason: str
    version: str | None
    since: datetime
    """Since when it is well, or since when no night has left it well."""

    checked_at: datetime
    """When a night of the box last looked at it."""

    fetched_at: datetime | None
    """When the branch was last fetched; None for a release."""

    @property
    def nights(self) -> int:
        """The nights in a row since `since`, by the days in between."""
        return 1 + round((self.checked_at - self.since) / timedelta(days=1))


def read_states(connection: Connection, boxes: Collection[str] | None = None) -> dict[TrackedTask, TaskState]:
    """Return the states of all tasks, or of those of some boxes."""
    query = select(task_states)
    if boxes is not None:
        query = query.where(task_states.c.box.in_(list(boxes)))
    found = {}
    for row in connection.execute(query):
        task = TrackedTask(row.box, row.suite, row.configuration, row.tracked)
        found[task] = TaskState(
            task,
            row.hostname,
            TaskOutcome(row.outcome),
            row.reason,
            row.version,
            from_text(row.since),
            from_text(row.checked_at),
            from_text(row.fetched_at) if row.fetched_at else None,
        )
    return found


def record_checks(connection: Connection, checks: Iterable[TaskCheck], at: datetime) -> None:
    """Write what a night found, within a transaction that writes.

    A task that was not well before keeps its outcome while it is PENDING: the night that runs may die. What a
    check does not know of version and fetch stays as it was.
    """
    checks = list(checks)
    known = read_states(connection, {check.task.box for check in checks})
    for check in checks:
        before = known.get(check.task)
        values = _row(check, before, at)
        columns = task_states.c
        key = {"box": check.task.box, "suite": check.task.suite, "tracked": check.task.tracked}
        key["configuration"] = check.task.configuration
        if before is None:
            connection.execute(insert(task_states).values(**key, **values))
        else:
            here = and_(*(columns[name] == value for name, value in key.items()))
            connection.execute(update(task_states).where(here).values(**values))


def record_skipped(connection: Connection, box: str, outcome: TaskOutcome, reason: str, at: datetime) -> None:
    """Write that a box could not have its night, into the state of every task that it had before."""
    states = read_states(connection, [box]).values()
    record_checks(
        connection, [TaskCheck(state.task, state.hostname, outcome, reason) for state in states], at
    )


def _row(check: TaskCheck, before: TaskState | None, at: datetime) -> dict[str, str | None]:
    outcome, reason, since = check.outcome, check.reason, at
    if before is not None and (outcome in WELL) == (before.outcome in WELL):
        since = before.since
        if outcome is TaskOutcome.PENDING:
            outcome, reason = before.outcome, before.reason
    fetched = check.fetched_at or (before.fetched_at if before else None)
    return {
        "hostname": check.hostname,
        "version": check.version or (before.version if before else None),
        "outcome": outcome,
        "reason": reason[:LONGEST_REASON],
        "since": to_text(since),
        "checked_at": to_text(at),
        "fetched_at": to_text(fetched) if fetched else None,
    }
