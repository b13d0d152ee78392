"""Whether the ratio of two versions on a throttled disk depends on what else the machine does.

Two sessions of the same two versions: the machine is quiet in one of them, and in the other a process keeps a
core busy that the session is not bound to, and writes to the disk.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.output.figures import Figure
from build.errors import TidemarkError
from build.home import Home
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_store
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.session import run_session
from runners.measuring.variants import EVERY, Variant
from suites.control_groups.disk_speed import DiskSpeed
from suites.definition import load_suite

BASE, CONTENDER = parse_version("postgres@17.11"), parse_version("postgres@18.6")
SUITE, PROFILE, STEPS = "write-heavy", "io", ("update-index",)
BLOCKS = 15
DISK = DiskSpeed(iops=500)

SETTINGS = {"postgres.debug_io_direct": "data,wal"}
"""Postgres writes past the page cache, whose writes version 1 of control groups does not limit."""

MAX_APART = 0.02
"""How far the ratios of both sessions may be apart."""

_LOAD = """
import hashlib, os, sys
with open(sys.argv[1], "wb") as file:
    while True:
        for _ in range(50):
            hashlib.sha256(bytes(1 << 20)).digest()
        file.seek(0)
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
"""


def throttled_figures(home: Home) -> Iterator[Figure]:
    """Yield how far the ratios of both sessions are apart, by step.

    Raises TidemarkError where all cores are the benchmark's own.
    """
    others = other_cores()
    folder = home.path / "io" / "throttled"
    folder.mkdir(parents=True, exist_ok=True)
    suite, shown = load_suite(SUITE).with_declared(None, DISK), Lines()
    request = Request(
        (BASE, CONTENDER),
        suite,
        PROFILE,
        suite.select(STEPS),
        repetitions=BLOCKS,
        blocks=BLOCKS,
        variants={EVERY: Variant(settings=SETTINGS)},
    )
    ratios: list[dict[str, float]] = []
    with open_store(folder / "history.db") as store:
        for is_busy in (False, True):
            with busy(others, folder / "written", is_on=is_busy):
                outcome = run_session(request, home, store, shown)
            if not outcome.whole:
                note = "; ".join([*outcome.failures, *map(str, outcome.not_built.values())])
                yield Figure("throttled: failures", len(outcome.failures), "", at_most=0, note=note)
                return
            comparison = compare(store, BASE, (CONTENDER,), CompareOptions(session=outcome.uid))
            (contender,) = comparison.contenders
            ratios.append({step.step: step.judged.value or 0.0 for step in contender.steps})
    quiet, loaded = ratios
    for step in STEPS:
        apart = abs(loaded[step] / quiet[step] - 1)
        note = f"{quiet[step]:.3f} on a quiet machine, {loaded[step]:.3f} on a busy one, {DISK}"
        yield Figure(f"throttled: ratios of {step} apart", apart, "", at_most=MAX_APART, note=note)


def other_cores() -> set[int]:
    """Return the cores that this process, and so the session, does not run on. Raises TidemarkError."""
    found = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
    if not found:
        raise TidemarkError(
            "the benchmark runs on all cores, and none is left for the other load",
            where="bench io: throttled",
            hint="run it on some of them: taskset -c 0 ./tidemark bench io",
        )
    return found


@contextmanager
def busy(cores: set[int], file: Path, *, is_on: bool) -> Iterator[None]:
    """Keep a core busy, and write to the disk, while the context lasts; do nothing unless it `is_on`."""
    if not is_on:
        yield
        return
    command = [sys.executable, "-c", _LOAD, str(file)]
    with subprocess.Popen(command) as process:
        try:
            os.sched_setaffinity(process.pid, {min(cores)})
            yield
        finally:
            process.kill()
    file.unlink(missing_ok=True)
