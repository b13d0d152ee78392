"""The overhead of profiling, and its ability to find the function of a slow-down.

The overhead is the slow-down of sampled slices on one server, which alternate with slices without sampling.
For the second figure, a slow-down of 10 % is planted, and its rank in the table of functions is determined.
"""

import os
import tempfile
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.intervals import ratio_interval
from benchmarks.real_builds.real_verdicts import (
    BASE,
    PATCH,
    SLOWED,
    Bench,
    bench_of,
    burn_nanoseconds,
    burning,
)
from build.home import Home, locate
from build.make import provide
from build.progress import Progress
from history.comparison.profile_diff import differential
from history.open import open_store
from runners.console import Lines
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Sampled
from suites.definition import load_suite
from suites.generators.load import Share
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.metric import QPS
from suites.postgres.server import PostgresServer
from suites.profiling.perf import find_perf
from suites.profiling.profiler import Profiling
from suites.sizing import sizes, this_machine
from suites.slices import Schedule
from suites.turns.run import run_slices

STEP = "update-index"
PAIRS = 20
SLICE_SECONDS = 3.0
CONFIDENCE = 0.95
MIN_RATIO = 0.9
"""Target of QPS with sampling over QPS without. Sampled slices do not count, so that this is not a bias."""

PLANTED = "tidemark_burn"
SLOWER = 0.1


def main() -> int:
    """Measure both figures on new servers in a few minutes; return 0 if all targets are met, else 1."""
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    shown = Lines()
    figures = [_overhead(home, shown)]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.path) as folder:
        Path(folder).chmod(0o755)
        figures += _planted(bench_of(home, shown, Path(folder)))
    return report(figures)


def _overhead(home: Home, shown: Progress) -> Figure:
    profiling = Profiling(find_perf(), SLICE_SECONDS, SLICE_SECONDS, during=True)
    build = provide(BASE, home, shown)
    suite = load_suite("write-heavy")
    room = sizes(suite, suite.profile("smoke"), this_machine())
    step = suite.select((STEP,))[0]
    rates: dict[bool, list[float]] = {False: [], True: []}
    with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
        server = PostgresServer(build, room, Durability.RELAXED, folder / "1")
        generator = Sysbench(suite, room)
        try:
            server.create()
            server.start()
            generator.load(server.address)
            server.keep()
            for pair in range(PAIRS):
                # A B B A, always starting from the loaded data, so that slices are independent.
                for sampled in (True, False) if pair % 2 else (False, True):
                    share = Share(Schedule(SLICE_SECONDS / 2, (0, 0, 0), warming=1), pair + 1)
                    server.restore()
                    server.start()
                    (measured,) = run_slices(
                        [server],
                        generator,
                        step,
                        share,
                        0,
                        resets=False,
                        profiling=profiling if sampled else None,
                    )
                    rates[sampled].append(measured.values[QPS])
        finally:
            server.destroy()
    interval = ratio_interval(rates[False], rates[True], CONFIDENCE)
    assert interval is not None
    bounds = f"{100 * CONFIDENCE:.0f} % interval {interval.low:.3f} to {interval.high:.3f}"
    note = f"{PAIRS} pairs, {bounds}, by {profiling.perf.description}"
    return Figure("QPS sampled / not sampled", interval.estimate, "", at_least=MIN_RATIO, note=note)


def _planted(bench: Bench) -> list[Figure]:
    slowed = provide(BASE, bench.home, bench.progress, patches=(PATCH,))
    with burning(burn_nanoseconds(bench, SLOWER)):
        uid = bench.session([STEP], SLOWED, slowed, perf=Sampled.AFTER)
    with open_store(bench.folder / "history.db") as store:
        session = store.latest_session((BASE, SLOWED), uid=uid)
        assert session is not None
        both = differential(*(store.profiles(session.id, STEP, version) for version in (BASE, SLOWED)))
    names = [function.name for function in both.functions]
    place = names.index(PLANTED) + 1 if PLANTED in names else len(names) + 1
    first = both.functions[0]
    note = (
        f"first: {first.name} {first.own_change:+.2f} µs of {both.contender_total - both.base_total:+.2f} µs"
    )
    quality = both.contender.quality
    return [
        Figure("planted function's place in the table", place, "", at_most=1, note=note),
        Figure("shallow stacks", 100 * quality.shallow, "%", at_most=10, note=f"{quality.samples} samples"),
        Figure("frames without a name", 100 * quality.unknown, "%", at_most=5),
    ]
