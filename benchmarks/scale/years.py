"""A history of many nights, written directly to a SQLite file.

Nights are written in chronological order, with all series of a box at a time, so that size and fragmentation
of the file are realistic. Only the last nights have rounds; those of earlier nights are pruned.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from history.open import open_store
from history.timestamps import to_text
from suites.metrics import QPS

FIRST_NIGHT = datetime(2016, 1, 1, 2, 0, tzinfo=UTC)

METRICS = (
    QPS,
    "server_cpu_us_per_op",
    "server_cs_per_op",
    "server_written_kb_per_op",
    "wal_bytes_per_op",
    "latency_p99_ms",
    "reset_seconds",
    "table_bytes",
)

NOISE = 0.02
"""Standard deviation of a value's logarithm from night to night."""

NEVER_CHECKPOINTED_KB = 2_000_000


@dataclass(frozen=True)
class HistoryScale:
    """The size of a history."""

    nights: int
    boxes: int
    branches: int
    steps: int
    nights_with_rounds: int
    rounds: int = 3

    @property
    def values(self) -> int:
        """Number of values of all series in all nights."""
        return self.nights * self.boxes * self.branches * self.steps * len(METRICS)

    def versions(self) -> list[str]:
        """Return one version per branch, the base first."""
        return [f"postgres@{13 + number}.1" for number in range(self.branches)]


def write(path: Path, scale: HistoryScale, seed: int) -> None:
    """Create a history of this scale at `path`, which must not exist yet."""
    open_store(path).close()
    with sqlite3.connect(path) as connection:
        for pragma in ("synchronous = OFF", f"cache_size = -{NEVER_CHECKPOINTED_KB}", "journal_mode = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        _frame(connection, scale)
        random = np.random.default_rng(seed)
        levels = _levels(scale, random)
        for night in range(scale.nights):
            for box in range(scale.boxes):
                _night(connection, scale, night, box, levels, random)
        connection.execute("PRAGMA journal_mode = WAL")


def add_night(path: Path, scale: HistoryScale, seed: int) -> None:
    """Add one more night, with rounds, to a history of this scale that `write` has written with this seed."""
    with sqlite3.connect(path) as connection:
        random = np.random.default_rng(seed)
        levels = _levels(scale, random)
        for box in range(scale.boxes):
            _night(connection, scale, scale.nights, box, levels, random)


def _levels(scale: HistoryScale, random: np.random.Generator) -> NDArray[np.float64]:
    return random.uniform(10, 10_000, (scale.branches, scale.steps, len(METRICS)))


def _frame(connection: sqlite3.Connection, scale: HistoryScale) -> None:
    connection.executemany(
        "INSERT INTO machines VALUES (?, ?, ?, 'EPYC 9454P', 48, 137438953472, '6.8', 'Debian 12', '{}')",
        [(box + 1, f"machine-{box}", f"box{box}") for box in range(scale.boxes)],
    )
    connection.executemany(
        "INSERT INTO builds VALUES (?, ?, 'postgres', ?, 'cache', 'sha256:0', 'gcc 13', '{}')",
        [(number + 1, f"build-{version}", version) for number, version in enumerate(scale.versions())],
    )
    connection.executemany(
        "INSERT INTO series VALUES (?, ?, 'write-heavy', 'short relaxed', ?, ?, ?, ?)",
        [
            (number + 1, f"box{box}", branch, f"step-{step:02}", metric, step + 1)
            for number, (box, branch, step, metric) in enumerate(_series(scale))
        ],
    )


def _series(scale: HistoryScale) -> Iterator[tuple[int, str, int, str]]:
    for box in range(scale.boxes):
        for version in scale.versions():
            for step in range(scale.steps):
                for metric in METRICS:
                    yield box, _branch(version), step, metric


def _branch(version: str) -> str:
    return version.partition(".")[0]


def _night(
    connection: sqlite3.Connection,
    scale: HistoryScale,
    night: int,
    box: int,
    levels: NDArray[np.float64],
    random: np.random.Generator,
) -> None:
    session = night * scale.boxes + box + 1
    started = to_text(FIRST_NIGHT + timedelta(days=night, minutes=box))
    options = json.dumps({"mode": "rounds", "versions": scale.versions(), "settings": {}})
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, ?, 'write-heavy', 'short', 'ab', 1, 'relaxed', ?, ?, ?,"
        " 'finished', './tidemark nightly', '{\"generator\": \"sysbench 1.0.20\"}', ?, 1, 1, 'boot')",
        (session, f"s{session:06}", box + 1, scale.rounds, started, started, options),
    )
    connection.executemany(
        "INSERT INTO nights VALUES (?, ?, ?, ?, ?, ?, 'write-heavy', 'short relaxed', ?)",
        [
            (session, _branch(version), version, number + 1, int(number == 0), f"box{box}", started)
            for number, version in enumerate(scale.versions())
        ],
    )
    values = levels * np.exp(NOISE * random.standard_normal(levels.shape))
    first = box * values.size + 1
    connection.executemany(
        "INSERT INTO points VALUES (?, ?, ?)",
        zip(range(first, first + values.size), [session] * values.size, values.ravel().tolist(), strict=True),
    )
    if night >= scale.nights - scale.nights_with_rounds:
        _rounds(connection, scale, session, started, values, random)


def _rounds(
    connection: sqlite3.Connection,
    scale: HistoryScale,
    session: int,
    started: str,
    values: NDArray[np.float64],
    random: np.random.Generator,
) -> None:
    (last,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM runs").fetchone()
    runs: list[tuple[object, ...]] = []
    measurements: list[tuple[int, str, float]] = []
    for number, version in enumerate(scale.versions()):
        for step in range(scale.steps):
            for repetition in range(1, scale.rounds + 1):
                last += 1
                named = (f"step-{step:02}", step + 1, repetition, last)
                runs.append((last, session, number + 1, version, *named, started, started))
                noisy = values[number, step] * np.exp(NOISE * random.standard_normal(len(METRICS)))
                measurements += zip([last] * len(METRICS), METRICS, noisy.tolist(), strict=True)
    connection.executemany(
        "INSERT INTO runs VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?, 'finished', NULL, '[]', ?, ?)", runs
    )
    connection.executemany("INSERT INTO measurements VALUES (?, ?, ?)", measurements)
