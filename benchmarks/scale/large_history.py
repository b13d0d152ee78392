"""Size and speed of a history of ten years of nights."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.output.figures import Figure
from benchmarks.scale.years import METRICS, HistoryScale, write
from build.home import ROOT
from history.changes.detector import judge
from history.open import open_store
from history.series.series import SeriesKey, read_series
from history.store.database import Database
from history.store.records import Environment
from suites.metrics import QPS

SCALE = HistoryScale(nights=3650, boxes=5, branches=4, steps=60, nights_with_rounds=30)
SEED = 20261121
REPEATS = 7


def history_figures(folder: Path, scale: HistoryScale = SCALE) -> list[Figure]:
    """Write a history of this scale; return its size, and the times of queries of it, with their targets."""
    path = folder / "history.db"
    print(f"writing {scale.values:,} values, seed {SEED}", file=sys.stderr)
    write(path, scale, SEED)
    size = path.stat().st_size / scale.values
    with open_store(path) as store:
        taken_once = _taken(lambda: _one_series(store.database, scale))
        started = time.perf_counter()
        outcome = judge(store.database)
        judged = time.perf_counter() - started
        # Measured again, because another load on the host may slow down a core for a second or so.
        taken_once += _taken(lambda: _one_series(store.database, scale))
    used: list[float] = []
    compared = _taken(lambda: used.append(_compare_program(path, scale)))
    contenders = scale.boxes * (scale.branches - 1) * scale.steps * len(METRICS)
    return [
        Figure("values", scale.values, ""),
        Figure("size of a value, with all else in the file", size, "bytes", at_most=40),
        Figure(
            "compare of two versions, as a program",
            min(compared),
            "s",
            at_most=0.5,
            note=f"median of {REPEATS} {median(compared):.2f} s; least CPU time {min(used):.2f} s",
        ),
        Figure(
            "one series, beside its base",
            1000 * min(taken_once),
            "ms",
            at_most=20,
            note=f"median of {len(taken_once)} {1000 * median(taken_once):.1f} ms",
        ),
        Figure(
            "nightly judge",
            judged,
            "s",
            at_most=60,
            note=f"{outcome.series:,} of {contenders:,} series, {len(outcome.open)} changes",
        ),
    ]


def _taken(act: Callable[[], object]) -> list[float]:
    """Return the seconds of several runs. The shortest is the least disturbed by other loads on the host."""
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - started)
    return seconds


def _one_series(database: Database, scale: HistoryScale) -> None:
    base, *_, branch = (version.partition(".")[0] for version in scale.versions())
    place = Environment("box0", "write-heavy", "short relaxed")
    with database.reading() as connection:
        found = read_series(connection, SeriesKey(place, branch, "step-00", QPS), base)
    assert len(found) == scale.nights


def _compare_program(history: Path, scale: HistoryScale) -> float:
    """Run compare.py for two versions; return the CPU time of all its processes in seconds."""
    base, *_, contender = scale.versions()
    command = [str(ROOT / "compare.py"), base, contender, "--history", str(history)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "geomean" in done.stdout, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
