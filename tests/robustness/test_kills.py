"""Kills of real sessions at random moments: what was finished stays, once, and the session can go on.

A session of a few seconds is started as a program of its own and ended by SIGKILL, which no process can
handle, and resumed, some times until it may finish. Another process reads its history meanwhile.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from build.home import ROOT, Home

KILLS, SEED = 10, 20261122
STEPS = ("update-index", "insert")
ROUNDS = 3
SECONDS = 1
OPTIONS = ("--no-exact", "--keep-disturbed", "--resume")

PATIENCE_SECONDS = 300.0
"""For a session that nobody kills, on a machine that others use."""

MAX_KILLS_IN_A_ROW = 6
"""Of one session, which then may finish."""

RUNS = "SELECT id, version, step, repetition, status, started_at FROM runs"
UNMEASURED = (
    "SELECT id FROM runs WHERE status = 'finished' AND id NOT IN "
    "(SELECT run_id FROM measurements WHERE metric = 'qps' AND value > 0)"
)
DOUBLED = "SELECT version, step, repetition FROM runs GROUP BY 1, 2, 3 HAVING COUNT(*) > 1"
SESSIONS = "SELECT status FROM sessions"

Row = tuple[object, ...]


@dataclass
class KilledSessions:
    """What became of all sessions of one set of versions."""

    versions: tuple[str, ...]
    kills: int = 0
    faults: list[str] = field(default_factory=list)


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("builds", [("postgres_17", "postgres_18"), ("mysql_9",)], ids="-".join)
def test_killed_sessions_lose_nothing(
    builds: tuple[str, ...], shared_home: Home, request: pytest.FixtureRequest
) -> None:
    versions = [str(request.getfixturevalue(build).version) for build in builds]
    done = kill_sessions(shared_home, versions, KILLS, SEED)
    assert done.faults == []
    assert done.kills == KILLS


def kill_sessions(home: Home, versions: Sequence[str], kills: int, seed: int) -> KilledSessions:
    """Kill sessions of `versions` so often, at moments drawn by `seed`; stop at the first fault.

    `home` lends its builds; they must be there already.
    """
    draw = random.Random(f"{seed} {versions}")
    done = KilledSessions(tuple(versions))
    while done.kills < kills and not done.faults:
        with _home_of_its_own(home) as folder:
            _one_session(folder, done, draw, kills)
    return done


def _one_session(folder: Path, done: KilledSessions, draw: random.Random, kills: int) -> None:
    """Start a session, kill and resume it some times, and let it finish."""
    length = 8.0
    seen: dict[object, Row] = {}
    for _ in range(min(draw.randint(1, MAX_KILLS_IN_A_ROW), kills - done.kills)):
        after = draw.uniform(0.0, length)
        ended = _watched(folder, done.versions, seen, after)
        done.faults += _faults(folder, seen)
        if ended is not None or done.faults:
            break
        done.kills += 1
    if done.faults:
        return
    code = _watched(folder, done.versions, seen, PATIENCE_SECONDS)
    done.faults += _faults(folder, seen)
    if code != 0:
        said = (folder / "said").read_text(errors="replace")[-2000:]
        done.faults.append(
            f"the resumed session ended with {'no' if code is None else code} exit code: {said}"
        )
        return
    done.faults += _faults_at_the_end(folder, done.versions)


def _watched(folder: Path, versions: Sequence[str], seen: dict[object, Row], most: float) -> int | None:
    """Start or resume the session, and note its runs as they appear; kill it after `most` seconds.

    Returns its exit code; None when it was killed.
    """
    step_words = [word for step in STEPS for word in ("--step", step)]
    words = ["run", *step_words, "--seconds", str(SECONDS), "--repetitions", str(ROUNDS)]
    words += [*OPTIONS, *["--alone"] * (len(versions) == 1), *versions]
    command = [sys.executable, "-P", "-m", "runners", *words]
    environment = {**os.environ, "TIDEMARK_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    environment["TIDEMARK_LOCK"] = str(folder / "measuring.lock")
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd="/")
        deadline = time.monotonic() + most
        try:
            while process.poll() is None and time.monotonic() < deadline:
                seen.update({row[0]: row for row in _rows(folder, RUNS)})
                time.sleep(0.02)
        finally:
            ended = process.poll()
            if ended is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
    return ended


def _faults(folder: Path, seen: dict[object, Row]) -> Iterator[str]:
    """What is wrong with a history in which the runs `seen` have been."""
    there = {row[0]: row for row in _rows(folder, RUNS)}
    for number, row in seen.items():
        if there.get(number) != row:
            yield f"the finished run {row} is lost, or changed to {there.get(number)}"
    for row in _rows(folder, DOUBLED):
        yield f"the round {row} is there twice"
    for row in _rows(folder, UNMEASURED):
        yield f"run {row[0]} is finished, and has no throughput"


def _faults_at_the_end(folder: Path, versions: Sequence[str]) -> Iterator[str]:
    wanted: Counter[Row] = Counter(product(versions, STEPS, range(1, ROUNDS + 1), ["finished"]))
    there: Counter[Row] = Counter(row[1:5] for row in _rows(folder, RUNS))
    if there != wanted:
        yield f"rounds are missing: {wanted - there}; or too many: {there - wanted}"
    statuses = _rows(folder, SESSIONS)
    if statuses != [("finished",)]:
        yield f"there is not one session, finished, but {statuses}"
    if _rows(folder, "PRAGMA integrity_check") != [("ok",)]:
        yield "the database is damaged"
    left = [path for path in (folder / "data").glob("*") if path.is_dir()]
    if left:
        yield f"data directories are left: {left}"


def _rows(folder: Path, query: str) -> list[Row]:
    """The rows of a history; none while it has no tables yet."""
    path = folder / "history.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    finally:
        connection.close()


@contextmanager
def _home_of_its_own(home: Home) -> Iterator[Path]:
    """A folder that the server user can reach, which has the builds of `home`."""
    folder = Path(tempfile.mkdtemp(prefix="tmk-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        for shared in (home.builds, home.sources, home.tools):
            if shared.is_dir():
                (folder / shared.name).symlink_to(shared)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
