"""The last night of every branch on every box: whether its version was built, and what failed.

A night whose version has no session, because nothing could be compared, is known from its task's state alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from build.version import parse_version
from history.errors import stored_options
from history.series.night import not_built, release_branch
from history.series.results import failures_in
from history.series.task_states import TaskOutcome, TaskState, read_states
from history.store.records import ALL_STEPS, FailureCause, RunStatus
from history.store.schema import gaps, nights, runs, sessions
from history.timestamps import from_text


@dataclass(frozen=True)
class LastNight:
    """The result of a branch's last night on a box."""

    box: str
    branch: str
    version: str
    is_built: bool
    """False when the version was not built, or its session did not reach the first step."""

    not_measured: str
    """The reason why nothing was measured; empty when it was built, or when no reason is recorded."""

    failures: Mapping[str, str]
    """The latest reason of failure by step, sorted by the step's name."""

    at: datetime
    """When it began, or when its box last looked at the branch."""

    build_error: str = ""
    """Why it was not built; empty when it was, or when its session ended before the first step."""

    is_own: bool = True
    """Whether what went wrong lies with the version, as far as that is known, and not with the machine."""


def last_nights(connection: Connection) -> tuple[LastNight, ...]:
    """Return the last night of every branch on every box, in order of box and branch.

    Past commits, which stand at their own dates, are not nights.
    """
    found = {(night.box, night.branch): night for night in _measured(connection)}
    for key, night in _not_measured(connection).items():
        known = found.get(key)
        if known is None or known.at <= night.at:
            found[key] = night
    return tuple(found[key] for key in sorted(found))


def _not_measured(connection: Connection) -> dict[tuple[str, str], LastNight]:
    """Return the branches whose last night ended without a session, because of the version or its build."""
    found: dict[tuple[str, str], LastNight] = {}
    for state in read_states(connection).values():
        if state.outcome not in (TaskOutcome.UNUSABLE, TaskOutcome.FAILED):
            continue
        key = state.hostname, tracked_branch(state)
        if key in found and found[key].at > state.checked_at:
            continue
        is_built = state.outcome is TaskOutcome.FAILED
        failures = {"all steps": state.reason} if is_built else {}
        found[key] = LastNight(
            *key,
            state.version or state.task.tracked,
            is_built,
            "" if is_built else not_built(state.reason),
            failures,
            state.checked_at,
            "" if is_built else state.reason,
        )
    return found


def tracked_branch(state: TaskState) -> str:
    """Return the branch of a task's series: of a release its line."""
    version = parse_version(state.task.tracked)
    return release_branch(version) if version.is_release else state.task.tracked


def _measured(connection: Connection) -> Iterator[LastNight]:
    last = (
        select(nights.c.box, nights.c.branch, func.max(nights.c.started_at).label("started_at"))
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(nights.c.started_at == sessions.c.started_at)
        .group_by(nights.c.box, nights.c.branch)
        .subquery()
    )
    query = select(nights).join(
        last,
        (nights.c.box == last.c.box)
        & (nights.c.branch == last.c.branch)
        & (nights.c.started_at == last.c.started_at),
    )
    rows = connection.execute(query.order_by(nights.c.box, nights.c.branch)).all()
    yield from (_last_night(connection, row) for row in rows)


def _last_night(connection: Connection, row: Row[Any]) -> LastNight:
    is_built = row.build_id is not None
    query = select(sessions.c.options).where(sessions.c.id == row.session_id)
    options = stored_options(connection.execute(query).scalar_one())
    failure = failures_in(options).get(row.version)
    return LastNight(
        row.box,
        row.branch,
        row.version,
        is_built,
        not_measured="" if is_built else _reason(connection, row.session_id, row.branch),
        failures=_failures(connection, row.session_id, row.version) if is_built else {},
        at=from_text(row.started_at),
        build_error="" if is_built else options.get("not_built", {}).get(row.version, ""),
        is_own=failure is None or failure.cause is FailureCause.VERSION,
    )


def _reason(connection: Connection, session_id: int, branch: str) -> str:
    query = select(gaps.c.reason).where(
        gaps.c.session_id == session_id, gaps.c.branch == branch, gaps.c.step == ALL_STEPS
    )
    return connection.execute(query).scalar() or ""


def _failures(connection: Connection, session_id: int, version: str) -> dict[str, str]:
    query = (
        select(runs.c.step, runs.c.failure)
        .where(runs.c.session_id == session_id, runs.c.version == version, runs.c.status == RunStatus.FAILED)
        .order_by(runs.c.position.desc())
    )
    by_step = {step: failure or "no reason recorded" for step, failure in connection.execute(query)}
    return dict(sorted(by_step.items()))
