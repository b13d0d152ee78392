"""Conversion of records to rows, and their insertion."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Insert, Select, TableClause, bindparam, insert, select
from sqlalchemy.sql.dml import ReturningInsert

from history.errors import RecordError
from history.store.process import ProcessIdentity
from history.store.profiles import packed
from history.store.records import Machine, RunRecord, SessionStart, SessionStatus, StepNoise
from history.store.schema import (
    activities,
    builds,
    calibrations,
    configurations,
    counted_profiles,
    kinds,
    measurements,
    profiles,
    runs,
    samples,
    storable,
    wait_profiles,
)
from history.timestamps import to_text
from suites.measurement import Measurement
from suites.metrics import METRICS, PRIMARY
from suites.profiling.stacks import StepProfile

if TYPE_CHECKING:
    from build.finished_build import Build


def intern(connection: Connection, table: TableClause, key: str, row: Mapping[str, Any]) -> int:
    """Return the id of the row with this key; insert the row if there is none.

    No other writer can insert it in between, because writers are serialised (Database.writing).
    """
    row_id = connection.execute(_lookup(table, key), {"sought": row[key]}).scalar()
    if row_id is None:
        row_id = connection.execute(_returning(table), dict(row)).scalar_one()
    return int(row_id)


# Made once: to make a statement takes as long as to carry it out, and a fleet records many rounds a second.
@cache
def _lookup(table: TableClause, key: str) -> Select[Any]:
    return select(table.c.id).where(table.c[key] == bindparam("sought"))


@cache
def _returning(table: TableClause) -> ReturningInsert[Any]:
    return insert(table).returning(table.c.id)


@cache
def _plain(table: TableClause) -> Insert:
    return insert(table)


def insert_runs(connection: Connection, session_id: int, records: Sequence[RunRecord]) -> list[int]:
    """Insert runs with their builds, configurations, measurements and profiles; return their ids."""
    ids = []
    for record in records:
        build_id = intern(connection, builds, "key", _build_row(record.build))
        row = _run_row(record, session_id, build_id, _configuration_id(connection, record.configuration))
        ids.append(int(connection.execute(_returning(runs), row).scalar_one()))
    measured = [
        (run_id, record.measurement)
        for run_id, record in zip(ids, records, strict=True)
        if record.measurement is not None
    ]
    _insert_measurements(connection, measured)
    for run_id, measurement in measured:
        if measurement.profile is not None:
            insert_profile(connection, run_id, measurement.profile)
        if measurement.counted is not None:
            insert_counted(connection, run_id, measurement.counted)
        if measurement.waits is not None:
            insert_waits(connection, run_id, measurement.waits)
    return ids


def insert_profile(connection: Connection, run_id: int, profile: StepProfile) -> None:
    """Insert the profile of a run, unless it is empty."""
    if not profile.samples or profile.queries <= 0:
        return
    row = {
        "run_id": run_id,
        "event": profile.event,
        "frequency": profile.frequency,
        "queries": profile.queries,
        "lost": profile.lost,
        "stacks": packed(profile.stacks),
    }
    connection.execute(insert(profiles).values(row))


def insert_counted(connection: Connection, run_id: int, profile: StepProfile) -> None:
    """Insert the counted instructions of a run by function."""
    row = {
        "run_id": run_id,
        "queries": profile.queries,
        "stacks": packed(profile.stacks),
        "calls": packed(profile.calls),
    }
    connection.execute(insert(counted_profiles).values(row))


def insert_waits(connection: Connection, run_id: int, profile: StepProfile) -> None:
    """Insert what the clients of a run did."""
    row = {
        "run_id": run_id,
        "frequency": profile.frequency,
        "queries": profile.queries,
        "stacks": packed(profile.stacks),
    }
    connection.execute(insert(wait_profiles).values(row))


def insert_noise(connection: Connection, session_id: int, noise: Sequence[StepNoise]) -> None:
    """Write what a session of identical builds says about the noise of its steps.

    Raises RecordError for a standard deviation that is infinite or no number.
    """
    for calibration in noise:
        if not (math.isfinite(calibration.sd) and math.isfinite(calibration.degrees_of_freedom)):
            raise RecordError(
                f"the noise of {calibration.metric} is not a finite number: {calibration.sd} with"
                f" {calibration.degrees_of_freedom} degrees of freedom",
                where=calibration.step,
                hint="leave out what could not be measured",
            )
    rows = [vars(calibration) | {"session_id": session_id} for calibration in noise]
    if rows:
        connection.execute(insert(calibrations), rows)


def _insert_measurements(connection: Connection, measured: Sequence[tuple[int, Measurement]]) -> None:
    values = [
        {"run_id": run_id, "metric": name, "value": value}
        for run_id, measurement in measured
        for name, value in measurement.values.items()
    ]
    seconds = [
        {"run_id": run_id, "second": second, "qps": qps}
        for run_id, measurement in measured
        for second, qps in enumerate(measurement.per_second, start=1)
    ]
    beside = [
        {
            "run_id": run_id,
            "activity": activity.name,
            "first_second": activity.first,
            "last_second": activity.last,
        }
        for run_id, measurement in measured
        for activity in measurement.activities
    ]
    by_kind = [
        {"run_id": run_id, "kind": kind, "metric": name, "value": value}
        for run_id, measurement in measured
        for kind, kind_values in measurement.kinds.items()
        for name, value in kind_values.items()
    ]
    for table, rows in ((measurements, values), (samples, seconds), (activities, beside), (kinds, by_kind)):
        if rows:
            connection.execute(_plain(table), rows)


def check_values(measured: Measurement, where: str) -> None:
    """Check the values of a measurement. Raises RecordError for an unknown metric or an impossible value."""
    names = measured.values.keys() | {name for kind_values in measured.kinds.values() for name in kind_values}
    unknown = sorted(names - METRICS.keys())
    if unknown:
        raise RecordError(
            f"unknown metric: {', '.join(unknown)}",
            where=where,
            hint="add the metric to METRICS in suites/metrics.py",
        )
    for name, value in measured.values.items():
        require_plausible(name, value, where)
    for kind, kind_values in measured.kinds.items():
        for name, value in kind_values.items():
            require_plausible(name, value, f"{where}, {kind}")
    for qps in measured.per_second:
        require_plausible(PRIMARY, qps, f"{where}, a per-second sample")


def require_plausible(metric: str, value: float, where: str) -> None:
    """Raises RecordError for a value that a metric of METRICS cannot have."""
    if not METRICS[metric].is_plausible(value):
        raise RecordError(
            METRICS[metric].refusal(value), where=where, hint="leave out what could not be measured"
        )


def _configuration_id(connection: Connection, settings: Mapping[str, str] | None) -> int | None:
    if settings is None:
        return None
    written = storable(json_text(settings))
    row = {"digest": hashlib.sha256(written.encode()).hexdigest(), "settings": written}
    return intern(connection, configurations, "digest", row)


def machine_row(machine: Machine) -> dict[str, Any]:
    """Return the row of `machines` for a machine."""
    return vars(machine) | {"details": json_text(machine.details)}


def session_row(start: SessionStart, machine_id: int, process: ProcessIdentity) -> dict[str, Any]:
    """Return the row of `sessions` for a session that begins, without its start time."""
    fields = {name: value for name, value in vars(start).items() if name != "machine"}
    return fields | {
        "machine_id": machine_id,
        "status": SessionStatus.RUNNING,
        "tools": json_text(start.tools),
        "options": json_text(start.options),
        "process_id": process.process_id,
        "process_start_ticks": process.start_ticks,
        "boot_id": process.boot_id,
    }


def _build_row(build: "Build") -> dict[str, Any]:
    source = build.manifest.source
    return {
        "key": build.key,
        "engine": build.version.engine,
        "release": build.release,
        "source_kind": source.kind,
        "source_digest": source.digest,
        "compiler": build.manifest.compiler.version,
        "manifest": json_text(build.manifest.to_json()),
    }


def _run_row(
    record: RunRecord, session_id: int, build_id: int, configuration_id: int | None
) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name in runs.c} | {
        "session_id": session_id,
        "build_id": build_id,
        "version": str(record.build.version),
        "configuration_id": configuration_id,
        "warnings": json_text(record.measurement.warnings if record.measurement else []),
        "started_at": to_text(record.started_at),
        "ended_at": to_text(record.ended_at),
    }


def json_text(value: Any) -> str:
    """Return canonical JSON, so that equal values have equal digests. Paths become text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
