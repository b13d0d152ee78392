"""Whether a history has to be written to before it can be read: its schema, its nights, its metrics."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from history.store.records import SessionStatus
from history.store.schema import metrics, nights, schema_migrations, sessions
from history.store.session_lookup import IS_NO_BISECT
from suites.metrics import METRICS

MIGRATIONS = Path(__file__).parent / "migrations"


def is_ready(connection: Connection) -> bool:
    """Whether nothing has to be written before a history is read.

    Raises HistoryError where there is no table of migrations.
    """
    ready = stated_schema(connection) == newest()
    return ready and not lacks_nights(connection) and not outdated_metrics(connection)


def newest(folder: Path = MIGRATIONS) -> int:
    """The number of the last migration that there is, without reading any."""
    return sum(1 for _ in folder.glob("*.sql"))


def stated_schema(connection: Connection) -> int | None:
    """The number of the last migration that a history says it has; None where the table is another program's.

    Raises HistoryError where there is no such table.
    """
    its = schema_migrations.c
    rows = connection.execute(select(its.number, its.name).order_by(its.number)).all()
    # Other programs keep a table of this name too, but their first migration is hardly called as ours.
    return int(rows[-1].number) if rows and tuple(rows[0]) == (1, "history") else None


def lacks_nights(connection: Connection) -> bool:
    """Whether a history is from before there were nights, and holds sessions that would have some."""
    if connection.execute(select(nights.c.session_id).limit(1)).first() is not None:
        return False
    ended = select(sessions.c.id).where(sessions.c.status != SessionStatus.RUNNING, IS_NO_BISECT)
    return connection.execute(ended.limit(1)).first() is not None


def outdated_metrics(connection: Connection) -> list[dict[str, Any]]:
    """The rows of METRICS that the history does not have, or describes otherwise."""
    known = {row["name"]: dict(row) for row in connection.execute(select(metrics)).mappings()}
    columns = metrics.c.keys()
    wanted = {name: {each: getattr(metric, each) for each in columns} for name, metric in METRICS.items()}
    return [row for name, row in wanted.items() if known.get(name) != row]


def update_metrics(connection: Connection) -> None:
    """Make the table say what METRICS says; a metric that is gone from there keeps its last description."""
    for row in outdated_metrics(connection):
        known = update(metrics).where(metrics.c.name == row["name"]).values(row)
        if connection.execute(known).rowcount == 0:
            connection.execute(insert(metrics).values(row))
