"""A history with something of everything that the site shows, made by hand: two boxes, a regression on both.

The branch is a git branch, whose commits move on every night; in the night REGRESSION one step loses an
eighth of its throughput, on both boxes, and a session confirms it. Random numbers have a fixed seed.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path

from history.changes.confirmation import ConfirmationRequest, Confirms
from history.changes.detector import judge
from history.comparison.pairs import noise_of
from history.open import open_store
from history.store import bisects
from history.store.bisects import EventKind
from history.store.records import DroppedRound, Machine, RunRecord, SessionStatus
from history.store.writer import Store
from runners.bisect.domain.question import BisectPoint, CandidateRange
from runners.bisect.domain.rules import SearchVerdict
from suites.measurement import Measurement
from suites.profiling.stacks import StepProfile
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start
from tests.history.profiled import NEW as NEW_STACKS
from tests.history.profiled import OLD as OLD_STACKS
from tests.runners.bisect.stand import a_question

BASE, BRANCH, OTHER = "postgres@17.11", "postgres@master", "postgres@18"
STEPS = ("update-index", "update-one", "delete", "insert")
GROUPS = {"update-index": "updates", "update-one": "updates", "delete": "churn", "insert": "churn"}
SLOWED = "update-index"
FACTOR = 0.875
NIGHTS, REGRESSION = 46, 37
"""The number of nights of each box, and the first one with the regression."""

SECONDS = 20
RICH_NIGHTS = 3
"""The last nights have throughput by second, latencies and profiles."""

BOXES: Mapping[str, Machine] = {
    "db1": MACHINE,
    "db2": replace(MACHINE, hostname="db2", fingerprint="beef", cpu_model="Xeon Gold 6330", cores=56),
}

MOVED = replace(MACHINE, kernel="6.12.9", fingerprint="f00d2")
"""The first box after a change of its kernel."""


def commit(number: int) -> str:
    """Return the version that the branch is in a night."""
    return f"postgres@git:{number * 7919 % 16**6:06x}c0ffee"


def settings_of(version: str) -> dict[str, str]:
    """Return the settings of a version: one differs between versions, one is a path."""
    return {
        "shared_buffers": "16GB",
        "io_method": "sync" if "17" in version else "worker",
        "data_directory": f"/srv/secret/{version}",
        "wal_level": "replica",
        "jit": "off",
    }


class RichHistory:
    """Writes the history; the clock stands where the last night put it."""

    def __init__(self, path: Path) -> None:
        self.random = random.Random(20)
        self.moment = NIGHT
        self.store: Store = open_store(path, clock=lambda: self.moment)

    def write(self, nights: int = NIGHTS) -> None:
        """Write all nights, a calibration, a confirmation, a bisect, and judge them."""
        self.calibrate("db1")
        for number in range(1, nights + 1):
            for place, box in enumerate(BOXES):
                self.moment = NIGHT + timedelta(days=number, minutes=30 * place)
                if not (box == "db2" and number % 29 == 0):  # a missed night
                    self.night(number, box, rich=number > nights - RICH_NIGHTS)
            if number == 20:
                self.calibrate("db1", MOVED)
            if number == REGRESSION:
                self.confirm(number)
        judge(self.store.database, clock=lambda: self.moment)
        self.store.close()

    def night(self, number: int, box: str, *, rich: bool) -> int:
        """Record one night of a box."""
        machine = BOXES[box]
        if box == "db1" and number >= 20:
            machine = MOVED
        other = "postgres@18.6" if number >= 15 else "postgres@18.5"
        versions = (BASE, other, commit(number))
        uid = f"{box}n{number:03}"
        failing = number == 24 and box == "db1"
        speeds = {
            BASE: {},
            other: dict.fromkeys(STEPS, 1.06),
            commit(number): {SLOWED: FACTOR if number >= REGRESSION else 1.0, "insert": 1.02},
        }
        return self.session(
            uid, machine, versions, speeds, {commit(number): BRANCH}, rich=rich, failing=failing
        )

    def session(
        self,
        uid: str,
        machine: Machine,
        versions: Sequence[str],
        speeds: Mapping[str, Mapping[str, float]],
        branches: Mapping[str, str],
        *,
        rich: bool = False,
        failing: bool = False,
        steps: Sequence[str] = STEPS,
        rounds: int = 3,
        options: Mapping[str, object] | None = None,
    ) -> int:
        """Record a session; `speeds` are factors by version and step."""
        start = replace(
            session_start(uid, repetitions=rounds),
            machine=machine,
            command="./tidemark nightly --plan /srv/secret/plan.toml",
            tools={"generator": "sysbench 1.0.20", "tidemark": "5bf748b"},
            options={
                "versions": list(versions),
                "branches": dict(branches),
                "groups": GROUPS,
                "threads": 8,
                "left_out": ["PGOPTIONS", "SECRET_DEPLOY_KEY"],
                **(options or {}),
            },
        )
        session = self.store.start_session(start)
        records: list[RunRecord] = []
        for position, step in enumerate(steps, start=1):
            level = 9000.0 * (1 + position / 5)
            for repetition in range(1, rounds + 1):
                drift = self.random.lognormvariate(0, 0.03)
                for version in versions:
                    factor = speeds[version].get(step, 1.0) * drift * self.random.lognormvariate(0, 0.004)
                    broken = failing and step == "delete" and version != versions[0]
                    failure = "the server did not answer; see /srv/secret/log" if broken else None
                    records.append(
                        self._run(
                            version,
                            step,
                            position,
                            repetition,
                            level * factor,
                            level,
                            rich,
                            failure,
                            len(records) + 1,
                        )
                    )
        self.store.record_runs(session, records)
        if rich:
            measured = dict.fromkeys(versions, 4000.0)
            self.store.record_dropped(
                session, DroppedRound(SLOWED, 2, "other processes took 31 % of the CPU: backup.sh", measured)
            )
        self.store.finish_session(session, SessionStatus.FINISHED)
        return session

    def _run(
        self,
        version: str,
        step: str,
        position: int,
        repetition: int,
        qps: float,
        level: float,
        rich: bool,
        failure: str | None,
        at: int,
    ) -> RunRecord:
        slow = level / qps
        values = {
            "qps": qps,
            "server_cpu_us_per_op": 60.0 * slow * self.random.lognormvariate(0, 0.004),
            "server_cs_per_op": 1.7 * self.random.lognormvariate(0, 0.01),
            "server_written_kb_per_op": 0.9 * self.random.lognormvariate(0, 0.02),
            "wal_bytes_per_op": 410.0 * self.random.lognormvariate(0, 0.003),
            "latency_p99_ms": 1.4 * slow * self.random.lognormvariate(0, 0.03),
            "reset_seconds": 6.0 * (1.3 if "18" in version else 1.0) * self.random.lognormvariate(0, 0.05),
            "table_bytes": 2.4e8,
        }
        seconds: tuple[float, ...] = ()
        profile = None
        if rich:
            values |= {
                "latency_mean_ms": 0.7 * slow,
                "latency_p50_ms": 0.6 * slow,
                "latency_p95_ms": 1.1 * slow,
                "qps_cv": 0.05,
                "reset_vacuum_seconds": 4.0,
                "reset_checkpoint_seconds": 1.5,
            }
            seconds = tuple(
                qps * self.random.lognormvariate(0, 0.05) * (0.45 if second == 12 else 1)
                for second in range(SECONDS)
            )
            if step == SLOWED:
                stacks = NEW_STACKS if slow > 1.08 else OLD_STACKS
                counts = {stack: count + repetition for stack, count in stacks.items()}
                profile = StepProfile("cpu-clock", 1000.0, 10_000.0, 1, counts)
        record = run_record(
            values,
            version=version,
            step=step,
            step_position=position,
            repetition=repetition,
            position=at,
            failure=failure,
            per_second=seconds,
        )
        timed = replace(
            record, configuration=settings_of(version), started_at=self.moment, ended_at=self.moment
        )
        return timed if failure else replace(timed, measurement=Measurement(values, seconds, (), profile))

    def calibrate(self, box: str, machine: Machine | None = None) -> None:
        """Measure a version against itself."""
        twin = f"{BASE}#twin"
        uid = f"{box}cal{self.moment:%m%d}"
        session = self.session(uid, machine or BOXES[box], (BASE, twin), {BASE: {}, twin: {}}, {}, rounds=10)
        self.store.record_noise(session, noise_of(self.store.runs(session), BASE, twin))

    def confirm(self, number: int) -> None:
        """Measure the commit of a night against that of the night before."""
        old, new = commit(number - 1), commit(number)
        confirms = Confirms(
            ConfirmationRequest.NEW, BRANCH, f"db1n{number - 1:03}", f"db1n{number:03}", (SLOWED,), 0.02
        )
        options = {"confirms": confirms.option(), "rounds": {"least": 3, "cap": 20, "until_decided": True}}
        self.session(
            f"confirm{number}",
            MOVED,
            (old, new),
            {old: {}, new: {SLOWED: FACTOR}},
            {},
            steps=(SLOWED,),
            rounds=8,
            options=options,
        )


def numbered(number: int) -> tuple[str, str]:
    """Return hash and subject of a commit that may be the culprit."""
    return f"{number:040x}", f"Commit {number}: <b>a subject</b>"


def record_bisect(
    path: Path,
    fingerprint: str,
    when: datetime,
    named: Callable[[int], tuple[str, str]] = numbered,
) -> None:
    """Record a bisect that found the culprit of a change among eight commits, which `named` names."""
    points = tuple(
        BisectPoint(
            f"postgres@git:{number:012x}",
            named(number)[0],
            "A. Committer",
            "2026-04-06",
            named(number)[1],
            f"Commit {number}\n\n{named(number)[1]}",
        )
        for number in range(1, 10)
    )
    collapsed = ({"commit": "d" * 40, "subject": "doc: a word", "reason": "only documentation"},)
    chance = random.Random(3)
    observed = [
        ["b1", number, place, (-0.13 if place >= 5 else 0.0) + chance.gauss(0, 0.008)]
        for number in range(1, 9)
        for place in ((8, 4), (5, 3))[number % 2]
    ]
    verdict = SearchVerdict("culprit", 4, 5, 0.99, FACTOR, (0.85, 0.9), 0.02, 16)
    with open_store(path, clock=lambda: when) as store, store.database.writing() as connection:
        question = a_question("000000000001", "000000000009", step=SLOWED)
        made = bisects.begin(
            connection,
            "b15ec7",
            MACHINE,
            question.to_json(question.rules()),
            CandidateRange(points, collapsed).to_json(),
            fingerprint,
            when,
        )
        bisects.append(connection, made, EventKind.SESSION, {}, when, "b1")
        bisects.append(
            connection,
            made,
            EventKind.EXCLUDED,
            {"position": 6, "reason": "cc: error in /srv/secret/a.c"},
            when,
        )
        bisects.append(
            connection,
            made,
            EventKind.VERDICT,
            {"verdict": asdict(verdict), "observations": observed, "after_round": 8},
            when,
            "b1",
        )
