"""The last night of every branch on every box: whether its version was built, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from history.store.records import ALL_STEPS, RunStatus
from history.store.schema import gaps, nights, runs, sessions


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


def last_nights(connection: Connection) -> tuple[LastNight, ...]:
    """Return the last night of every branch on every box, in order of box and branch.

    Past commits, which stand at their own dates, are not nights.
    """
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
    return tuple(_last_night(connection, row) for row in rows)


def _last_night(connection: Connection, row: Row[Any]) -> LastNight:
    is_built = row.build_id is not None
    return LastNight(
        row.box,
        row.branch,
        row.version,
        is_built,
        not_measured="" if is_built else _reason(connection, row.session_id, row.branch),
        failures=_failures(connection, row.session_id, row.version) if is_built else {},
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
