"""Tidemark's own overhead in the steps that it measures.

A step run by Tidemark is compared with the same sysbench command run by hand, on one server, alternated
A B B A in slices of a few seconds so that drift of the machine cancels out. The CPU time of Tidemark's own
process is measured as well. Everything runs on one core: Tidemark's work there reduces the throughput of the
step, and the scheduler cannot affect it by placing client and server, which on a virtual machine can change
throughput by a factor of two.

`$TIDEMARK_BENCH_PARTS=waits` measures what the samples of waits cost, `profiles` what those of perf do;
`lengths` shows, without targets, how rounds vary by the length of slices, to choose it.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence

import psutil

from benchmarks.output.figures import Figure, report
from benchmarks.output.intervals import ratio_interval
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.samples import profile_figures, sample_figures
from benchmarks.real_builds.slice_lengths import length_figures
from build import environment
from build.home import locate
from build.progress import Progress
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from history.stats.estimators import Interval
from runners.console import Bars, Lines
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.definition import load_suite
from suites.generators.load import Share, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.generators.transcript import SysbenchTranscript
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.metrics import QPS
from suites.postgres.server import PostgresServer
from suites.sizing import sizes, this_machine
from suites.slices import Schedule
from suites.turns.run import run_slices

VERSION = parse_version("postgres@18.6")
STEP = "update-one"
"""The step whose runs vary least: it updates one row, so that hardly any page is written."""
SLICE_SECONDS = 3
MIN_PAIRS = 10
"""Slices vary by several percent on a shared machine, so that usually more pairs are needed."""
MAX_PAIRS = 60
CONFIDENCE = 0.99
"""Confidence of the interval. The comparison ends when the whole interval is on one side of the target."""

MIN_RATIO = 0.99
MAX_CPU_PERCENT = 1.0


def main() -> int:
    """Print the figures of the chosen parts; return 0 if all targets are met, else 1."""
    words = chosen_parts("overhead", ("sysbench",), ("waits", "profiles", "lengths"))
    of_lengths = list(length_figures()) if "lengths" in words else []
    measured = [part for part in ("sysbench", "waits", "profiles") if part in words]
    return report([*of_lengths, *(_measured_figures(measured) if measured else [])])


def _measured_figures(parts: Sequence[str]) -> list[Figure]:
    """Measure the figures of some parts on a new server."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    home = locate()
    with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
        notes = Lines()  # no progress bars here, because those are part of the measurement
        build = provide(BuildRequest(VERSION), home, notes)
        suite = load_suite("write-heavy")
        room = sizes(suite, suite.profile("smoke"), this_machine())
        server = PostgresServer(build, room, Durability.RELAXED, folder / "1")
        generator = Sysbench(suite, room)
        try:
            server.create()
            server.start()
            generator.load(server.address)
            server.reset()
            step, figures = suite.select((STEP,))[0], list[Figure]()
            if "sysbench" in parts:
                figures += _alternate(server, generator, step, notes)
            if "waits" in parts:
                figures += sample_figures(server, generator, step, notes)
            if "profiles" in parts:
                figures += profile_figures(server, generator, step, notes)
            return figures
        finally:
            server.destroy()


def _alternate(
    server: PostgresServer,
    generator: Sysbench,
    step: Step,
    shown: Progress,
) -> list[Figure]:
    """Return the throughput of a step through Tidemark over that by hand, and Tidemark's own CPU time."""
    interval: Interval | None = None
    by_hand: list[float] = []
    through: list[float] = []
    shares: list[float] = []
    for pair in range(MAX_PAIRS):
        # A B B A: the order is reversed in every other pair.
        for ours in (True, False) if pair % 2 else (False, True):
            if ours:
                qps, share = _through_tidemark(server, generator, step)
                through.append(qps)
                shares.append(share)
            else:
                by_hand.append(_by_hand(server, generator, step))
        if len(through) >= MIN_PAIRS:
            interval = ratio_interval(by_hand, through, CONFIDENCE)
            assert interval is not None  # there are enough pairs, and every slice has queries
            shown.note(f"{len(through)} pairs: {interval.low:.3f} to {interval.high:.3f}")
            if interval.low > MIN_RATIO or interval.high < MIN_RATIO:
                break
    assert interval is not None
    note = (
        f"{len(through)} pairs, {100 * CONFIDENCE:.0f} % interval {interval.low:.4f} to {interval.high:.4f}"
    )
    return [
        Figure("QPS through Tidemark / by hand", interval.estimate, "", at_least=MIN_RATIO, note=note),
        Figure("Tidemark's own CPU", 100 * sum(shares) / len(shares), "% of a core", at_most=MAX_CPU_PERCENT),
    ]


def _through_tidemark(server: PostgresServer, generator: Sysbench, step: Step) -> tuple[float, float]:
    """Return QPS, and Tidemark's own CPU time as a share of the step, including its progress bar."""
    # The slice of one server in a session, with the same ids as the command by hand.
    slice_ = Share(Schedule(SLICE_SECONDS, (0,), gap_share=0.0), round=0)
    with Bars() as bars, bars.task("measuring", 1):
        own = psutil.Process().cpu_times()
        started = time.monotonic()
        (measured,) = run_slices([server], generator, step, slice_, 0)
        elapsed = time.monotonic() - started
        now = psutil.Process().cpu_times()
    return measured.values[QPS], (now.user + now.system - own.user - own.system) / elapsed


def _by_hand(server: PostgresServer, generator: Sysbench, step: Step) -> float:
    """Return the QPS of the same command without Tidemark, with its output in a file."""
    command = [*generator.arguments(server.address, step, WorkLimit(SLICE_SECONDS, None)), "run"]
    with tempfile.TemporaryFile() as output:
        variables = environment.measured(generator.environment)
        subprocess.run(command, stdout=output, env=variables, check=True)
        output.seek(0)
        transcript = SysbenchTranscript()
        for line in output.read().decode().splitlines():
            transcript.read(line)
    server.reset()
    return transcript.summary["queries"] / transcript.summary["total time"]
