"""Clocks that are wrong: a box without time synchronisation, a laptop that slept, a battery that ended."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

from benchmarks.fleets.sessions import STEPS, VERSIONS, round_of, session_start
from benchmarks.surroundings.answers import Expected, Surroundings, answer, faults, folder_of_its_own
from benchmarks.surroundings.outcome import Outcome
from build.version import parse_version
from history.open import open_store
from history.store.records import SessionStatus

FAKETIME = "faketime"


def at(moment: str, zone: str = "UTC") -> Surroundings:
    """Surroundings in which the clock shows a moment, and goes on from there."""
    line = f"TZ={zone} exec faketime '{moment}' \"$@\""
    return Surroundings(f"clock at {moment} {zone}", line, Expected.SAME, FAKETIME)


CLOCKS = (
    at("1970-01-01 00:00:01"),
    at("2001-09-09 01:46:40"),
    at("2026-03-29 01:59:59", "Europe/Berlin"),
    at("2026-10-25 02:30:00", "Europe/Berlin"),
    at("2028-02-29 23:59:59"),
    at("2037-12-31 23:59:59"),
    at("2038-01-19 03:14:08"),
    at("2106-02-07 06:28:16"),
    at("2261-12-31 23:59:59"),
)
"""Before the sessions, when summer time begins and ends, on a leap day, beyond 31 and 32 bits, far ahead."""

NIGHTS = 12
"""Reports of nights under wandering clocks."""

COPIES = 3
"""The copies of the history that their plan keeps."""

WANDERING = ("2026-11-20 03:17", "2037-01-01 03:17", "2001-09-09 01:46", "2026-11-21 03:17")
"""The clock of one night after another, again and again: right, ahead, behind, right."""

PLAN = f"""\
backups = {COPIES}
[boxes.only]
label = "only"
hostname = "*"
budget_minutes = 1.0
[engines.postgres]
base = "{VERSIONS[0]}"
releases = ["{parse_version(VERSIONS[1]).ref}"]
[[tasks]]
suite = "write-heavy"
profile = "smoke"
"""


def nights_under_wandering_clocks() -> Outcome:
    """Record a session and report a night, again and again, each under another clock.

    After each, one of the copies has all sessions, whatever its date, and there are not more than asked for.
    """
    outcome = Outcome("nights under wandering clocks")
    if CLOCKS[0].lacking:
        outcome.skipped["all"] = CLOCKS[0].lacking
        return outcome
    with folder_of_its_own() as home:
        plan = home / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        for night, moment in zip(range(NIGHTS), cycle(WANDERING), strict=False):
            _record(home / "history.db", f"session {night}")
            given = answer(("nightly", "--report", "--plan", str(plan)), at(moment), home)
            found = [*faults(given, Expected.ANSWER, given), *_faults_of_copies(home, night + 1)]
            outcome.add(f"night {night + 1} at {moment}: {fault}" for fault in found)
    return outcome


def _record(path: Path, uid: str) -> None:
    with open_store(path) as store:
        session = store.start_session(session_start("only", uid, 1))
        for step in range(len(STEPS)):
            for run in round_of(step, 1, 1000.0, 1):
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)


def _faults_of_copies(home: Path, sessions: int) -> Iterator[str]:
    copies = sorted((home / "backups").glob("*.db"))
    most = max((_sessions(copy) for copy in copies), default=0)
    if most != sessions:
        yield f"the best of {len(copies)} copies has {most} of {sessions} sessions"
    if len(copies) > COPIES:
        yield f"{len(copies)} copies instead of {COPIES}"


def _sessions(copy: Path) -> int:
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM sessions").fetchone()[0])
