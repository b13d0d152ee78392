"""Levels of clients and the read suite on real servers: false verdicts, noise, overhead and time.

A build is measured against itself at LEVELS of clients. Sessions are then drawn from the recorded rounds,
with the sides exchanged at random, and judged as every session is. The overhead at the highest level is that
of `bench overhead`, with the sweep's transaction. A lock that is planted to be held longer has to be flagged
with many clients alone. `$TIDEMARK_BENCH_PARTS` selects same, overhead, read and contention.
"""

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.overhead import alternate
from benchmarks.real_builds.contention import contention_figures
from build.build import Build
from build.home import Home, locate
from build.make import provide
from build.progress import Progress
from build.version import Version, parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.pairs import noise_of
from history.comparison.verdict import Verdict
from history.open import open_store
from history.series.variants import TWIN
from history.store.records import Run, RunRecord, RunStatus, SessionStart, SessionStatus
from history.store.writer import Store
from runners.console import Lines
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request
from runners.measuring.session import run_session
from suites.definition import load_suite
from suites.generators.client_limits import require_clients
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.measurement import Measurement
from suites.metric import QPS
from suites.postgres.server import PostgresServer
from suites.sizing import sizes, this_machine

OLD, BASE = parse_version("postgres@17.11"), parse_version("postgres@18.6")
SAME = replace(BASE, variant=TWIN)
PROFILE = "smoke"
LEVELS = (1, 8, 64)
ROUNDS = 10
"""The recorded rounds, from which sessions are drawn."""

SESSIONS = 40
DECIDED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)
OVERHEAD_SECONDS = 8.0
"""The length of a slice with many clients, which at 3 s differ by half when the host withholds CPU time."""
MAX_READ_MINUTES = 8.0


def main() -> int:
    """Measure the figures of the chosen parts; return 0 if all targets are met, else 1."""
    home, shown = locate(), Lines()
    parts = {
        "same": same_figures,
        "overhead": overhead_figures,
        "read": read_figures,
        "contention": contention_figures,
    }
    chosen = chosen_parts("sweep", parts)
    with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
        return report([figure for name in chosen for figure in parts[name](home, folder, shown)])


def same_figures(home: Home, folder: Path, shown: Progress) -> Iterator[Figure]:
    """Yield the false verdicts of sessions drawn from rounds of identical builds, and the noise by level."""
    suite = load_suite("oltp-sweep")
    request = Request((BASE, SAME), suite, PROFILE, suite.select((), PROFILE, LEVELS), ROUNDS)
    with open_store(folder / "rounds.db") as store:
        outcome = run_session(request, home, store, shown)
        session = compare(store, BASE, (SAME,), CompareOptions(session=outcome.uid)).contenders[0].session
        runs = [run for run in store.runs(session.id) if run.status is RunStatus.FINISHED]
        noise = noise_of(runs, str(BASE), str(SAME))
    start = SessionStart(**{field.name: getattr(session, field.name) for field in fields(SessionStart)})
    build = provide(BASE, home, shown)
    with open_store(folder / "drawn.db") as store:
        flagged = [_judged(store, start, runs, build, number) for number in range(SESSIONS)]
    wrong = sum(map(bool, flagged))
    note = ", ".join(sorted({step for steps in flagged for step in steps}))
    yield Figure(f"identical builds: of {SESSIONS} sessions, with a verdict", wrong, "", at_most=0, note=note)
    for calibration in noise:
        if calibration.metric == QPS:
            name = f"noise of a round's ratio of qps, {calibration.step}"
            yield Figure(name, 100 * calibration.sd, "%", note=f"{calibration.rounds} rounds")


def _judged(store: Store, start: SessionStart, runs: Sequence[Run], build: Build, number: int) -> list[str]:
    """Record a session drawn from `runs`, and return the steps with a verdict of a change."""
    draw, repetitions = random.Random(number), load_suite("oltp-sweep").profile(PROFILE).repetitions
    values: dict[int, dict[str, dict[Version, Run]]] = {}
    for run in runs:
        version = SAME if run.version == str(SAME) else BASE
        values.setdefault(run.repetition, {}).setdefault(run.step, {})[version] = run
    uid = f"drawn-{number}"
    options = {**start.options, "versions": [str(BASE), str(SAME)]}
    session = store.start_session(replace(start, uid=uid, repetitions=repetitions, options=options))
    position = 0
    for repetition, chosen in enumerate(draw.sample(sorted(values), repetitions), start=1):
        for sides in values[chosen].values():
            names = draw.sample([BASE, SAME], 2)
            records = [
                _record(run, replace(build, version=name), repetition, position + place)
                for place, (name, run) in enumerate(zip(names, sides.values(), strict=True))
            ]
            store.record_runs(session, records)
            position += len(records)
    store.finish_session(session, SessionStatus.FINISHED)
    (judged,) = compare(store, BASE, (SAME,), CompareOptions(session=uid)).contenders
    return [step.step for step in judged.steps if step.judged.verdict in DECIDED]


def _record(run: Run, build: Build, repetition: int, position: int) -> RunRecord:
    now = datetime.now(UTC)
    measured: Mapping[str, float] = run.values
    return RunRecord(
        build=build,
        configuration=None,
        step=run.step,
        step_position=run.step_position,
        repetition=repetition,
        position=position,
        status=RunStatus.FINISHED,
        failure=None,
        started_at=now,
        ended_at=now,
        measurement=Measurement(dict(measured), ()),
    )


def overhead_figures(home: Home, folder: Path, shown: Progress) -> Iterator[Figure]:
    """Yield the throughput through Tidemark over that of the same sysbench by hand, at the highest level."""
    suite = load_suite("oltp-sweep")
    (step,) = suite.select((), PROFILE, LEVELS[-1:])
    room = sizes(suite, suite.profile(PROFILE), this_machine(), (step,))
    require_clients(room, {BASE: {}}, this_machine())
    unbound = replace(room, bound_to=None)
    server = PostgresServer(provide(BASE, home, shown), unbound, Durability.RELAXED, folder / "1")
    generator = Sysbench(suite, room)
    try:
        server.create()
        server.start()
        generator.load(server.address)
        server.reset()
        throughput, _ = alternate(server, generator, step, shown, OVERHEAD_SECONDS)
        yield replace(throughput, name=f"{throughput.name}, {LEVELS[-1]} clients")
    finally:
        server.destroy()


def read_figures(home: Home, folder: Path, shown: Progress) -> Iterator[Figure]:
    """Yield the minutes of the read suite on two versions, without compiling them."""
    suite = load_suite("read")
    for version in (OLD, BASE):
        provide(version, home, shown)
    repetitions = suite.profile(PROFILE).repetitions
    request = Request((OLD, BASE), suite, PROFILE, suite.steps, repetitions)
    began = time.monotonic()
    with open_store(folder / "read.db") as store:
        run_session(request, home, store, shown)
    minutes = (time.monotonic() - began) / 60
    note = f"{len(suite.steps)} steps, {repetitions} rounds"
    yield Figure("read suite, two versions", minutes, "min", at_most=MAX_READ_MINUTES, note=note)
