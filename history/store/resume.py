"""Going on with a session that was interrupted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from build.build import Build
from history.errors import stored_options
from history.store.process import ProcessIdentity
from history.store.records import Run, SessionStart, SessionStatus
from history.store.schema import confirmations, gaps, machines, nights, points, sessions
from history.store.session_reads import runs_of
from history.timestamps import to_text

COMPARED = ("suite", "profile", "suite_digest", "seed", "durability", "repetitions")
"""What has to be equal, besides machine, options and builds, for a session to be the same one."""

MAY_DIFFER = ("machine_changed",)
"""Options that say something about the moment, and not about what was asked for."""

Recorded = Mapping[tuple[str, int], Mapping[str, Run]]
"""Step and round -> version -> its run."""


@dataclass(frozen=True)
class Interrupted:
    """A session that can be gone on with."""

    id: int
    uid: str
    recorded: Recorded


def find_interrupted(
    connection: Connection, start: SessionStart, builds: Sequence[Build], since: datetime
) -> Interrupted | None:
    """The latest interrupted session, begun since then, that asked for the same on the same machine.

    What it has runs of must be the same builds: a branch may have moved meanwhile.
    """
    query = (
        select(sessions)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == start.machine.fingerprint,
            sessions.c.status == SessionStatus.INTERRUPTED,
            sessions.c.started_at >= to_text(since),
            *(sessions.c[name] == getattr(start, name) for name in COMPARED),
        )
        .order_by(sessions.c.started_at.desc())
    )
    keys = {str(build.version): build.key for build in builds}
    for row in connection.execute(query).mappings():
        if _asked(stored_options(row["options"])) == _asked(start.options):
            its_runs = runs_of(connection, row["id"], ())
            if all(keys.get(run.version) == run.build_key for run in its_runs):
                return Interrupted(row["id"], row["uid"], recorded(its_runs))
    return None


def reopen(connection: Connection, session_id: int, process: ProcessIdentity) -> None:
    """Make a session run again, carried out by another process; its night is derived anew when it ends."""
    for table in (points, gaps, nights, confirmations):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    values = {
        "status": SessionStatus.RUNNING,
        "ended_at": None,
        "process_id": process.process_id,
        "process_start_ticks": process.start_ticks,
        "boot_id": process.boot_id,
    }
    connection.execute(update(sessions).where(sessions.c.id == session_id).values(values))


def recorded(its_runs: Sequence[Run]) -> Recorded:
    """Runs by step and round, then by version."""
    found: dict[tuple[str, int], dict[str, Run]] = {}
    for run in its_runs:
        found.setdefault((run.step, run.repetition), {})[run.version] = run
    return found


def _asked(options: Mapping[str, object]) -> Any:
    # Through JSON, as the history has them: a tuple comes back as a list.
    return json.loads(
        json.dumps({name: value for name, value in options.items() if name not in MAY_DIFFER}, sort_keys=True)
    )
