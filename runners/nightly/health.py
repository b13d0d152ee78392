"""Whether results arrive: for each task of a plan the newest result, and why nothing newer came.

Everything is read from the history, so that any machine that can read it judges all boxes of a plan, with or
without having one of its own. What a box knows besides, from its heartbeat, is given by the caller.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, func, select

from build.version import parse_version
from history.series.results import has_points
from history.series.series import in_environment
from history.series.task_states import WELL, TaskOutcome, TaskState, TrackedTask, read_states
from history.store.records import Environment
from history.store.schema import machines, nights, runs, sessions
from history.timestamps import from_text
from runners.measuring.failures.cause import MIN_FREE_BYTES
from runners.nightly.heartbeat import MISSED_HOURS
from runners.nightly.night_result import explained
from runners.nightly.plan import Plan, Task
from runners.nightly.work import environment_of, request_of, tracked_names

BUDGET_NIGHTS = 3
"""After how many nights in a row a budget that was too small needs somebody."""

BUSY_NIGHTS = 2
"""After how many nights in a row in which another measurement held the machine somebody is needed."""

PATIENCE = {
    TaskOutcome.DISTURBED: 1,
    TaskOutcome.UNREACHABLE: 1,
    TaskOutcome.UNAVAILABLE: 1,
    TaskOutcome.UNUSABLE: 1,
    TaskOutcome.FAILED: 1,
    TaskOutcome.STOPPED: 1,
    TaskOutcome.BUSY: BUSY_NIGHTS,
    TaskOutcome.BUDGET: BUDGET_NIGHTS,
}
"""After how many nights in a row without a result somebody is needed, by what became of the last one."""

_OF_NO_VERSION = (TaskOutcome.UNREACHABLE, TaskOutcome.BUSY, TaskOutcome.PAUSED)
"""The outcomes of nights that did not ask which version it was about."""

LONGEST_REASON = 200
"""The most characters of a reason that a line shows."""


@dataclass(frozen=True)
class NewestResult:
    """The newest result of a version or branch."""

    version: str
    measured_at: datetime


@dataclass(frozen=True)
class TaskHealth:
    """Whether results of a version or branch arrive, in a suite and profile of a box."""

    task: Task
    configuration: str
    """How the history names its profile with what the task changes of it."""

    tracked: str
    """`postgres@master` for a branch, `postgres@18.6` for a release, as the plan names it."""

    newest: NewestResult | None
    state: TaskState | None
    """What the last night found; None before the first one that knows the task."""

    is_overdue: bool
    """Whether a result is missing for a reason that needs somebody."""

    why: str
    """Why nothing newer arrived. It does not change from hour to hour."""

    @property
    def name(self) -> str:
        """The version or branch with its place: `postgres@master, write-heavy short`."""
        return f"{self.tracked}, {self.task.suite} {self.task.profile}"

    def line(self, now: datetime) -> str:
        """One line for people, with the age of the newest result."""
        state = self.state
        is_repeated = state is not None and state.outcome not in WELL and state.nights > 1
        why = f"{self.why}, {state.nights} nights in a row" if state and is_repeated else self.why
        if self.newest is None:
            return f"{self.name}: no result; {why}"
        found = self.newest
        commit = "" if found.version == self.tracked else f" ({_commit(found.version)})"
        age = _age(now - found.measured_at)
        return f"{self.name}: measured {_moment(found.measured_at)}{commit}, {age} ago; {why}"


@dataclass(frozen=True)
class BoxHealth:
    """Whether results of a box arrive."""

    box: str
    hostname: str | None
    """The host name under which the history has it; None while that is unknown."""

    last_sign: datetime | None
    """The last sign of its nights that the history has, or that the caller knew; None before the first."""

    is_silent: bool
    """Whether there was none for MISSED_HOURS."""

    tasks: tuple[TaskHealth, ...]

    @property
    def overdue(self) -> tuple[TaskHealth, ...]:
        """The tasks whose results are missing for a reason that needs somebody."""
        return tuple(task for task in self.tasks if task.is_overdue)

    @property
    def is_well(self) -> bool:
        """Whether nobody has to act."""
        return not self.is_silent and not self.overdue


def box_healths(
    plan: Plan,
    connection: Connection,
    now: datetime,
    boxes: Sequence[str] | None = None,
    heard: Mapping[str, datetime] | None = None,
) -> list[BoxHealth]:
    """Return the health of the boxes of a plan, or of some of them.

    `heard` has further signs of life by box, such as the heartbeat of the local one. A branch on which nobody
    commits is well: its tip has a result, and was fetched. So is a task that no night has known yet, as long
    as its box has nights.
    """
    chosen = list(plan.boxes) if boxes is None else list(boxes)
    states = read_states(connection, chosen)
    found = []
    for box in chosen:
        task_states = {task: state for task, state in states.items() if task.box == box}
        hostname = _hostname(plan, box, task_states)
        signs = [state.checked_at for state in task_states.values()]
        signs += [sign for sign in ((heard or {}).get(box), _last_run(connection, hostname)) if sign]
        last = max(signs, default=None)
        silent = last is None or now - last > timedelta(hours=MISSED_HOURS)
        tasks = _tasks(plan, box, connection, hostname, task_states, now)
        found.append(BoxHealth(box, hostname, last, silent, tuple(tasks)))
    return found


def full_disk(folder: Path) -> str:
    """Return what to say of a disk on which nothing can be measured; empty if there is room."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:  # there is no such folder before the first night
        return ""
    if free >= MIN_FREE_BYTES:
        return ""
    least = MIN_FREE_BYTES / 1e6
    return f"the disk is full: less than {least:.0f} MB are free in {folder}, and nothing can be measured"


