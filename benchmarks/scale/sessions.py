"""Sessions as a fleet records them, made up, and what a history says of them afterwards."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from sqlalchemy import exists, select

from build.finished_build import Build
from build.manifest import CompilerRecord, Manifest, SourceRecord
from build.version import parse_version
from history.open import open_store
from history.store.records import Machine, RunRecord, RunStatus, SessionStart
from history.store.schema import measurements, runs, samples, sessions
from history.store.writer import Store
from suites.measurement import Measurement
from suites.metrics import METRICS, QPS

VERSIONS = ("postgres@17.11", "postgres@18.6")
STEPS = ("insert", "update-index", "delete")
SECONDS = 2
"""Samples of a run of a smoke session."""

_POSSIBLE = (name for name, metric in METRICS.items() if name != QPS and metric.is_plausible(100.0))
VALUES = dict.fromkeys(islice(_POSSIBLE, 40), 100.0)
"""As many metrics as a run of a smoke session has."""


def session_start(box: str, uid: str, rounds: int) -> SessionStart:
    """Return the description of a session of a box."""
    machine = Machine(f"{box:0>16}", box, "EPYC 9454P", 48, 128 << 30, "6.8.0", "Debian 12", {})
    return SessionStart(
        uid=uid,
        machine=machine,
        suite="write-heavy",
        profile="smoke",
        suite_digest="ab" * 32,
        seed=42,
        durability="relaxed",
        repetitions=rounds,
        command="./tidemark run",
        tools={"generator": "sysbench 1.0.20"},
        options={"threads": 8, "versions": list(VERSIONS)},
    )


def round_of(step: int, number: int, qps: float, position: int) -> list[RunRecord]:
    """Return the runs of a round; its throughput tells it from every other."""
    began = datetime.now(UTC)
    return [
        RunRecord(
            build=_build(version),
            configuration={"shared_buffers": "128MB", "server": version},
            step=STEPS[step],
            step_position=step + 1,
            repetition=number,
            position=position + place,
            status=RunStatus.FINISHED,
            failure=None,
            started_at=began,
            ended_at=began + timedelta(seconds=SECONDS),
            measurement=Measurement({QPS: qps, **VALUES}, (qps,) * SECONDS),
        )
        for place, version in enumerate(VERSIONS)
    ]


def _build(version: str) -> Build:
    parsed = parse_version(version)
    key = f"key of {version}"
    manifest = Manifest(
        version=version,
        release=parsed.ref,
        key=key,
        source=SourceRecord(kind="cache", digest="sha256:" + "cd" * 32, location="postgresql.tar.bz2"),
        patches=[],
        compiler=CompilerRecord(version="gcc 13.2.0"),
    )
    return Build(parsed, parsed.ref, key, Path("/nowhere"), manifest)


@dataclass(frozen=True)
class RecordedRound:
    """A round that a box was told is recorded."""

    uid: str
    step: str
    number: int
    qps: float


def read_log(path: Path) -> tuple[Counter[RecordedRound], Counter[RecordedRound]]:
    """Return the rounds that a box began to record and those it was told are recorded, by its log.

    A last line that is not whole was not written before the box was killed.
    """
    begun: Counter[RecordedRound] = Counter()
    told: Counter[RecordedRound] = Counter()
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        kind, uid, step, number, qps = line.split()
        {"+": begun, "=": told}[kind][RecordedRound(uid, step, int(number), float(qps))] += 1
    return begun, told


def recorded_in(store: Store) -> Counter[RecordedRound]:
    """Return how often a history holds each round, half of one for each of its two versions."""
    query = (
        select(sessions.c.uid, runs.c.step, runs.c.repetition, measurements.c.value)
        .join_from(runs, sessions, runs.c.session_id == sessions.c.id)
        .join(measurements, measurements.c.run_id == runs.c.id)
        .where(measurements.c.metric == QPS)
    )
    with store.database.reading() as connection:
        return Counter(RecordedRound(*row) for row in connection.execute(query))


def differences(
    url: str, told: Counter[RecordedRound], begun: Counter[RecordedRound] | None = None
) -> list[str]:
    """Return which rounds a history lacks, holds twice, or holds though nobody recorded them, in words.

    `begun` are rounds that may be there, as they were being recorded when their box was killed.
    """
    with open_store(url) as store:
        found = recorded_in(store)
        with store.database.reading() as connection:
            has_samples = exists().where(samples.c.run_id == runs.c.id)
            half = len(connection.execute(select(runs.c.id).where(~has_samples)).all())
    versions = len(VERSIONS)
    least = Counter({key: versions * times for key, times in told.items()})
    most = Counter({key: versions * times for key, times in (begun or told).items()})
    wrong = [f"lost: {key}" for key in least - found]
    wrong += [f"too often: {key}" for key in found - most]
    wrong += [f"half: {key}" for key, times in found.items() if times % versions]
    return wrong + ([f"{half} runs have no samples"] if half else [])
