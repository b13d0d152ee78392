"""What the history knows of the service on a box: results, sessions, rounds, open changes, waiting alerts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, func, select

from history.changes import repository
from history.changes.level_shift import Direction
from history.series.task_states import read_states
from history.store import alert_outbox
from history.store.records import ChangeStatus, RunStatus, SessionStatus
from history.store.schema import dropped_rounds, machines, runs, sessions
from history.store.schema_status import stated_schema
from history.timestamps import to_text
from runners.alerting.issues.change_issues import needs_issue
from runners.nightly.health import BoxHealth, box_healths
from runners.nightly.plan import Plan
from runners.nightly.plan_rules.open_changes import open_change_lines

RECENT_DAYS = 7
"""The days whose rounds and failed runs count as recent."""


@dataclass(frozen=True)
class OpenChanges:
    """How many changes are open, of one direction."""

    direction: Direction
    is_alerted: bool
    """Whether they are for the worse and as large as the plan asks for, so that they get an issue."""

    count: int


@dataclass(frozen=True)
class HistoryFacts:
    """What a history knows of a box. Open changes and alerts are those of the whole history."""

    read_at: datetime
    schema: int
    health: BoxHealth
    sessions: Mapping[SessionStatus, int]
    """How many sessions of the box are in each status."""

    rounds: int
    """Rounds of steps in sessions of the last RECENT_DAYS, without those that were measured again."""

    disturbed: int
    """Rounds of the same sessions that were disturbed, and measured again."""

    failed_runs: int
    """Failed runs in the same sessions; a round has a run of every version."""

    changes: tuple[OpenChanges, ...]
    """All directions, in both sizes."""

    change_lines: tuple[str, ...]
    """A line for each open change, with its owners and mutes."""

    alerts_waiting: int
    """Alerts of which the tracker does not have the desired state."""

    alert_waits_since: datetime | None
    """Since when the oldest of those without an issue waits; None if each has one."""

    knows_box: bool
    """Whether it has a session of the box, or what became of a task that it has or had."""

    @property
    def disturbed_share(self) -> float | None:
        """The share of disturbed rounds among those that were measured; None without any."""
        whole = self.rounds + self.disturbed
        return self.disturbed / whole if whole else None


def read_history(
    plan: Plan, box: str, connection: Connection, now: datetime, heard: Mapping[str, datetime]
) -> HistoryFacts:
    """Read what a history knows of a box; `heard` has further signs of life, as `box_healths` takes them."""
    (health,) = box_healths(plan, connection, now, [box], heard)
    here = machines.c.hostname == (health.hostname or "")
    recent = here & (sessions.c.started_at >= to_text(now - timedelta(days=RECENT_DAYS)))
    waiting = [alert for alert in alert_outbox.load(connection) if alert.is_due]
    return HistoryFacts(
        now,
        stated_schema(connection) or 0,
        health,
        _sessions(connection, here),
        _rounds(connection, recent),
        _disturbed(connection, recent),
        _failed_runs(connection, recent),
        _changes(connection, plan.regression_percent / 100),
        tuple(open_change_lines(plan, connection, now)),
        len(waiting),
        min((alert.created_at for alert in waiting if alert.issue is None), default=None),
        bool(read_states(connection, [box])) or any(_sessions(connection, here).values()),
    )


_SESSIONS = sessions.join(machines, sessions.c.machine_id == machines.c.id)


def _sessions(connection: Connection, which: ColumnElement[bool]) -> dict[SessionStatus, int]:
    query = select(sessions.c.status, func.count().label("number")).select_from(_SESSIONS).where(which)
    found = {row.status: row.number for row in connection.execute(query.group_by(sessions.c.status))}
    return {status: found.get(status, 0) for status in SessionStatus}


def _rounds(connection: Connection, which: ColumnElement[bool]) -> int:
    rows = _SESSIONS.join(runs, runs.c.session_id == sessions.c.id)
    distinct = (
        select(runs.c.session_id, runs.c.step, runs.c.repetition).select_from(rows).where(which).distinct()
    )
    return connection.execute(select(func.count()).select_from(distinct.subquery())).scalar_one()


def _disturbed(connection: Connection, which: ColumnElement[bool]) -> int:
    rows = _SESSIONS.join(dropped_rounds, dropped_rounds.c.session_id == sessions.c.id)
    return connection.execute(select(func.count()).select_from(rows).where(which)).scalar_one()


def _failed_runs(connection: Connection, which: ColumnElement[bool]) -> int:
    rows = _SESSIONS.join(runs, runs.c.session_id == sessions.c.id)
    failed = which & (runs.c.status == RunStatus.FAILED)
    return connection.execute(select(func.count()).select_from(rows).where(failed)).scalar_one()


def _changes(connection: Connection, smallest: float) -> tuple[OpenChanges, ...]:
    found = repository.load(connection, statuses=[ChangeStatus.OPEN])
    counts = Counter((change.direction, needs_issue(change, smallest, frozenset())) for change in found)
    return tuple(
        OpenChanges(direction, is_alerted, counts[direction, is_alerted])
        for direction in Direction
        for is_alerted in (True, False)
    )
