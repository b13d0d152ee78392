"""Whether a history must be brought up to date before it is read or written: schema, nights, metrics."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from history.store.records import SessionStatus
from history.store.schema import metrics, nights, schema_migrations, sessions
from history.store.session_lookup import IS_NO_BISECT
from suites.metrics import METRICS

MIGRATIONS = Path(__file__).parent / "migrations"


def is_ready(connection: Connection) -> bool:
    """Return whether a history can be read as it is; the descriptions of its metrics may be older.

    Raises HistoryError when it has no table of migrations.
    """
    return stated_schema(connection) == newest() and not lacks_nights(connection)


def newest(folder: Path = MIGRATIONS) -> int:
    """Return the number of the newest migration, without reading the files."""
    return sum(1 for _ in folder.glob("*.sql"))


def stated_schema(connection: Connection) -> int | None:
    """Return the number of the last applied migration; None when the table is another program's.

    Raises HistoryError when there is no table of migrations.
    """
    migration = schema_migrations.c
    rows = connection.execute(select(migration.number, migration.name).order_by(migration.number)).all()
    # Other programs have a table of this name too, but not a first migration of this name.
    return int(rows[-1].number) if rows and tuple(rows[0]) == (1, "history") else None


def lacks_nights(connection: Connection) -> bool:
    """Return whether a history has ended sessions but no nights: it was written before there were nights."""
    if connection.execute(select(nights.c.session_id).limit(1)).first() is not None:
        return False
    ended = select(sessions.c.id).where(sessions.c.status != SessionStatus.RUNNING, IS_NO_BISECT)
    return connection.execute(ended.limit(1)).first() is not None


def outdated_metrics(connection: Connection) -> list[dict[str, Any]]:
    """Return the rows of METRICS that are missing in the history or differ from it."""
    stored = {row["name"]: dict(row) for row in connection.execute(select(metrics)).mappings()}
    columns = metrics.c.keys()
    wanted = {
        name: {column: getattr(metric, column) for column in columns} for name, metric in METRICS.items()
    }
    return [row for name, row in wanted.items() if stored.get(name) != row]


def update_metrics(connection: Connection) -> None:
    """Update the table from METRICS; a metric that was removed there keeps its last description."""
    known = set(connection.execute(select(metrics.c.name)).scalars())
    rows = outdated_metrics(connection)
    for row in rows:
        if row["name"] in known:
            connection.execute(update(metrics).where(metrics.c.name == row["name"]).values(row))
    # In one statement: a new history has none of more than a hundred.
    if new := [row for row in rows if row["name"] not in known]:
        connection.execute(insert(metrics), new)
