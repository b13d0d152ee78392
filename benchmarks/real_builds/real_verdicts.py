"""Verdicts on real servers: identical builds, builds with a known slow-down, and widths of intervals.

Postgres is compiled twice in different folders, and once with planted.patch, which makes every update
busy-wait for TIDEMARK_BURN_NS nanoseconds. The number of nanoseconds for a slow-down follows from the
duration of an update in the rounds of identical builds on the same machine.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.output.figures import Figure
from benchmarks.output.intervals import ratio_interval, simultaneous_confidence
from build.finished_build import Build
from build.home import Home
from build.progress import Progress
from build.provide import provide
from build.request import BuildRequest
from build.version import Version, parse_version
from history.comparison.compare import compare
from history.comparison.options import CONFIDENCE, CompareOptions
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.stats.estimators import Interval
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_facts import describe
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request
from runners.measuring.session import run_session
from runners.measuring.session_versions import MeasuredVersion
from suites.definition import Suite, load_suite
from suites.generators.load import Share
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.metrics import QPS
from suites.postgres.server import PostgresServer
from suites.sizing import max_transactions, sizes, this_machine
from suites.slices import mirrored
from suites.turns.run import run_slices

BASE = parse_version("postgres@18.6")
TWIN = replace(BASE, variant="twin")
SLOWED = replace(BASE, variant="slowed")
PATCH = Path(__file__).with_name("planted.patch")
PROFILE = "smoke"

UPDATES = ("update-index", "update-nonindex", "update-one", "update-zipf")
"""Steps in which every query is one update, so that the patch slows all of them by about the same time."""

UNTOUCHED = ("delete", "insert")
ROUNDS = 6
"""Rounds of identical builds, for the widths of intervals and as a recording of noise."""

MIN_NARROWING = 3.0
HALF_AN_HOUR = 30 * 60.0


@dataclass(frozen=True)
class Bench:
    """The folders, progress and suite of the benchmark."""

    home: Home
    progress: Progress
    suite: Suite
    folder: Path
    """The folder of the second compile and of the history."""

    def session(self, steps: Sequence[str], contender: Version, build: Build, **options: object) -> str:
        """Run a session of BASE against a contender and return its uid."""
        request = Request(
            versions=(BASE, contender),
            suite=self.suite,
            profile_name=PROFILE,
            steps=self.suite.select(tuple(steps)),
            **{"repetitions": self.suite.profile(PROFILE).repetitions, **options},  # type: ignore[arg-type]
        )
        with open_store(self.folder / "history.db") as store:
            outcome = run_session(request, self.home, store, self.progress, {contender: build})
        return outcome.uid

    def compared(self, uid: str, contender: Version) -> ContenderComparison:
        """Return the comparison of a session."""
        with open_store(self.folder / "history.db") as store:
            return compare(store, BASE, (contender,), CompareOptions(session=uid)).contenders[0]

    def log_ratios(self, compared: ContenderComparison, contender: Version) -> Mapping[str, list[float]]:
        """Return step -> log ratios of contender and base in the rounds that have both."""
        with open_store(self.folder / "history.db") as store:
            runs = store.runs(compared.session.id)
        by_step: dict[str, list[float]] = {}
        for step in compared.steps:
            by_round: dict[int, dict[str, float]] = {}
            for run in runs:
                if run.step == step.step and QPS in run.values:
                    by_round.setdefault(run.repetition, {})[run.version] = run.values[QPS]
            pairs = [pair for pair in by_round.values() if len(pair) == 2]
            by_step[step.step] = [math.log(pair[str(contender)] / pair[str(BASE)]) for pair in pairs]
        return by_step


def equal_figures(bench: Bench, record: Path | None, *, widths: bool) -> list[Figure]:
    """Return the regressions of identical builds, and widths if requested; write the rounds to `record`."""
    twin = _compiled_elsewhere(bench)
    steps = [step.name for step in bench.suite.steps]
    compared = bench.compared(bench.session(steps, TWIN, twin, repetitions=ROUNDS), TWIN)
    flagged = _names(compared, Verdict.REGRESSION)
    figures = [
        Figure(
            "identical builds: regressions of ten steps", len(flagged), "", at_most=0, note=", ".join(flagged)
        )
    ]
    if record is not None:
        _write_recording(bench, compared, record)
    if not widths:
        return figures
    confidence = simultaneous_confidence(CONFIDENCE / 100, len(steps))
    logs = bench.log_ratios(compared, TWIN)
    ours = {
        step: ratio_interval([1.0] * len(ratios), [math.exp(ratio) for ratio in ratios], confidence)
        for step, ratios in logs.items()
    }
    return figures + _widths(ours, _one_after_the_other(bench, twin))


def planted_figures(bench: Bench) -> list[Figure]:
    """Return how often a known slow-down is flagged in the steps that the patch affects, and in others."""
    slowed = provide(BuildRequest(BASE, patches=(PATCH,)), bench.home, bench.progress)
    steps = (*UPDATES, *UNTOUCHED)
    figures = []
    for percent, options in ((10, {}), (5, {"until_decided": True, "budget_seconds": HALF_AN_HOUR})):
        burn = burn_nanoseconds(bench, percent / 100)
        with burning(burn):
            uid = bench.session(steps, SLOWED, slowed, **options)
        compared = bench.compared(uid, SLOWED)
        regressed = _names(compared, Verdict.REGRESSION)
        seen = [step for step in regressed if step in UPDATES]
        wrong = [step for step in regressed if step in UNTOUCHED]
        ratios = ", ".join(
            f"{step.step} {step.judged.interval.estimate:.3f}"
            for step in compared.steps
            if step.judged.interval is not None
        )
        what = f"{percent} % slower"
        share = 100 * len(seen) / len(UPDATES)
        figures += [
            Figure(f"{what}: update steps flagged", share, "%", at_least=100, note=ratios),
            Figure(f"{what}: other steps flagged", len(wrong), "", at_most=0, note=f"{burn} ns an update"),
        ]
    return figures


def _names(compared: ContenderComparison, verdict: Verdict) -> list[str]:
    return [step.step for step in compared.steps if step.judged.verdict is verdict]


def _compiled_elsewhere(bench: Bench) -> Build:
    """Compile the same source with the same recipe and compiler in another folder."""
    elsewhere = Home(bench.folder / "elsewhere")
    elsewhere.path.mkdir()
    for real in (bench.home.sources, bench.home.ccache):
        (elsewhere.path / real.name).symlink_to(real)
    return provide(BuildRequest(BASE), elsewhere, bench.progress)


def burn_nanoseconds(bench: Bench, share: float) -> int:
    """Return the busy-waiting per update, in ns, by which the slowest of UPDATES loses `share` of its QPS."""
    uid = bench.session(UPDATES, TWIN, provide(BuildRequest(BASE), bench.home, bench.progress), repetitions=1)
    compared = bench.compared(uid, TWIN)
    slowest = min(step.judged.base or math.inf for step in compared.steps)
    return round(1e9 / slowest * share / (1 - share))


@contextmanager
def burning(nanoseconds: int) -> Iterator[None]:
    """Make patched servers that are started within the block busy-wait for `nanoseconds` in every update."""
    os.environ["TIDEMARK_BURN_NS"] = str(nanoseconds)
    try:
        yield
    finally:
        del os.environ["TIDEMARK_BURN_NS"]


def _write_recording(bench: Bench, compared: ContenderComparison, path: Path) -> None:
    """Write the log ratios of all rounds of identical builds to a JSON file, for the simulation."""
    machine = describe(bench.home.path)
    logs = bench.log_ratios(compared, TWIN)
    content = {
        "machine": f"{machine.cpu_model}, {machine.cores} cores",
        "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "steps": {step: [round(ratio, 5) for ratio in ratios] for step, ratios in logs.items()},
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _one_after_the_other(bench: Bench, twin: Build) -> Mapping[str, Interval | None]:
    """Return intervals from the same work without interleaving: whole suites, one version after the other."""
    profile = bench.suite.profile(PROFILE)
    room = sizes(bench.suite, profile, this_machine())
    generator = Sysbench(bench.suite, room)
    base = provide(BuildRequest(BASE), bench.home, bench.progress)
    found: dict[str, tuple[list[float], list[float]]] = {s.name: ([], []) for s in bench.suite.steps}
    with measuring_alone(bench.home), data_folder(bench.home, f"b{os.getpid()}") as folder:
        versions = [
            MeasuredVersion(build, PostgresServer(build, room, Durability.RELAXED, folder / str(place)))
            for place, build in enumerate((base, twin))
        ]
        try:
            for version in versions:
                version.load(generator)
                version.server.keep()
            for number in range(ROUNDS):
                bench.progress.note(f"one version after the other, pass {number + 1} of {ROUNDS}")
                for place in (0, 1) if number % 2 else (1, 0):
                    server = versions[place].server
                    for step in bench.suite.steps:
                        schedule = mirrored((0,), profile.seconds, profile.seconds / 2, number)
                        share = Share(schedule, number + 1, max_transactions(step, room))
                        server.restore()
                        server.start()
                        (measured,) = run_slices([server], generator, step, share, 0)
                        server.abandon()
                        found[step.name][place].append(measured.values[QPS])
        finally:
            for version in versions:
                version.server.destroy()
    confidence = simultaneous_confidence(CONFIDENCE / 100, len(found))
    return {step: ratio_interval(old, new, confidence) for step, (old, new) in found.items()}


def _widths(ours: Mapping[str, Interval | None], theirs: Mapping[str, Interval | None]) -> list[Figure]:
    """Return the ratio of interval widths on the log scale, per step and as geometric mean over the steps.

    Both are plain t intervals of the same number of pairs and the same confidence, so that the ratio does not
    include the effect of pooling the variance over steps.
    """
    figures, logs = [], []
    for step, mine in ours.items():
        other = theirs[step]
        if mine is None or other is None:
            continue
        narrow, wide = math.log(mine.high / mine.low), math.log(other.high / other.low)
        logs.append(math.log(wide / narrow))
        note = f"interleaved +-{100 * (narrow / 2):.1f} %, one after the other +-{100 * (wide / 2):.1f} %"
        figures.append(Figure(f"width, {step}", wide / narrow, "times narrower", note=note))
    mean = math.exp(math.fsum(logs) / len(logs))
    return [*figures, Figure("width, mean of the steps", mean, "times narrower", at_least=MIN_NARROWING)]


def bench_of(home: Home, progress: Progress, folder: Path) -> Bench:
    """Return a benchmark with its second compile and its history in `folder`."""
    return Bench(home, progress, load_suite("write-heavy"), folder)
