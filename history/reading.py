"""Queries that answer what the history holds."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select, union

from build.version import Version
from history.records import DroppedRound, Machine, Run, RunStatus, Session, SessionStatus, Sighting
from history.schema import builds, dropped_rounds, machines, measurements, nights, profiles, runs, sessions
from history.times import from_text

RECENT_SESSIONS = 100
"""That a person is reminded of when there is nothing to compare."""


def session_of(connection: Connection, session_id: int) -> Session:
    """The session with this id, which there must be."""
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    return _session(row, machine_of(connection, row["machine_id"]))


def latest_machine(connection: Connection, hostname: str) -> Machine | None:
    """The machine of the session started last on a host of this name, whatever became of the session."""
    query = (
        select(sessions.c.machine_id)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == hostname)
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
        .limit(1)
    )
    found = connection.execute(query).scalar()
    return None if found is None else machine_of(connection, found)


def runs_of(
    connection: Connection, session_id: int, versions: Sequence[Version], metrics: Collection[str] = ()
) -> tuple[Run, ...]:
    """The runs of a session in the order they were carried out; of the given versions, else of all.

    With the values of the given metrics, else of all.
    """
    query = (
        select(runs, builds.c.key.label("build_key"))
        .join_from(runs, builds, runs.c.build_id == builds.c.id)
        .where(runs.c.session_id == session_id)
        .order_by(runs.c.position, runs.c.id)
    )
    if versions:
        query = query.where(runs.c.version.in_([str(version) for version in versions]))
    rows = connection.execute(query).mappings().all()
    values = _values(connection, session_id, metrics)
    return tuple(_run(row, values[row["id"]]) for row in rows)


def dropped_of(connection: Connection, session_id: int) -> tuple[DroppedRound, ...]:
    """The rounds of a session that were measured again, in the order they were dropped."""
    query = (
        select(dropped_rounds).where(dropped_rounds.c.session_id == session_id).order_by(dropped_rounds.c.id)
    )
    return tuple(
        DroppedRound(row["step"], row["repetition"], row["reason"], json.loads(row["measured"]))
        for row in connection.execute(query).mappings()
    )


def profiled_steps(connection: Connection, session_id: int) -> set[str]:
    """The steps of a session of which there are CPU profiles."""
    query = (
        select(runs.c.step)
        .join_from(runs, profiles, profiles.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id)
        .distinct()
    )
    return set(connection.execute(query).scalars())


def sightings(connection: Connection) -> tuple[Sighting, ...]:
    """Where each version of the RECENT_SESSIONS was last run, per suite and profile; the latest first."""
    recent = select(sessions.c.id).order_by(sessions.c.started_at.desc()).limit(RECENT_SESSIONS)
    measured = union(
        select(runs.c.session_id, runs.c.version).where(runs.c.session_id.in_(recent)),
        # Of sessions whose runs were pruned the nights are left.
        select(nights.c.session_id, nights.c.version).where(
            nights.c.session_id.in_(recent), nights.c.build_id.is_not(None)
        ),
    ).subquery()
    query = (
        select(
            measured.c.version, sessions.c.suite, sessions.c.profile, sessions.c.uid, sessions.c.started_at
        )
        .join_from(measured, sessions, measured.c.session_id == sessions.c.id)
        .order_by(sessions.c.started_at.desc(), measured.c.version)
    )
    latest: dict[tuple[str, str, str], Sighting] = {}
    for version, suite, profile, uid, started_at in connection.execute(query):
        sighting = Sighting(version, suite, profile, uid, from_text(started_at))
        latest.setdefault((version, suite, profile), sighting)
    return tuple(latest.values())


def _values(
    connection: Connection, session_id: int, metrics: Collection[str]
) -> defaultdict[int, dict[str, float]]:
    """Metric values by run id."""
    query = (
        select(measurements)
        .join_from(measurements, runs, runs.c.id == measurements.c.run_id)
        .where(runs.c.session_id == session_id)
    )
    if metrics:
        query = query.where(measurements.c.metric.in_(metrics))
    values: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for run_id, metric, value in connection.execute(query):
        values[run_id][metric] = value
    return values


def machine_of(connection: Connection, machine_id: int) -> Machine:
    """The machine with this id, which there must be."""
    row = connection.execute(select(machines).where(machines.c.id == machine_id)).mappings().one()
    return Machine(**_without(row, "id", "details"), details=json.loads(row["details"]))


def _session(row: RowMapping, machine: Machine) -> Session:
    converted = ("machine_id", "tools", "options", "status", "started_at", "ended_at")
    process = ("process_id", "process_start_ticks", "boot_id")
    return Session(
        **_without(row, *converted, *process),
        machine=machine,
        tools=json.loads(row["tools"]),
        options=json.loads(row["options"]),
        status=SessionStatus(row["status"]),
        started_at=from_text(row["started_at"]),
        ended_at=row["ended_at"] and from_text(row["ended_at"]),
    )


def _run(row: RowMapping, values: dict[str, float]) -> Run:
    elsewhere = ("session_id", "build_id", "configuration_id", "started_at", "ended_at", "status", "warnings")
    return Run(
        **_without(row, *elsewhere),
        status=RunStatus(row["status"]),
        warnings=tuple(json.loads(row["warnings"])),
        values=values,
    )


def _without(row: RowMapping, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
