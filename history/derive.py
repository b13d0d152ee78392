"""Derivation of what a session that has ended contributes: a night of its series, or a confirmation."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, or_, select

from history.errors import stored_options
from history.series.night import insert_night
from history.store.records import CONFIRMS, NO_NIGHT, Run, RunStatus, SessionStatus
from history.store.schema import confirmations, machines, nights, runs, sessions
from history.store.session_reads import runs_of
from suites.metrics import OVER_LIMIT


def derive(connection: Connection, session_id: int) -> bool:
    """Write the night or the confirmation of a session that has ended; return whether it has one.

    The session must not have been derived before. A confirming session is not a night: its findings are
    written instead. A session of a bisect or a try, or one with layouts, is neither, and gives False; so does
    one in which nothing was measured, because nothing could be loaded or every server failed.
    """
    query = (
        select(sessions, machines.c.hostname)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(sessions.c.id == session_id)
    )
    session = connection.execute(query).mappings().one()
    options = stored_options(session["options"])
    if CONFIRMS not in options and any(options.get(name) for name in NO_NIGHT):
        return False
    session_runs = runs_of(connection, session_id, ())
    if CONFIRMS in options:
        _confirm(connection, session_id, options, session_runs)
    elif not any(map(_is_measured, session_runs)):
        return False
    else:
        insert_night(connection, dict(session), options, session_runs)
    return True


def _confirm(
    connection: Connection, session_id: int, options: Mapping[str, Any], session_runs: Sequence[Run]
) -> None:
    from history.changes import confirmation, repository  # loads numpy, and few sessions confirm

    confirms = confirmation.Confirms.of(options)
    assert confirms is not None
    changes = repository.load(connection, branch=confirms.branch)
    confirmation.decide(connection, session_id, options, session_runs, changes)


def _is_measured(run: Run) -> bool:
    """Return whether a run says something of its version; one that was over its limit does."""
    return run.status is RunStatus.FINISHED or OVER_LIMIT in run.values


def derive_missing(connection: Connection) -> int:
    """Derive every session that has ended, has runs and was not derived yet; return how many were derived."""
    ended = sessions.c.status != SessionStatus.RUNNING
    derived = (sessions.c.id.in_(select(table.c.session_id)) for table in (nights, confirmations))
    have_runs = sessions.c.id.in_(select(runs.c.session_id))
    query = select(sessions.c.id).where(ended, ~or_(*derived), have_runs)
    session_ids = connection.execute(query.order_by(sessions.c.started_at)).scalars().all()
    return sum(derive(connection, session_id) for session_id in session_ids)
