"""Records made by hand, for tests that need a history without running anything."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from build.finished_build import Build
from build.version import parse_version
from history.store.records import Machine, RunRecord, RunStatus, SessionStart, SessionStatus
from history.store.writer import Store
from suites.accounting.activity import Activity
from suites.measurement import Measurement
from suites.metrics import OVER_LIMIT, STATEMENT_SECONDS
from tests.manifests import a_manifest

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)

MACHINE = Machine(
    fingerprint="f00d",
    hostname="db1",
    cpu_model="EPYC 9454P",
    cores=48,
    memory_bytes=128 << 30,
    kernel="6.8.0-55",
    operating_system="Ubuntu 24.04",
    details={"governor": "performance"},
)


def session_start(uid: str = "night-1", repetitions: int = 3, suite: str = "write-heavy") -> SessionStart:
    return SessionStart(
        uid=uid,
        machine=MACHINE,
        suite=suite,
        profile="short",
        suite_digest="ab" * 32,
        seed=42,
        durability="relaxed",
        repetitions=repetitions,
        command="./tidemark run",
        tools={"sysbench": "1.0.20"},
        options={"threads": 8},
    )


def a_build(version: str = "postgres@18.6", key: str = "") -> Build:
    parsed = parse_version(version)
    manifest = a_manifest(compiler={"version": "gcc 13.2.0"})
    return Build(parsed, parsed.ref, key or f"key of {version}", Path("/nowhere"), manifest)


def run_record(
    values: Mapping[str, float] | None = None,
    *,
    version: str = "postgres@18.6",
    step: str = "insert",
    step_position: int = 1,
    repetition: int = 1,
    position: int = 1,
    failure: str | None = None,
    per_second: tuple[float, ...] = (),
    activities: tuple[Activity, ...] = (),
    key: str = "",
) -> RunRecord:
    """A finished run, or with a `failure` one that never ran."""
    started = NIGHT + timedelta(minutes=position)
    return RunRecord(
        build=a_build(version, key),
        configuration={"shared_buffers": "1GB", "server": version},
        step=step,
        step_position=step_position,
        repetition=repetition,
        position=position,
        status=RunStatus.FAILED if failure else RunStatus.FINISHED,
        failure=failure,
        started_at=started,
        ended_at=started if failure else started + timedelta(seconds=30),
        measurement=None
        if failure
        else Measurement(values or {"qps": 1000.0}, per_second, activities=activities),
    )


def record_steps(
    store: Store,
    start: SessionStart,
    steps: Mapping[str, Mapping[str, list[float]]],
    status: SessionStatus | None = SessionStatus.FINISHED,
    failure: str = "the server did not start",
    over: Collection[str] = (),
    took: float | None = None,
) -> int:
    """Record a session from step -> version -> QPS of each repetition; a QPS of 0 is a run with `failure`.

    Failed runs of the versions in `over` were ended at the limit of a query, which `took` the others so many
    seconds.
    """
    session = store.start_session(start)
    records: list[RunRecord] = []
    for step_position, (step, versions) in enumerate(steps.items(), start=1):
        for version, rates in versions.items():
            for repetition, qps in enumerate(rates, start=1):
                record = run_record(
                    {"qps": qps, "server_cpu_us_per_op": 2e5 / (qps or 1)},
                    version=version,
                    step=step,
                    step_position=step_position,
                    repetition=repetition,
                    position=len(records) + 1,
                    failure=None if qps else failure,
                )
                if not qps and version in over:
                    record = replace(record, measurement=Measurement({OVER_LIMIT: 10.0}, ()))
                elif not qps and took is not None:
                    record = replace(record, measurement=Measurement({STATEMENT_SECONDS: took}, ()))
                records.append(record)
    store.record_runs(session, records)
    if status:
        store.finish_session(session, status)
    return session
