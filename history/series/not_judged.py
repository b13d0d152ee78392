"""Branches that are not judged: nothing says what their base is, or their base is missing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from history.errors import stored_options
from history.series.results import has_points
from history.series.series import (
    Night,
    base_branches,
    bases_beside,
    branches_at,
    gap_reasons,
    in_environment,
    list_environments,
    nights_of,
)
from history.store.records import ALL_STEPS, IMPORTED, Environment
from history.store.schema import measurements, nights, runs, sessions
from history.timestamps import from_text
from suites.metrics import METRICS, Role

ENDED = timedelta(days=7)
"""How long others must have been measured without a branch until that branch has ended."""


@dataclass(frozen=True)
class NotJudged:
    """Branches of an environment of which no night, or none of the latest nights, is judged."""

    environment: Environment
    branches: tuple[str, ...]
    base: str | None
    """Their base; None when none of their nights has one. A base that is alone is its own."""

    nights: tuple[Night, ...] = ()
    """The latest nights, in order, in which the branch has values and its base has none; empty when no night
    is judged."""

    reason: str = ""
    """Why the base has no value in the last of them."""

    has_ended: bool = False
    """Whether others have been measured without the branch for longer than ENDED."""

    def __str__(self) -> str:
        """Return why nothing is judged, and what to do."""
        where, names = self.environment, ", ".join(self.branches)
        place = f"{where.box}, {where.suite}, {where.configuration}"
        if self.nights:
            since = f"{self.nights[0].started_at:%Y-%m-%d}"
            return (
                f"{place}: {names} is not judged since {since}: {self.base}, its base, has no value "
                f"in its last {_counted(len(self.nights))} ({self.reason}); measure both in one session again"
            )
        if self.base is not None:
            return (
                f"{place}: not judged: every night has the base {self.base} alone, and a branch is judged "
                "against the base of the same nights; change-points searches values as measured"
            )
        if len(self.branches) < 2:
            return (
                f"{place}: not judged: {names} has no base beside it; change-points searches it as measured"
            )
        return (
            f"{place}: not judged: nothing says which branch is the base; import the table again with "
            f"--base BRANCH, one of {names}"
        )


def _counted(count: int) -> str:
    return f"{count} nights" if count > 1 else "night"


def not_judged(connection: Connection) -> tuple[NotJudged, ...]:
    """Return the branches that are not judged, in all environments."""
    return tuple(
        found
        for environment in list_environments(connection)
        for found in _in_environment(connection, environment)
    )


def latencies_not_judged(
    connection: Connection, environments: Iterable[Environment] | None = None
) -> Iterator[str]:
    """Yield which latencies the latest imported sessions have that are never judged, for each environment."""
    for environment in list_environments(connection) if environments is None else environments:
        latest = connection.execute(
            select(sessions.c.id, sessions.c.options)
            .join(nights, nights.c.session_id == sessions.c.id)
            .where(in_environment(nights, environment))
            .order_by(nights.c.started_at.desc())
        ).first()
        if latest is None or not stored_options(latest.options).get(IMPORTED):
            continue
        query = (
            select(measurements.c.metric)
            .join(runs, runs.c.id == measurements.c.run_id)
            .where(runs.c.session_id == latest.id)
            .distinct()
        )
        recorded = set(connection.execute(query).scalars())
        metrics = [name for name, row in METRICS.items() if name in recorded and row.role is Role.LATENCY]
        names = ", ".join(name for name in metrics if not METRICS[name].judged)
        if names:
            place = f"{environment.box}, {environment.suite}, {environment.configuration}"
            yield f"{place}: latencies that are never judged: {names}"


def _in_environment(connection: Connection, environment: Environment) -> Iterator[NotJudged]:
    bases, were_bases = bases_beside(connection, environment), base_branches(connection, environment)
    branches = branches_at(connection, environment)
    without = tuple(branch for branch in branches if branch not in bases and branch not in were_bases)
    if without:
        yield NotJudged(environment, without, None)
    if not bases and were_bases:
        yield NotJudged(environment, were_bases, were_bases[0])
    for branch, base in bases.items():
        lost = _nights_without(connection, environment, branch, base)
        if lost:
            yield NotJudged(
                environment,
                (branch,),
                base,
                lost,
                _reason(connection, lost[-1], base),
                has_ended=_latest(connection, environment) - lost[-1].started_at > ENDED,
            )


def _nights_without(
    connection: Connection, environment: Environment, branch: str, base: str
) -> tuple[Night, ...]:
    """Return the nights of a branch beside its base since the last one in which both have values."""
    query = select(nights.c.session_id).where(
        in_environment(nights, environment), nights.c.branch == branch, nights.c.is_base == 1
    )
    as_base = set(connection.execute(query).scalars())
    found: list[Night] = []
    for night in reversed(nights_of(connection, environment, branch)):
        if night.session_id in as_base or not _has_values(connection, night.session_id, branch):
            continue
        if _has_values(connection, night.session_id, base):
            break
        found.append(night)
    return tuple(reversed(found))


def _has_values(connection: Connection, session_id: int, branch: str) -> bool:
    query = select(nights.c.session_id).where(
        nights.c.session_id == session_id, nights.c.branch == branch, has_points(nights)
    )
    return connection.execute(query).first() is not None


def _reason(connection: Connection, night: Night, base: str) -> str:
    reasons = gap_reasons(connection, [base], [night.session_id], [ALL_STEPS])
    return reasons.get((night.session_id, base, ALL_STEPS), "not measured in these nights")


def _latest(connection: Connection, environment: Environment) -> datetime:
    """Return the start of the latest night of an environment."""
    query = select(func.max(nights.c.started_at)).where(in_environment(nights, environment))
    return from_text(connection.execute(query).scalar_one())
