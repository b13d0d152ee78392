"""What a declared disk does to the noise of a block and to the ratio of two versions.

Three sessions of the same steps: without a declared disk, with one, and with one while a process keeps a core
busy that the session is not bound to, and writes to the disk.
"""

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.io.recorded_blocks import finished_sessions, recorded_steps
from benchmarks.output.figures import Figure
from benchmarks.surroundings.recorded_sessions import record_sessions
from build.errors import TidemarkError
from build.home import Home
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_store
from history.stats.estimators import mean, variance
from history.store.reader import Reader
from history.store.writer import Store
from runners.console import Lines
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome, run_session
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


@dataclass(frozen=True)
class Conditions:
    """What a session is measured under."""

    disk: DiskSpeed | None
    is_busy: bool

    def __str__(self) -> str:
        return f"{self.disk or 'the whole disk'}, {'busy' if self.is_busy else 'quiet'}"


QUIET, BUSY, WHOLE_DISK = Conditions(DISK, False), Conditions(DISK, True), Conditions(None, False)
CONDITIONS = (QUIET, WHOLE_DISK, BUSY)


@dataclass(frozen=True)
class Steadiness:
    """What the blocks of one step of one session show."""

    ratio: float
    """Of the contender's throughput to the base's, as a comparison has it."""
    base: float
    """The base's mean throughput."""
    base_noise: float
    """The standard deviation of the logarithm of the base's throughput, from block to block."""
    pair_noise: float
    """That of the ratio of both versions in a block."""


def throttled_figures(home: Home) -> Iterator[Figure]:
    """Record the sessions that are missing, then yield the noise of their blocks, and their ratios apart.

    Raises TidemarkError where all cores are the benchmark's own.
    """
    others = other_cores()
    folder = home.path / "io" / "throttled"
    folder.mkdir(parents=True, exist_ok=True)
    shown = Lines()
    with open_store(folder / "history.db") as store:
        failed = record_sessions(
            "throttled",
            len(CONDITIONS),
            lambda: len(finished_sessions(store)),
            lambda: _session(CONDITIONS[len(finished_sessions(store))], home, store, others, shown),
            shown,
        )
        if failed:
            yield from failed
            return
        found = {
            conditions: steadiness(store, *session)
            for conditions, session in zip(CONDITIONS, finished_sessions(store), strict=True)
        }
    yield from steadiness_figures(found)


def _session(
    conditions: Conditions, home: Home, store: Store, others: set[int], shown: Lines
) -> SessionOutcome:
    suite = load_suite(SUITE).with_declared(None, conditions.disk)
    request = Request(
        (BASE, CONTENDER),
        suite,
        PROFILE,
        suite.select(STEPS),
        repetitions=BLOCKS,
        blocks=BLOCKS,
        resume=True,
        variants={EVERY: Variant(settings=SETTINGS)},
    )
    with busy(others, home.path / "io" / "throttled" / "written", is_on=conditions.is_busy):
        return run_session(request, home, store, shown)


def steadiness(store: Reader, session: int, uid: str) -> dict[str, Steadiness]:
    """Return what the blocks of a session show, by step."""
    (contender,) = compare(store, BASE, (CONTENDER,), CompareOptions(session=uid)).contenders
    ratios = {step.step: step.judged.value for step in contender.steps}
    found: dict[str, Steadiness] = {}
    for step in recorded_steps(store, session, (BASE, CONTENDER)):
        logarithms = [[math.log(rate) for rate in block.rates] for block in step.blocks]
        found[step.name] = Steadiness(
            ratio=ratios[step.name] or 0.0,
            base=mean([block.rates[0] for block in step.blocks]),
            base_noise=math.sqrt(variance([base for base, _ in logarithms])),
            pair_noise=math.sqrt(variance([changed - base for base, changed in logarithms])),
        )
    return found


def steadiness_figures(found: Mapping[Conditions, Mapping[str, Steadiness]]) -> Iterator[Figure]:
    """Yield the noise of each session's blocks, and how far apart the ratios with a declared disk are."""
    for step in STEPS:
        for conditions, steps in found.items():
            shown = steps[step]
            note = (
                f"{shown.base:.1f} queries/s of {BASE}, noise {shown.base_noise:.3f}; ratio {shown.ratio:.3f}"
            )
            yield Figure(f"{step}, {conditions}: noise of a block's ratio", shown.pair_noise, "", note=note)
        quiet, loaded = found[QUIET][step].ratio, found[BUSY][step].ratio
        note = f"{quiet:.3f} on a quiet machine, {loaded:.3f} on a busy one"
        name = f"{step}, {DISK}: ratios apart"
        yield Figure(name, abs(loaded / quiet - 1), "", at_most=MAX_APART, note=note)


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
