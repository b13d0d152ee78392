"""A small team whose boxes measure a base and two branches every night, and its history as it grows.

BOXES boxes measure STEPS steps each: 40 series of queries per second. What a machine did in a night is in the
values of all versions, and cancels out in the ratios, whose noise is SIGMA.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.detection_series import SIGMA
from history.changes.detector import DetectionReport, judge
from history.open import open_store
from history.timestamps import to_text

Array = NDArray[np.float64]

FIRST_NIGHT = datetime(2024, 1, 1, 2, 0, tzinfo=UTC)
VERSIONS = ("postgres@16.1", "postgres@17.1", "postgres@18.1")
"""The base first."""

BOXES, STEPS = 2, 10
MACHINE_NOISE = 0.01
"""Standard deviation of what a night does to everything on a box."""

EARLIEST, LATEST = 100, 160
"""The cause comes in one of these nights."""

NIGHTS_AFTER = 100
LOOKS = (20, NIGHTS_AFTER)
"""Nights since the cause after which the history is judged."""


@dataclass
class Team:
    """The values of a team, and its machines."""

    logs: Array
    """Logarithms of values, [boxes, versions, steps, nights]."""

    at: int
    """The night of the cause."""

    rng: np.random.Generator
    marked: Sequence[int] = ()
    """The boxes whose machine has another fingerprint since the cause."""


def quiet_team(seed: tuple[int, ...]) -> Team:
    """Return a team to which nothing has happened yet."""
    rng = np.random.default_rng(seed)
    at = int(rng.integers(EARLIEST, LATEST))
    nights = at + NIGHTS_AFTER
    logs = SIGMA / np.sqrt(2) * rng.standard_normal((BOXES, len(VERSIONS), STEPS, nights))
    logs += MACHINE_NOISE * rng.standard_normal((BOXES, 1, 1, nights))
    logs += rng.uniform(3, 9, (BOXES, len(VERSIONS), STEPS, 1))
    return Team(logs, at, rng)


def judged(path: Path, team: Team, looks: Sequence[int] = LOOKS) -> list[DetectionReport]:
    """Write a history of the team at `path`, and return its reports so many nights after the cause."""
    with open_store(path) as store:
        reports = []
        done = 0
        for look in looks:
            until = team.at + look
            with sqlite3.connect(path) as connection:
                if not done:
                    _frame(connection, team)
                _nights(connection, team, done, until)
            done = until
            reports.append(judge(store.database, clock=partial(_end_of, done)))
        return reports


def versions_of(team: Team) -> Sequence[str]:
    """Return the versions that a team measures, the base first."""
    return VERSIONS[: team.logs.shape[1]]


def _end_of(nights: int) -> datetime:
    return FIRST_NIGHT + timedelta(days=nights)


def _frame(connection: sqlite3.Connection, team: Team) -> None:
    connection.executemany(
        "INSERT INTO machines VALUES (?, ?, ?, 'EPYC 9454P', 48, 137438953472, ?, 'Debian 12', '{}')",
        [
            (2 * box + new + 1, f"machine-{box}-{new}", f"box{box}", "6.12" if new else "6.8")
            for box in range(BOXES)
            for new in range(2)
        ],
    )
    connection.executemany(
        "INSERT INTO builds VALUES (?, ?, 'postgres', ?, 'cache', 'sha256:0', 'gcc 13', '{}')",
        [(number + 1, f"build-{version}", version) for number, version in enumerate(versions_of(team))],
    )
    connection.executemany(
        "INSERT INTO series VALUES (?, ?, 'write-heavy', 'short relaxed', ?, ?, 'qps', ?)",
        [
            (number + 1, f"box{box}", _branch(version), f"step-{step:02}", step + 1)
            for number, (box, version, step) in enumerate(
                (box, version, step)
                for box in range(BOXES)
                for version in versions_of(team)
                for step in range(STEPS)
            )
        ],
    )


def _nights(connection: sqlite3.Connection, team: Team, since: int, until: int) -> None:
    options = json.dumps({"mode": "rounds", "versions": versions_of(team), "settings": {}})
    for night in range(since, until):
        for box in range(BOXES):
            session = night * BOXES + box + 1
            started = to_text(FIRST_NIGHT + timedelta(days=night, minutes=box))
            machine = 2 * box + (box in team.marked and night >= team.at) + 1
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, 'write-heavy', 'short', 'ab', 1, 'relaxed', 3, ?, ?,"
                " 'finished', './tidemark nightly', '{\"generator\": \"sysbench 1.0.20\"}', ?, 1, 1, 'boot')",
                (session, f"s{session:06}", machine, started, started, options),
            )
            connection.executemany(
                "INSERT INTO nights VALUES (?, ?, ?, ?, ?, ?, 'write-heavy', 'short relaxed', ?)",
                [
                    (
                        session,
                        version.partition(".")[0],
                        version,
                        number + 1,
                        int(number == 0),
                        f"box{box}",
                        started,
                    )
                    for number, version in enumerate(versions_of(team))
                ],
            )
            values = np.exp(team.logs[box, ..., night]).ravel().tolist()
            first = box * len(values) + 1
            connection.executemany(
                "INSERT INTO points VALUES (?, ?, ?)",
                zip(range(first, first + len(values)), [session] * len(values), values, strict=True),
            )


def _branch(version: str) -> str:
    return version.partition(".")[0]
