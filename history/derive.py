"""What a session that ended comes to: a night of its series, or the findings of a confirmation."""

from sqlalchemy import Connection, or_, select

from history.errors import stored_options
from history.series.night import insert_night
from history.store.records import CONFIRMS, SessionStatus
from history.store.schema import confirmations, machines, nights, runs, sessions
from history.store.session_reads import runs_of


def derive(connection: Connection, session_id: int) -> bool:
    """Write what a session that ended came to, which must not have been derived before.

    A session that confirms is no night: its findings are written instead. Returns False for a session of a
    bisect, which is neither.
    """
    query = (
        select(sessions, machines.c.hostname)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(sessions.c.id == session_id)
    )
    session = connection.execute(query).mappings().one()
    options = stored_options(session["options"])
    if options.get("bisect"):
        return False
    its_runs = runs_of(connection, session_id, ())
    if CONFIRMS in options:
        from history.changes.confirm import insert_findings  # loads numpy, and few sessions confirm

        insert_findings(connection, session_id, options, its_runs)
    else:
        insert_night(connection, dict(session), options, its_runs)
    return True


def derive_missing(connection: Connection) -> int:
    """Derive all sessions that ended, have runs, and were not derived yet; returns how many there were."""
    ended = sessions.c.status != SessionStatus.RUNNING
    derived = (sessions.c.id.in_(select(table.c.session_id)) for table in (nights, confirmations))
    have_runs = sessions.c.id.in_(select(runs.c.session_id))
    query = select(sessions.c.id).where(ended, ~or_(*derived), have_runs)
    session_ids = connection.execute(query.order_by(sessions.c.started_at)).scalars().all()
    return sum(derive(connection, session_id) for session_id in session_ids)
