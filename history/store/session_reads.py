"""Questions that answer what the history holds."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from build.version import Version
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
from history.store.sql import Row, Source, among
from history.timestamps import from_text, to_text

RECENT_SESSIONS = 100
"""That a person is reminded of when there is nothing to compare."""

LIKE = ("mode", "seconds", "slice_seconds")
"""Options of a session that decide how much its rounds scatter."""


def session_of(source: Source, session_id: int) -> Session:
    """The session with this id, which there must be."""
    (row,) = source.records("SELECT * FROM sessions WHERE id = :id", id=session_id)
    return _session(row, machine_of(source, row["machine_id"]))


def latest_machine(source: Source, hostname: str) -> Machine | None:
    """The machine of the session started last on a host of this name, whatever became of the session."""
    found = source.value(
        "SELECT sessions.machine_id FROM sessions JOIN machines ON sessions.machine_id = machines.id"
        " WHERE machines.hostname = :hostname"
        " ORDER BY sessions.started_at DESC, sessions.id DESC LIMIT 1",
        hostname=hostname,
    )
    return None if found is None else machine_of(source, found)


def runs_of(
    source: Source, session_id: int, versions: Sequence[Version], metrics: Collection[str] = ()
) -> tuple[Run, ...]:
    """The runs of a session in the order they were carried out; of the given versions, else of all.

    With the values of the given metrics, else of all.
    """
    of_session = "runs.session_id = :session_id"
    values: dict[str, object] = {"session_id": session_id}
    if versions:
        condition, named = among("runs.version", [str(version) for version in versions])
        of_session, values = f"{of_session} AND {condition}", {**values, **named}
    rows = source.rows(
        "SELECT runs.id, runs.version, builds.key, runs.step, runs.step_position, runs.repetition,"
        " runs.position, runs.status, runs.failure, runs.warnings"
        f" FROM runs JOIN builds ON runs.build_id = builds.id WHERE {of_session}"
        " ORDER BY runs.position, runs.id",
        **values,
    )
    measured = "SELECT measurements.run_id, measurements.metric, measurements.value"
    measured += f" FROM measurements JOIN runs ON runs.id = measurements.run_id WHERE {of_session}"
    if metrics:
        condition, named = among("measurements.metric", metrics)
        measured, values = f"{measured} AND {condition}", {**values, **named}
    by_run: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for run_id, metric, value in source.rows(measured, **values):
        by_run[run_id][metric] = value
    return tuple(_run(row, by_run[row[0]]) for row in rows)


def dropped_of(source: Source, session_id: int) -> tuple[DroppedRound, ...]:
    """The rounds of a session that were measured again, in the order they were dropped."""
    rows = source.rows(
        "SELECT step, repetition, reason, measured FROM dropped_rounds"
        " WHERE session_id = :session_id ORDER BY id",
        session_id=session_id,
    )
    return tuple(
        DroppedRound(step, repetition, reason, json.loads(measured))
        for step, repetition, reason, measured in rows
    )


def profiled_steps(source: Source, session_id: int) -> set[str]:
    """The steps of a session of which there are CPU profiles."""
    return set(
        source.column(
            "SELECT DISTINCT runs.step FROM runs JOIN profiles ON profiles.run_id = runs.id"
            " WHERE runs.session_id = :session_id",
            session_id=session_id,
        )
    )


def latest_noise(
    source: Source, session: SessionStart, metric: str, until: datetime | None
) -> Mapping[str, CalibratedNoise]:
    """The noise of each step by the latest calibration of the machine, suite and profile of `session`.

    Rounds of another length or durability scatter otherwise: LIKE has to be the same in both. A session is
    never its own calibration. `until` leaves out calibrations that began later.
    """
    before: dict[str, object] = {} if until is None else {"until": to_text(until)}
    rows = source.rows(
        "SELECT calibrations.step, calibrations.metric, calibrations.sd, calibrations.degrees_of_freedom,"
        " calibrations.rounds, sessions.uid, sessions.started_at, sessions.options"
        " FROM calibrations JOIN sessions ON calibrations.session_id = sessions.id"
        " JOIN machines ON sessions.machine_id = machines.id"
        " WHERE machines.fingerprint = :fingerprint AND sessions.suite = :suite"
        " AND sessions.profile = :profile AND sessions.durability = :durability"
        " AND sessions.uid != :uid AND calibrations.metric = :metric"
        f"{' AND sessions.started_at <= :until' if before else ''}"
        " ORDER BY sessions.started_at, sessions.id",
        fingerprint=session.machine.fingerprint,
        suite=session.suite,
        profile=session.profile,
        durability=session.durability,
        uid=session.uid,
        metric=metric,
        **before,
    )
    return {
        noise[0]: CalibratedNoise(*noise, session=uid, started_at=from_text(started_at))
        for *noise, uid, started_at, options in rows
        if _alike(json.loads(options), session.options)
    }


def sightings(source: Source) -> tuple[Sighting, ...]:
    """Where each version of the RECENT_SESSIONS was last run, per suite and profile; the latest first."""
    recent = f"(SELECT id FROM sessions ORDER BY started_at DESC LIMIT {RECENT_SESSIONS})"
    rows = source.rows(
        "SELECT measured.version, sessions.suite, sessions.profile, sessions.uid, sessions.started_at"
        f" FROM (SELECT session_id, version FROM runs WHERE session_id IN {recent}"
        # Of sessions whose runs were pruned the nights are left.
        f" UNION SELECT session_id, version FROM nights WHERE session_id IN {recent}"
        " AND build_id IS NOT NULL) AS measured"
        " JOIN sessions ON measured.session_id = sessions.id"
        " ORDER BY sessions.started_at DESC, measured.version"
    )
    latest: dict[tuple[str, str, str], Sighting] = {}
    for version, suite, profile, uid, started_at in rows:
        sighting = Sighting(version, suite, profile, uid, from_text(started_at))
        latest.setdefault((version, suite, profile), sighting)
    return tuple(latest.values())


def _alike(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one.get(name) == other.get(name) for name in LIKE)


def machine_of(source: Source, machine_id: int) -> Machine:
    """The machine with this id, which there must be."""
    (row,) = source.records("SELECT * FROM machines WHERE id = :id", id=machine_id)
    return Machine(**_without(row, "id", "details"), details=json.loads(row["details"]))


def _session(row: Mapping[str, Any], machine: Machine) -> Session:
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


def _run(row: Row, values: Mapping[str, float]) -> Run:
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
        tuple(json.loads(warnings)),
    )


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
