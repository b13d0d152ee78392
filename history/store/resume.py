"""Resumption of an interrupted session."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from build.finished_build import Build
from history.errors import stored_options
from history.store.process import ProcessIdentity
from history.store.records import (
    DATA,
    EXACT,
    EXECUTED,
    FAILED,
    LAYOUT_SEEDS,
    LEFT_OUT,
    ONLY,
    OUT_OF_TIME,
    PLANS,
    RUNNABLE,
    TRY,
    Run,
    SessionStart,
    SessionStatus,
)
from history.store.schema import confirmations, gaps, machines, nights, points, sessions
from history.store.session_reads import bursts_of, runs_of
from history.store.session_writes import json_text
from history.timestamps import from_text, to_text
from suites.turns.warmth import WARMED_UP

COMPARED = ("suite", "profile", "suite_digest", "seed", "durability", "repetitions")
"""The columns that must be equal, besides machine, options and builds, for a session to be resumed."""

MAY_DIFFER = (
    *("machine_changed", DATA, PLANS, LEFT_OUT, FAILED, LAYOUT_SEEDS, OUT_OF_TIME, WARMED_UP),
    *(EXECUTED, RUNNABLE),
)
"""Options that describe the circumstances of a session or its servers, not the request."""

Recorded = Mapping[tuple[str, int], Mapping[str, Run]]
"""The recorded runs by step and round, then by version."""


@dataclass(frozen=True)
class InterruptedSession:
    """A session that can be resumed."""

    id: int
    uid: str
    recorded: Recorded
    bursts: frozenset[int] = frozenset()
    """The ids of its runs with background work that comes in bursts."""


def find_interrupted(
    connection: Connection, start: SessionStart, builds: Sequence[Build], since: datetime
) -> InterruptedSession | None:
    """Return the latest session since then with the same request on the same machine that can go on, or None.

    It was interrupted, or its budget ended before it was decided; the counts of a try are those of another.
    Its runs must be of the same builds, since a branch may have moved meanwhile.
    """
    query = (
        select(sessions)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == start.machine.fingerprint,
            sessions.c.status.in_((SessionStatus.INTERRUPTED, SessionStatus.FINISHED)),
            sessions.c.started_at >= to_text(since),
            *(sessions.c[name] == getattr(start, name) for name in COMPARED),
        )
        .order_by(sessions.c.started_at.desc())
    )
    keys = {str(build.version): build.key for build in builds}
    for row in connection.execute(query).mappings():
        options = stored_options(row["options"])
        is_over = row["status"] == SessionStatus.FINISHED and not _goes_on(options)
        if not is_over and _requested(options) == _requested(start.options):
            session_runs = runs_of(connection, row["id"], ())
            if all(keys.get(run.version) == run.build_key for run in session_runs):
                bursts = bursts_of(connection, row["id"], options)
                return InterruptedSession(row["id"], row["uid"], recorded(session_runs), bursts)
    return None


def _goes_on(options: Mapping[str, object]) -> bool:
    """Return whether a finished session with these options can go on."""
    exact = options.get(EXACT)
    is_counted = isinstance(exact, dict) and exact.get("when") == ONLY
    return options.get(OUT_OF_TIME) is True or (options.get(TRY) is True and is_counted)


LOOKED_AT = 20
"""The most interrupted sessions of a host that are looked at to say why none of them is resumed."""

LONGEST_VALUE = 60
"""The most characters of a value that such a reason quotes."""


@dataclass(frozen=True)
class NotResumed:
    """An interrupted session that is not resumed."""

    uid: str
    started_at: datetime
    reasons: tuple[str, ...]
    """How it differs from what can be resumed, in words."""


def nearest_interrupted(
    connection: Connection, start: SessionStart, builds: Sequence[Build], since: datetime
) -> NotResumed | None:
    """Return the interrupted session of this host that differs least from what `find_interrupted` looks for.

    None if no session of the host was interrupted.
    """
    query = (
        select(sessions, machines.c.fingerprint)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == start.machine.hostname, sessions.c.status == SessionStatus.INTERRUPTED)
        .order_by(sessions.c.started_at.desc())
        .limit(LOOKED_AT)
    )
    keys = {str(build.version): build.key for build in builds}
    found = [
        NotResumed(
            row["uid"],
            from_text(row["started_at"]),
            (
                *_differences(dict(row), start, since),
                *_other_builds(runs_of(connection, row["id"], ()), keys),
            ),
        )
        for row in connection.execute(query).mappings()
    ]
    return min(found, key=lambda session: len(session.reasons), default=None)


def _differences(row: Mapping[str, Any], start: SessionStart, since: datetime) -> Iterator[str]:
    if row["started_at"] < to_text(since):
        yield f"it began before {since:%Y-%m-%d %H:%M} UTC, and the machine may have drifted"
    if row["fingerprint"] != start.machine.fingerprint:
        yield "the machine has changed"
    values = [(name.replace("_", " "), row[name], getattr(start, name)) for name in COMPARED]
    then, now = (_requested(options) for options in (stored_options(row["options"]), start.options))
    values += [(name.replace("_", " "), then.get(name), now.get(name)) for name in sorted({*then, *now})]
    for name, old, new in values:
        if old != new:
            yield f"{name}: {_shown(old)} then, {_shown(new)} now"


def _other_builds(session_runs: Sequence[Run], keys: Mapping[str, str]) -> Iterator[str]:
    versions = {run.version: run.build_key for run in session_runs}
    for version, key in versions.items():
        if version in keys and keys[version] != key:
            yield f"{version} is another build by now"


def _shown(value: object) -> str:
    text = "not set" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def reopen(connection: Connection, session_id: int, process: ProcessIdentity) -> None:
    """Set a session to running again, in another process; its night is derived again when it ends."""
    for table in (points, gaps, nights, confirmations):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    known = connection.execute(select(sessions.c.options).where(sessions.c.id == session_id)).scalar_one()
    # What failed then may not fail now, and there is time again.
    gone = (FAILED, OUT_OF_TIME)
    options = {name: value for name, value in stored_options(known).items() if name not in gone}
    values = {
        "options": json_text(options),
        "status": SessionStatus.RUNNING,
        "ended_at": None,
        "process_id": process.process_id,
        "process_start_ticks": process.start_ticks,
        "boot_id": process.boot_id,
    }
    connection.execute(update(sessions).where(sessions.c.id == session_id).values(values))


def recorded(session_runs: Sequence[Run]) -> Recorded:
    """Return runs by step and round, then by version."""
    by_round: dict[tuple[str, int], dict[str, Run]] = {}
    for run in session_runs:
        by_round.setdefault((run.step, run.repetition), {})[run.version] = run
    return by_round


def _requested(options: Mapping[str, object]) -> Any:
    # Converted through JSON as in the history, where a tuple becomes a list.
    return json.loads(
        json.dumps({name: value for name, value in options.items() if name not in MAY_DIFFER}, sort_keys=True)
    )
