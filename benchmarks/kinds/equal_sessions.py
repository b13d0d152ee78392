"""Sessions of equal builds, recorded into a history that stays, until there are enough.

A session compares two, as users' sessions do: the base, and one of the other builds in turn.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from benchmarks.output.figures import Figure
from benchmarks.surroundings.recorded_sessions import record_sessions
from build.finished_build import Build
from build.home import Home
from build.provide import provide
from build.request import BuildRequest
from build.version import Version, parse_version
from history.open import open_store
from history.store.reader import Reader
from history.store.records import Session, SessionStatus
from history.store.schema import sessions
from history.store.session_lookup import Name, SessionFilter
from runners.console import Lines
from runners.measuring.request import Exact, Request
from runners.measuring.session import SessionOutcome, run_session
from suites.definition import load_suite
from suites.processes import run

BASE = parse_version("postgres@18.6")
NAMES = (BASE, *(replace(BASE, variant=variant) for variant in ("b", "c", "d", "e")))
"""One build under five names: a base and four contenders."""

SUITE, PROFILE = "write-heavy", "smoke"
STEPS = ("update-index", "read-write-10", "insert")
SESSIONS = 40


@dataclass(frozen=True)
class EqualSession:
    """A finished session of two equal builds."""

    session: Session
    contender: Version


def history_of_equals(home: Home) -> Path:
    """Return the history of the sessions of equal builds."""
    return home.path / "kinds" / "equal" / "history.db"


def equal_sessions(history: Reader) -> list[EqualSession]:
    """Return the finished sessions of equal builds, the first one first."""
    finished = select(sessions.c.uid).where(sessions.c.status == SessionStatus.FINISHED)
    with history.database.reading() as connection:
        uids = connection.scalars(finished.order_by(sessions.c.id)).all()
    found = []
    for uid in uids:
        for contender in NAMES[1:]:
            match = history.latest_of([Name(BASE), Name(contender)], SessionFilter(uid=uid))
            found += [EqualSession(match[0], contender)] if match else []
    return found


def equal_figures(home: Home, *, busy: bool = False) -> Iterator[Figure]:
    """Record sessions until there are enough; each call goes on where an interrupted one ended.

    Rounds that other work disturbs are measured again, or accepted on a `busy` machine.
    """
    history = history_of_equals(home)
    history.parent.mkdir(parents=True, exist_ok=True)
    suite, shown = load_suite(SUITE), Lines()
    request = Request(
        NAMES[:2],
        suite,
        PROFILE,
        suite.select(STEPS),
        suite.profile(PROFILE).repetitions,
        exact=Exact.BESIDE,
        keep_disturbed=busy,
    )
    given = _equal_builds(history.parent, provide(BuildRequest(BASE), home, shown))
    with open_store(history) as store:

        def record() -> SessionOutcome:
            contender = NAMES[1 + len(equal_sessions(store)) % (len(NAMES) - 1)]
            return run_session(replace(request, versions=(BASE, contender)), home, store, shown, given)

        failed = record_sessions("equal builds", SESSIONS, lambda: len(equal_sessions(store)), record, shown)
        yield from failed
        if not failed:
            yield Figure("equal builds: recorded sessions", len(equal_sessions(store)), "", at_least=SESSIONS)


def _equal_builds(folder: Path, build: Build) -> dict[Version, Build]:
    """Return the build under all names but its own, each a copy of its files in a folder of its own."""
    given = {}
    for name in NAMES[1:]:
        copy = folder / str(name.variant) / build.prefix.name
        if not copy.is_dir():
            shutil.rmtree(copy.parent, ignore_errors=True)
            copy.parent.mkdir()
            run(["cp", "--archive", build.prefix, copy], what=f"copying {build.prefix.name}")
        given[name] = replace(build, version=name, prefix=copy)
    return given
