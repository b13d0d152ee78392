"""What it costs to look at servers while a load runs: throughput in pairs, and the CPU time of a question."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psutil

from benchmarks.output.figures import Figure
from benchmarks.output.intervals import ratio_interval
from build.progress import Progress
from suites.accounting.activity import ACTIVITIES_PER_SECOND
from suites.accounting.pressure import pressure_reader
from suites.accounting.throttling import quota_reader
from suites.generators.load import Generator, Share
from suites.keys.step import Step
from suites.metrics import QPS
from suites.postgres.server import PostgresServer
from suites.profiling.perf import find_perf
from suites.profiling.profiler import Profiling
from suites.server import MAX_STATES_PER_SECOND
from suites.slices import Schedule
from suites.turns.run import run_slices

PAIRS = 40
SLICE_SECONDS = 3.0
CONFIDENCE = 0.95
MIN_RATIO = 0.99
"""Of throughput. Slices of seconds vary by some percent, so that the CPU time of a sample says more."""

MAX_PERCENT = 0.3
"""The most of the CPU time of a machine that samples may take, and so of its throughput when it is busy."""

MAX_ACTIVITIES_PERCENT = 0.1
"""The same of the questions about activities."""

SAMPLED_SECONDS = 20.0

PROFILED_PAIRS = 20
MIN_PROFILED_RATIO = 0.9
"""Of throughput while perf samples. Sampled slices count with `--perf-during` alone: this is no bias."""


def sample_figures(
    server: PostgresServer, generator: Generator, step: Step, shown: Progress
) -> Iterator[Figure]:
    """Yield the ratio of throughput with samples of waits to that without, and the CPU time of questions."""

    def measured(sampled: bool) -> float:
        return _measured(server, generator, step, SLICE_SECONDS, waits=sampled)

    yield _in_pairs("samples of waits", measured, PAIRS, MIN_RATIO, shown)
    for what, opened, per_second, most in (
        ("samples of waits", _states, MAX_STATES_PER_SECOND, MAX_PERCENT),
        ("questions about activities", _activities, ACTIVITIES_PER_SECOND, MAX_ACTIVITIES_PERCENT),
    ):
        own, servers = _cost_of_question(server, generator, step, opened, per_second)
        note = f"{own:.0f} µs of Tidemark, {servers:.0f} µs of the server, {per_second:g} a second"
        share = (own + servers) * per_second / 1e4 / (psutil.cpu_count() or 1)
        yield Figure(f"CPU of {what}", share, "% of the machine", at_most=most, note=note)


def profile_figures(
    server: PostgresServer, generator: Generator, step: Step, shown: Progress
) -> Iterator[Figure]:
    """Yield the ratio of throughput with perf's samples to that without."""
    profiling = Profiling(find_perf(), SLICE_SECONDS, SLICE_SECONDS, during=True)

    def measured(sampled: bool) -> float:
        return _measured(server, generator, step, SLICE_SECONDS, profiling=profiling if sampled else None)

    yield _in_pairs("samples of perf", measured, PROFILED_PAIRS, MIN_PROFILED_RATIO, shown)


def _in_pairs(
    what: str, measured: Callable[[bool], float], pairs: int, least: float, shown: Progress
) -> Figure:
    """Return the ratio of throughput with samples to that without, in slices that take turns."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        # A B B A: the order is reversed in every other pair.
        for sampled in (True, False) if pair % 2 else (False, True):
            rates[sampled].append(measured(sampled))
        if pair % 10 == 9:
            shown.note(f"{pair + 1} of {pairs} pairs with and without {what}")
    interval = ratio_interval(rates[False], rates[True], CONFIDENCE)
    assert interval is not None  # there are enough pairs, and every slice has queries
    note = f"{pairs} pairs, {100 * CONFIDENCE:.0f} % interval {interval.low:.4f} to {interval.high:.4f}"
    return Figure(f"QPS with {what} / without", interval.estimate, "", at_least=least, note=note)


@contextmanager
def _states(server: PostgresServer) -> Iterator[Callable[[], object]]:
    with server.open_client_states() as states:
        yield states.read


@contextmanager
def _activities(server: PostgresServer) -> Iterator[Callable[[], object]]:
    """Yield the whole question of a round, with what is read of the machine."""
    with server.open_activities() as read:
        throttled, under_pressure = quota_reader(), pressure_reader()
        yield lambda: (read(), throttled(), under_pressure())


def _measured(
    server: PostgresServer,
    generator: Generator,
    step: Step,
    seconds: float,
    *,
    waits: bool = False,
    profiling: Profiling | None = None,
) -> float:
    share = Share(Schedule(seconds, (0,), gap_share=0.0), round=0)
    (measured,) = run_slices([server], generator, step, share, 0, waits=waits, profiling=profiling)
    return measured.values[QPS]


def _cost_of_question(
    server: PostgresServer,
    generator: Generator,
    step: Step,
    opened: Callable[[PostgresServer], AbstractContextManager[Callable[[], object]]],
    per_second: float,
) -> tuple[float, float]:
    """Return the CPU time of a question while clients work, in µs: of this process, and of the server."""
    known = {child.pid for child in psutil.Process(server.pid).children()}
    taken: list[tuple[float, float]] = []
    ended = threading.Event()
    with ExitStack() as until:
        read = until.enter_context(opened(server))
        read()
        (backend,) = {child.pid for child in psutil.Process(server.pid).children()} - known

        def sample() -> None:
            while not ended.wait(1 / per_second):
                own, servers = time.thread_time(), _scheduled(backend)
                read()
                taken.append((time.thread_time() - own, _scheduled(backend) - servers))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            _measured(server, generator, step, SAMPLED_SECONDS)
        finally:
            ended.set()
            thread.join()
    own, servers = map(sum, zip(*taken, strict=True))
    return own / len(taken) * 1e6, servers / len(taken) * 1e6


def _scheduled(pid: int) -> float:
    """Return the seconds that a process was on a core, which the kernel counts in nanoseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
