"""Size and speed of a history of ten years of nights: `./tidemark bench history`."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.output.figures import Figure, report
from benchmarks.simulation.years import METRICS, HistoryScale, write
from build.home import ROOT, locate
from history.changes.detector import judge
from history.open import open_store
from history.series.series import SeriesKey, read_series
from history.store.database import Database
from history.store.records import Environment
from suites.metric import QPS

SCALE = HistoryScale(nights=3650, boxes=5, branches=4, steps=60, nights_with_rounds=30)
SEED = 20261121
REPEATS = 7


def main() -> int:
    """Write the history, measure queries of it, and return 0 if all targets are met, else 1."""
    home = locate()
    home.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.scratch) as folder:
        path = Path(folder) / "history.db"
        print(f"writing {SCALE.values:,} values, seed {SEED}", file=sys.stderr)
        write(path, SCALE, SEED)
        return report(figures(path, SCALE))


def figures(path: Path, scale: HistoryScale) -> list[Figure]:
    """Return all figures with their targets for the history at `path`, which has this scale."""
    size = path.stat().st_size / scale.values
    with open_store(path) as store:
        taken_once = taken(lambda: _one_series(store.database, scale))
        started = time.perf_counter()
        outcome = judge(store.database)
        judged = time.perf_counter() - started
        # Measured again, because another load on the host may slow down a core for a second or so.
        taken_once += taken(lambda: _one_series(store.database, scale))
    used: list[float] = []
    compared = taken(lambda: used.append(compare_program(path, scale)))
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


def taken(act: Callable[[], object]) -> list[float]:
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


def compare_program(history: Path | str, scale: HistoryScale) -> float:
    """Run compare.py for two versions; return the CPU time of all its processes in seconds."""
    base, *_, contender = scale.versions()
    command = [str(ROOT / "compare.py"), base, contender, "--history", str(history)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "geomean" in done.stdout, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
