"""Queries for sessions, runs, machines, dropped rounds and calibrations."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, TableClause, func, literal, select, union_all

from build.version import Version
from history.errors import RESTORE, HistoryError, stored_list, stored_object, stored_options
from history.store.database import plain_rows
from history.store.records import (
    CalibratedNoise,
    DroppedRound,
    LatestRun,
    Machine,
    Run,
    RunStatus,
    Session,
    SessionStart,
    SessionStatus,
    is_long,
)
from history.store.schema import (
    activities,
    builds,
    calibrations,
    configurations,
    counted_profiles,
    dropped_rounds,
    kinds,
    machines,
    measurements,
    nights,
    profiles,
    runs,
    samples,
    sessions,
    wait_profiles,
)
from history.timestamps import from_text, to_text
from suites.accounting.activity import BURSTS, Activity
from suites.control_groups.declared import DECLARED, Declared
from suites.metrics import TPS

RECENT_SESSIONS = 100
"""The sessions whose versions are suggested when there is nothing to compare."""

NOISE_OPTIONS = ("mode", "seconds", "slice_seconds", *DECLARED)
"""The options of a session on which the scatter of its rounds depends."""


def session_of(connection: Connection, session_id: int) -> Session:
    """Return the session with this id. Raises HistoryError when there is none: a row refers to it."""
    row = _referred_to(connection, sessions, session_id)
    session = _session(row, machine_of(connection, row["machine_id"]))
    if not session.is_imported:
        return session
    # Nobody planned them, and files that come in later add rounds to the session.
    return replace(session, repetitions=_most_rounds(connection, session_id))


def _most_rounds(connection: Connection, session_id: int) -> int:
    """Return the number of rounds of the step and version that has most of them; at least 1."""
    number = func.count()
    query = select(number).where(runs.c.session_id == session_id).group_by(runs.c.version, runs.c.step)
    return connection.scalar(query.order_by(number.desc()).limit(1)) or 1


def latest_machine(connection: Connection, hostname: str) -> Machine | None:
    """Return the machine of the latest session on a host, whatever its status; None without a session."""
    query = (
        select(machines)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == hostname)
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
    )
    row = connection.execute(query.limit(1)).mappings().first()
    return None if row is None else _machine(row)


def machine_of(connection: Connection, machine_id: int) -> Machine:
    """Return the machine with this id. Raises HistoryError when there is none: a row refers to it."""
    return _machine(_referred_to(connection, machines, machine_id))


def _referred_to(connection: Connection, table: TableClause, number: int) -> RowMapping:
    row = connection.execute(select(table).where(table.c.id == number)).mappings().first()
    if row is None:
        raise HistoryError(
            f"the history is damaged: a row refers to a missing one of {table.name}, {number}", hint=RESTORE
        )
    return row


def runs_of(
    connection: Connection, session_id: int, versions: Sequence[Version], metrics: Collection[str] = ()
) -> tuple[Run, ...]:
    """Return the runs of a session in the order in which they were carried out.

    Without versions those of all versions, and without metrics the values of all metrics.
    """
    run = runs.c
    columns = (run.step, run.step_position, run.repetition, run.position, run.status, run.failure)
    criteria = [run.session_id == session_id]
    if versions:
        criteria.append(run.version.in_([str(version) for version in versions]))
    query = (
        select(run.id, run.version, builds.c.key, *columns, run.warnings, builds.c.source_digest)
        .join_from(runs, builds, run.build_id == builds.c.id)
        .where(*criteria)
        .order_by(run.position, run.id)
    )
    measured = (
        select(measurements.c.run_id, measurements.c.metric, measurements.c.value)
        .join_from(measurements, runs, run.id == measurements.c.run_id)
        .where(*criteria)
    )
    if metrics:
        measured = measured.where(measurements.c.metric.in_(list(metrics)))
    by_run: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for run_id, metric, value in plain_rows(connection, measured):
        by_run[run_id][metric] = value
    return tuple(_run(row, by_run[row[0]]) for row in plain_rows(connection, query))


def manifests_of(
    connection: Connection, session_id: int, versions: Sequence[Version]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the manifests of the builds of some versions in a session, by version."""
    query = (
        select(runs.c.version, builds.c.manifest)
        .join_from(runs, builds, runs.c.build_id == builds.c.id)
        .where(runs.c.session_id == session_id, runs.c.version.in_([str(version) for version in versions]))
        .distinct()
    )
    return {str(row.version): stored_object(row.manifest) for row in connection.execute(query)}


