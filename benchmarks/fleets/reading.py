"""How fast a large history on a server is judged and compared."""

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import psycopg

from benchmarks.fleets.history_server import HistoryServer
from benchmarks.fleets.stand import new_server
from benchmarks.history import compare_program, taken
from benchmarks.output.figures import Figure
from benchmarks.simulation.years import METRICS, HistoryScale, write
from history.changes.detector import judge
from history.open import open_store
from suites.postgres.configuration import NAME, PORT

NIGHTS = 1000
SEED = 20261124

TABLES = (
    "machines",
    "builds",
    "series",
    "sessions",
    "nights",
    "points",
    "runs",
    "measurements",
)
"""What `benchmarks.simulation.years.write` fills, in an order in which they can be copied."""

JUDGE_SECONDS, COMPARE_SECONDS = 60.0, 0.5


def scale_of(nights: int) -> HistoryScale:
    """Return the size of the history: 10,000 series of judged metrics, and those of the base and others."""
    return HistoryScale(nights=nights, boxes=5, branches=6, steps=67, nights_with_rounds=min(nights, 10))


def reading_figures(nights: int, *, judged: bool, compared: bool) -> Iterator[Figure]:
    """Yield the times of the judge and of `compare`, as far as they are asked for."""
    scale = scale_of(nights)
    with new_server() as (server, folder):
        print(f"writing {scale.values:,} values, seed {SEED}", file=sys.stderr)
        fill(server, scale, folder)
        if judged:
            with open_store(server.url) as store:
                began = time.perf_counter()
                outcome = judge(store.database)
                seconds = time.perf_counter() - began
            asked = scale.boxes * (scale.branches - 1) * scale.steps * len(METRICS)
            yield Figure(
                "nightly judge, on a server",
                seconds,
                "s",
                at_most=JUDGE_SECONDS,
                note=f"{outcome.series:,} of {asked:,} series, {nights} nights, {len(outcome.open)} changes",
            )
        if compared:
            used: list[float] = []
            times = taken(lambda: used.append(compare_program(server.url, scale)))
            yield Figure(
                "compare of two versions, on a server, as a program",
                min(times),
                "s",
                at_most=COMPARE_SECONDS,
                note=f"median {median(times):.2f} s; least CPU time {min(used):.2f} s",
            )


def fill(server: HistoryServer, scale: HistoryScale, folder: Path) -> None:
    """Copy a made-up history of this scale into an empty one on a server, as its owner can."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "history.db"
        write(path, scale, SEED)
        with (
            closing(sqlite3.connect(path)) as source,
            psycopg.connect(host=str(server.server.folder), port=PORT, user=NAME, dbname=NAME) as target,
        ):
            for table in TABLES:
                rows = source.execute(f"SELECT * FROM {table}")
                columns = ", ".join(column[0] for column in rows.description)
                with target.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
    server.execute("ANALYZE")
