"""Whether a history is as this Tidemark needs it, so that it can be read as it is."""

from pathlib import Path
from typing import Any

from history.store.records import SessionStatus
from history.store.session_lookup import IS_NO_BISECT
from history.store.sql import Source
from suites.metrics import METRICS, Metric

MIGRATIONS = Path(__file__).parent / "migrations"


def is_ready(source: Source) -> bool:
    """Whether nothing has to be written before a history is read."""
    ready = stated_schema(source) == newest()
    return ready and not lacks_nights(source) and not outdated_metrics(source)


def newest(folder: Path = MIGRATIONS) -> int:
    """The number of the last migration that there is, without reading any."""
    return sum(1 for _ in folder.glob("*.sql"))


def stated_schema(source: Source) -> int | None:
    """The last migration of a history that says so; None where the table says that it is another's.

    Raises HistoryError where there is no such table.
    """
    rows = source.rows("SELECT number, name FROM schema_migrations ORDER BY number")
    # Others keep a table of this name too, but the first of their migrations is hardly called as ours.
    return int(rows[-1][0]) if rows and tuple(rows[0]) == (1, "history") else None


def lacks_nights(source: Source) -> bool:
    """Whether a history is from before there were nights, and holds sessions that would have some."""
    if source.value("SELECT session_id FROM nights LIMIT 1") is not None:
        return False
    ended = f"sessions.status != '{SessionStatus.RUNNING}'"
    return source.value(f"SELECT id FROM sessions WHERE {ended} AND {IS_NO_BISECT} LIMIT 1") is not None


def outdated_metrics(source: Source) -> list[dict[str, Any]]:
    """The rows of METRICS that the history has not, or says something else of."""
    known = {row["name"]: row for row in source.records("SELECT * FROM metrics")}
    wanted = {name: _row(metric) for name, metric in METRICS.items()}
    return [row for name, row in wanted.items() if known.get(name) != row]


def _row(metric: Metric) -> dict[str, Any]:
    """What the table of metrics says of one: what its values mean, not what this Tidemark does with them."""
    return {
        "name": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "description": metric.description,
    }
