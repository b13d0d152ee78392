"""Nights of sessions that came from elsewhere."""

from sqlalchemy import Connection, TableClause, delete, insert, select

from history.series import night
from history.store.schema import confirmations, gaps, points, runs
from history.store.schema import nights as nights_table


def has_rounds(connection: Connection, session_id: int) -> bool:
    """Whether a session has runs: it has none when they were pruned."""
    return _has(connection, runs, session_id)


def complete_night(connection: Connection, session_id: int, gained: bool) -> int:
    """Derive the night of a session that has none; and again when a session gained what it had no rounds of.

    Returns 1 when it was derived, else 0. A night whose rounds were pruned and come back stays as it is.
    """
    if not has_rounds(connection, session_id):
        return 0
    if _has(connection, confirmations, session_id):
        return 0
    if not _has(connection, nights_table, session_id):
        return int(night.derive(connection, session_id))
    if not gained:
        return 0
    _derive_again(connection, session_id)
    return 1


def _derive_again(connection: Connection, session_id: int) -> None:
    """What was derived of rounds that are not here any more stays."""
    kept = [
        dict(row)
        for row in connection.execute(select(points).where(points.c.session_id == session_id)).mappings()
    ]
    for table in (nights_table, points, gaps):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    night.derive(connection, session_id)
    now = set(
        connection.execute(select(points.c.series_id).where(points.c.session_id == session_id)).scalars()
    )
    lost = [row for row in kept if row["series_id"] not in now]
    if lost:
        connection.execute(insert(points), lost)


def _has(connection: Connection, table: TableClause, session_id: int) -> bool:
    query = select(table.c.session_id).where(table.c.session_id == session_id).limit(1)
    return connection.execute(query).first() is not None
