"""Sessions that were to be nights and became none, because nothing was measured in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, select

from history.errors import stored_options
from history.series.night import branches, configuration_name, not_built
from history.store.records import Environment, SessionStatus
from history.store.schema import runs, sessions
from report.values.catalog import Catalog, SessionEntry, SessionKind

RECENT = timedelta(days=60)
"""How long before the newest data a session that measured nothing still counts as a night."""


@dataclass(frozen=True)
class FailedSession:
    """A session that was to be a night, and has no value."""

    entry: SessionEntry
    place: Environment
    reasons: Mapping[str, str]
    """Why nothing was measured, by branch."""

    versions: Mapping[str, str]
    """The version of each branch."""


def read_failed_sessions(connection: Connection, catalog: Catalog) -> tuple[FailedSession, ...]:
    """Return the sessions that ended without a night although they were to be one, oldest first."""
    newest = max((entry.started_at for entry in catalog.sessions.values()), default=None)
    ended = [
        entry
        for entry in catalog.sessions.values()
        if entry.kind is SessionKind.COMPARISON
        and not entry.is_apart
        and entry.status is not SessionStatus.RUNNING
        and not entry.has_rounds
        and newest is not None
        and newest - entry.started_at <= RECENT
    ]
    return tuple(_failed_sessions(connection, ended))


def _failed_sessions(connection: Connection, ended: list[SessionEntry]) -> Iterator[FailedSession]:
    for entry in ended:
        row = connection.execute(select(sessions).where(sessions.c.id == entry.id)).mappings().one()
        options = stored_options(row["options"])
        reasons = _reasons(connection, entry, options)
        versions = branches(entry.versions or sorted(reasons), options.get("branches") or {})
        otherwise = f"session {entry.status} before its first run"
        yield FailedSession(
            entry,
            Environment(entry.box, entry.suite, configuration_name(dict(row))),
            {branch: reasons.get(version) or otherwise for version, branch in versions.items()},
            {branch: version for version, branch in versions.items()},
        )


def _reasons(connection: Connection, entry: SessionEntry, options: Mapping[str, Any]) -> dict[str, str]:
    query = (
        select(runs.c.version, runs.c.failure)
        .where(runs.c.session_id == entry.id, runs.c.failure.is_not(None))
        .order_by(runs.c.position)
    )
    reasons: dict[str, str] = {row.version: row.failure for row in connection.execute(query)}
    return reasons | {version: not_built(why) for version, why in (options.get("not_built") or {}).items()}