def _hostname(plan: Plan, box: str, states: Mapping[TrackedTask, TaskState]) -> str | None:
    """Return the host name under which the history has a box; None when that is unknown."""
    latest = max(states.values(), key=lambda state: state.checked_at, default=None)
    if latest is not None:
        return latest.hostname
    named = plan.boxes[box].hostname
    return None if named == "*" else named or box


def _last_run(connection: Connection, hostname: str | None) -> datetime | None:
    """Return when the last round of a machine ended, or its last session; None without one."""
    if hostname is None:
        return None
    query = (
        select(sessions.c.id, sessions.c.started_at, sessions.c.ended_at)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == hostname)
        .order_by(sessions.c.started_at.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    last = connection.execute(select(func.max(runs.c.ended_at)).where(runs.c.session_id == row.id)).scalar()
    return max(from_text(text) for text in (row.started_at, row.ended_at, last) if text)


def _tasks(
    plan: Plan,
    box: str,
    connection: Connection,
    hostname: str | None,
    states: Mapping[TrackedTask, TaskState],
    now: datetime,
) -> Iterator[TaskHealth]:
    for task in plan.tasks_of(box):
        for engine in plan.engines_of(task):
            base = plan.engines[engine].base_version
            environment = environment_of(request_of(task, (base,)), hostname or "")
            suite, configuration = environment.suite, environment.configuration
            for name in tracked_names(plan, engine):
                state = states.get(TrackedTask(box, suite, configuration, name))
                newest = _newest(connection, environment, name, hostname is not None)
                yield TaskHealth(task, configuration, name, newest, state, *_judged(state, newest, now))


def _newest(
    connection: Connection, environment: Environment, tracked: str, knows_host: bool
) -> NewestResult | None:
    """Return the newest night with a value of a version or branch; past commits are none."""
    place = in_environment(nights, environment)
    if not knows_host:
        place = (nights.c.suite == environment.suite) & (nights.c.configuration == environment.configuration)
    query = (
        select(nights.c.version, sessions.c.started_at)
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(
            place,
            (nights.c.branch == tracked) | (nights.c.version == tracked),
            nights.c.started_at == sessions.c.started_at,
            has_points(nights),
        )
        .order_by(sessions.c.started_at.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else NewestResult(row.version, from_text(row.started_at))


def _judged(state: TaskState | None, newest: NewestResult | None, now: datetime) -> tuple[bool, str]:
    """Return whether somebody is needed for a task, and why nothing newer arrived."""
    late = timedelta(hours=MISSED_HOURS)
    if state is None:
        return False, "the next night looks for something new" if newest else "the next night is its first"
    if now - state.checked_at > late:
        return True, f"no night has looked at it since {_moment(state.checked_at)}"
    if state.outcome is TaskOutcome.PENDING:
        return now - state.since > late, f"to be measured since {_moment(state.since)}"
    if state.outcome is TaskOutcome.MEASURED:
        return False, "by the last night"
    if state.outcome is TaskOutcome.CURRENT:
        fetched = f"; fetched {_moment(state.fetched_at)}" if state.fetched_at else ""
        return False, f"nothing is new{fetched}"
    why = explained(state.outcome, state.reason, LONGEST_REASON)
    is_known = state.outcome not in _OF_NO_VERSION and state.version not in (None, state.task.tracked)
    tip = f"{_commit(state.version)}: " if state.version and is_known else ""
    patience = PATIENCE.get(state.outcome)  # a person who pauses a box knows
    is_overdue = patience is not None and state.nights >= patience
    what = "so" if state.outcome is TaskOutcome.DISTURBED else "no result"
    return is_overdue, f"{tip}{why}; {what} since {_moment(state.since)}"


def _commit(version: str) -> str:
    return parse_version(version).ref.removeprefix("git:")


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _age(passed: timedelta) -> str:
    hours = passed / timedelta(hours=1)
    if hours < 2:
        return f"{60 * hours:.0f} minutes"
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
