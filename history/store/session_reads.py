"""Queries for sessions, runs, machines and calibrations."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from build.version import Version
from history.errors import stored_list, stored_object, stored_options
from history.store.database import plain_rows
from history.store.records import (
    CalibratedNoise,
    DroppedRound,
    Machine,
    Run,
    RunStatus,
    Session,
    SessionStart,
    SessionStatus,
    Sighting,
)
from history.store.schema import (
    builds,
    calibrations,
    dropped_rounds,
    machines,
    measurements,
    nights,
    profiles,
    runs,
    sessions,
)
from history.timestamps import from_text, to_text

RECENT_SESSIONS = 100
"""That a person is reminded of when there is nothing to compare."""

LIKE = ("mode", "seconds", "slice_seconds")
"""Options of a session that decide how much its rounds scatter."""


def session_of(connection: Connection, session_id: int) -> Session:
    """The session with this id, which there must be."""
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    return _session(row, machine_of(connection, row["machine_id"]))


def latest_machine(connection: Connection, hostname: str) -> Machine | None:
    """The machine of the session started last on a host of this name, whatever became of the session."""
    query = (
        select(machines)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == hostname)
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
    )
    row = connection.execute(query.limit(1)).mappings().first()
    return None if row is None else _machine(row)


def machine_of(connection: Connection, machine_id: int) -> Machine:
    """The machine with this id, which there must be."""
    return _machine(connection.execute(select(machines).where(machines.c.id == machine_id)).mappings().one())


def runs_of(
    connection: Connection, session_id: int, versions: Sequence[Version], metrics: Collection[str] = ()
) -> tuple[Run, ...]:
    """The runs of a session in the order they were carried out; of the given versions, else of all.

    With the values of the given metrics, else of all.
    """
    its = runs.c
    columns = (its.step, its.step_position, its.repetition, its.position, its.status, its.failure)
    which = [its.session_id == session_id]
    if versions:
        which.append(its.version.in_([str(version) for version in versions]))
    query = (
        select(its.id, its.version, builds.c.key, *columns, its.warnings)
        .join_from(runs, builds, its.build_id == builds.c.id)
        .where(*which)
        .order_by(its.position, its.id)
    )
    measured = (
        select(measurements.c.run_id, measurements.c.metric, measurements.c.value)
        .join_from(measurements, runs, its.id == measurements.c.run_id)
        .where(*which)
    )
    if metrics:
        measured = measured.where(measurements.c.metric.in_(list(metrics)))
    by_run: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for run_id, metric, value in plain_rows(connection, measured):
        by_run[run_id][metric] = value
    return tuple(_run(row, by_run[row[0]]) for row in plain_rows(connection, query))


def dropped_of(connection: Connection, session_id: int) -> tuple[DroppedRound, ...]:
    """The rounds of a session that were measured again, in the order they were dropped."""
    its = dropped_rounds.c
    query = select(its.step, its.repetition, its.reason, its.measured).where(its.session_id == session_id)
    return tuple(
        DroppedRound(step, repetition, reason, stored_object(measured))
        for step, repetition, reason, measured in connection.execute(query.order_by(its.id))
    )


def profiled_steps(connection: Connection, session_id: int) -> set[str]:
    """The steps of a session of which there are CPU profiles."""
    query = select(runs.c.step).distinct().join_from(runs, profiles, profiles.c.run_id == runs.c.id)
    return set(connection.execute(query.where(runs.c.session_id == session_id)).scalars())


def latest_noise(
    connection: Connection, session: SessionStart, metric: str, until: datetime | None
) -> Mapping[str, CalibratedNoise]:
    """The noise of each step by the latest calibration of the machine, suite and profile of `session`.

    Rounds of another length or durability scatter otherwise: LIKE has to be the same in both. A session is
    never its own calibration. `until` leaves out calibrations that began later.
    """
    its = calibrations.c
    query = (
        select(
            *(its.step, its.metric, its.sd, its.degrees_of_freedom, its.rounds),
            *(sessions.c.uid, sessions.c.started_at, sessions.c.options),
        )
        .join_from(calibrations, sessions, its.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == session.machine.fingerprint,
            *(sessions.c[name] == getattr(session, name) for name in ("suite", "profile", "durability")),
            sessions.c.uid != session.uid,
            its.metric == metric,
        )
        .order_by(sessions.c.started_at, sessions.c.id)
    )
    if until is not None:
        query = query.where(sessions.c.started_at <= to_text(until))
    return {
        noise[0]: CalibratedNoise(*noise, session=uid, started_at=from_text(started_at))
        for *noise, uid, started_at, options in connection.execute(query)
        if _alike(stored_options(options), session.options)
    }


def sightings(connection: Connection) -> tuple[Sighting, ...]:
    """Where each version of the RECENT_SESSIONS was last run, per suite and profile; the latest first."""
    recent = select(sessions.c.id).order_by(sessions.c.started_at.desc()).limit(RECENT_SESSIONS)
    by_runs = select(runs.c.session_id, runs.c.version).where(runs.c.session_id.in_(recent))
    # Of sessions whose runs were pruned the nights are left.
    by_nights = select(nights.c.session_id, nights.c.version).where(
        nights.c.session_id.in_(recent), nights.c.build_id.is_not(None)
    )
    measured = by_runs.union(by_nights).subquery("measured")
    its = sessions.c
    query = (
        select(measured.c.version, its.suite, its.profile, its.uid, its.started_at)
        .join_from(measured, sessions, measured.c.session_id == its.id)
        .order_by(its.started_at.desc(), measured.c.version)
    )
    latest: dict[tuple[str, str, str], Sighting] = {}
    for version, suite, profile, uid, started_at in connection.execute(query):
        sighting = Sighting(version, suite, profile, uid, from_text(started_at))
        latest.setdefault((version, suite, profile), sighting)
    return tuple(latest.values())


def _alike(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one.get(name) == other.get(name) for name in LIKE)


def _machine(row: RowMapping) -> Machine:
    return Machine(**_without(row, "id", "details"), details=stored_object(row["details"]))


def _session(row: RowMapping, machine: Machine) -> Session:
    converted = ("machine_id", "tools", "options", "status", "started_at", "ended_at")
    process = ("process_id", "process_start_ticks", "boot_id")
    return Session(
        **_without(row, *converted, *process),
        machine=machine,
        tools=stored_object(row["tools"]),
        options=stored_options(row["options"]),
        status=SessionStatus(row["status"]),
        started_at=from_text(row["started_at"]),
        ended_at=row["ended_at"] and from_text(row["ended_at"]),
    )


def _run(row: Sequence[Any], values: Mapping[str, float]) -> Run:
    run_id, version, build_key, step, step_position, repetition, position, status, failure, warnings = row
    return Run(
        run_id,
        version,
        build_key,
        step,
        step_position,
        repetition,
        position,
        RunStatus(status),
        failure,
        values,
        tuple(map(str, stored_list(warnings))),
    )


def _without(row: RowMapping, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