def settings_of(
    connection: Connection, session_id: int, versions: Sequence[Version]
) -> Mapping[str, Mapping[str, str]]:
    """Return the settings with which the servers of some versions ran in a session, by version."""
    query = (
        select(runs.c.version, configurations.c.settings)
        .join_from(runs, configurations, runs.c.configuration_id == configurations.c.id)
        .where(runs.c.session_id == session_id, runs.c.version.in_([str(version) for version in versions]))
        .distinct()
    )
    return {
        str(row.version): {name: str(value) for name, value in stored_object(row.settings).items()}
        for row in connection.execute(query)
    }


def kinds_of(
    connection: Connection, session_id: int, versions: Sequence[Version]
) -> Mapping[int, Mapping[str, Mapping[str, float]]]:
    """Return the values of the runs of some versions in a session, by run's id, kind and metric."""
    query = (
        select(kinds.c.run_id, kinds.c.kind, kinds.c.metric, kinds.c.value)
        .join_from(kinds, runs, runs.c.id == kinds.c.run_id)
        .where(runs.c.session_id == session_id, runs.c.version.in_([str(version) for version in versions]))
    )
    found: defaultdict[int, defaultdict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for run_id, kind, metric, value in plain_rows(connection, query):
        found[run_id][kind][metric] = value
    return found


def samples_of(
    connection: Connection, session_id: int, step: str | None = None
) -> Mapping[int, Sequence[float]]:
    """Return the throughput of each second of the runs of a session, or of one of its steps, by run's id."""
    query = (
        select(samples.c.run_id, samples.c.qps)
        .join_from(samples, runs, samples.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id)
        .order_by(samples.c.run_id, samples.c.second)
    )
    if step is not None:
        query = query.where(runs.c.step == step)
    found: defaultdict[int, list[float]] = defaultdict(list)
    for run_id, rate in plain_rows(connection, query):
        found[run_id].append(rate)
    return found


def activities_of(connection: Connection, session_id: int) -> Mapping[int, Sequence[Activity]]:
    """Return what went on beside queries in the runs of a session, by run's id."""
    columns = (
        activities.c.run_id,
        activities.c.activity,
        activities.c.first_second,
        activities.c.last_second,
    )
    query = (
        select(*columns)
        .join_from(activities, runs, activities.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id)
        .order_by(*columns[:3])
    )
    found: defaultdict[int, list[Activity]] = defaultdict(list)
    for run_id, name, first, last in plain_rows(connection, query):
        found[run_id].append(Activity(name, first, last))
    return found


def bursts_of(connection: Connection, session_id: int, options: Mapping[str, object]) -> frozenset[int]:
    """Return the ids of the runs of a session of long mode that had background work of BURSTS.

    Rounds begin from the loaded data, so that it comes to all versions at the same place: none is returned.
    """
    if not is_long(options):
        return frozenset()
    query = (
        select(activities.c.run_id)
        .join_from(activities, runs, activities.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id, activities.c.activity.in_(BURSTS))
    )
    return frozenset(connection.execute(query).scalars())


def dropped_of(connection: Connection, session_id: int) -> tuple[DroppedRound, ...]:
    """Return the dropped rounds of a session, in the order in which they were dropped."""
    dropped = dropped_rounds.c
    columns = (dropped.step, dropped.repetition, dropped.reason, dropped.measured)
    query = select(*columns).where(dropped.session_id == session_id).order_by(dropped.id)
    return tuple(
        DroppedRound(step, repetition, reason, stored_object(measured))
        for step, repetition, reason, measured in connection.execute(query)
    )


def profiled_steps(connection: Connection, session_id: int) -> tuple[set[str], set[str], set[str]]:
    """Return the steps of a session with sampled CPU profiles, with what clients waited for, and counted."""
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    queries = [
        select(literal(kind), runs.c.step)
        .distinct()
        .join_from(runs, table, table.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id)
        for kind, table in enumerate((profiles, wait_profiles, counted_profiles))
    ]
    for kind, step in connection.execute(union_all(*queries)):
        found[kind].add(step)
    return found


def latest_noise(
    connection: Connection, session: SessionStart, metric: str, until: datetime | None
) -> Mapping[str, CalibratedNoise]:
    """Return the noise of a metric by step, from the latest calibrations that apply to `session`.

    A calibration applies to its machine, suite, profile and durability, and to the same NOISE_OPTIONS,
    because rounds of another length scatter differently. A session is not its own calibration. `until`
    ignores calibrations that began later.
    """
    noise = calibrations.c
    query = (
        select(
            *(noise.step, noise.metric, noise.sd, noise.degrees_of_freedom, noise.rounds),
            *(sessions.c.uid, sessions.c.started_at, sessions.c.options),
        )
        .join_from(calibrations, sessions, noise.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == session.machine.fingerprint,
            *(sessions.c[name] == getattr(session, name) for name in ("suite", "profile", "durability")),
            sessions.c.uid != session.uid,
            noise.metric == metric,
        )
        .order_by(sessions.c.started_at, sessions.c.id)
    )
    if until is not None:
        query = query.where(sessions.c.started_at <= to_text(until))
    return {
        values[0]: CalibratedNoise(*values, session=uid, started_at=from_text(started_at))
        for *values, uid, started_at, options in connection.execute(query)
        if _have_equal_noise_options(stored_options(options), session.options)
    }


def calibrated_throughput(
    connection: Connection,
    machine: Machine,
    suite: str,
    profile: str,
    durability: str,
    declared: Declared,
    step: str,
) -> float | None:
    """Return the mean transactions/s of a step in the latest calibration of a machine; None without one.

    A calibration applies to its machine, suite, profile, durability, and what is declared for servers.
    """
    calibrated = (
        select(sessions.c.id, sessions.c.options)
        .join_from(calibrations, sessions, calibrations.c.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == machine.fingerprint,
            sessions.c.suite == suite,
            sessions.c.profile == profile,
            sessions.c.durability == durability,
            calibrations.c.step == step,
        )
        .order_by(sessions.c.started_at.desc(), sessions.c.id.desc())
    )
    latest = next(
        (
            session
            for session, options in connection.execute(calibrated)
            if Declared.of(stored_options(options)) == declared
        ),
        None,
    )
    if latest is None:
        return None
    query = (
        select(func.avg(measurements.c.value))
        .join_from(measurements, runs, runs.c.id == measurements.c.run_id)
        .where(
            runs.c.session_id == latest,
            runs.c.step == step,
            runs.c.status == RunStatus.FINISHED,
            measurements.c.metric == TPS,
        )
    )
    return connection.execute(query).scalar()


def latest_runs(connection: Connection) -> tuple[LatestRun, ...]:
    """Return the latest of the RECENT_SESSIONS by version, suite and profile, latest first."""
    recent = select(sessions.c.id).order_by(sessions.c.started_at.desc()).limit(RECENT_SESSIONS)
    by_runs = select(runs.c.session_id, runs.c.version).where(runs.c.session_id.in_(recent))
    # A session whose runs were pruned still has its nights.
    by_nights = select(nights.c.session_id, nights.c.version).where(
        nights.c.session_id.in_(recent), nights.c.build_id.is_not(None)
    )
    measured = by_runs.union(by_nights).subquery("measured")
    session = sessions.c
    query = (
        select(measured.c.version, session.suite, session.profile, session.uid, session.started_at)
        .join_from(measured, sessions, measured.c.session_id == session.id)
        .order_by(session.started_at.desc(), measured.c.version)
    )
    latest: dict[tuple[str, str, str], LatestRun] = {}
    for version, suite, profile, uid, started_at in connection.execute(query):
        run = LatestRun(version, suite, profile, uid, from_text(started_at))
        latest.setdefault((version, suite, profile), run)
    return tuple(latest.values())


def _have_equal_noise_options(options: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(options.get(name) == other.get(name) for name in NOISE_OPTIONS)


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
    run_id, version, build_key, step, step_position, repetition, position, status, failure, *rest = row
    warnings, source_digest = rest
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
        source_digest,
    )


def _without(row: RowMapping, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
