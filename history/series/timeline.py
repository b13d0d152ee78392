"""The timeline of a series: its nights, and what else changed between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, select

from build.errors import TidemarkError, shell_line
from history.series.environment_changes import changed_steps
from history.series.inventory import InventoryFilter
from history.series.series import (
    IDS_PER_QUERY,
    Point,
    SeriesKey,
    base_beside,
    find_series,
    read_series,
)
from history.store.schema import nights, sessions

SHOWN_SERIES = 20
"""The matching series that an error message lists at most."""


class SeriesError(TidemarkError):
    """No series matches, or several do."""


@dataclass(frozen=True)
class TimelineEntry:
    """A night of a series, and what differs from the night before."""

    point: Point
    base_version: str | None
    """The measured version of the base; None without a base in this night."""

    changes: tuple[str, ...]
    """The changes of machine, suite and base since the night before."""


@dataclass(frozen=True)
class Timeline:
    """A series with all its nights."""

    key: SeriesKey
    base: str | None
    """The branch that values are relative to; None when the series is the base itself."""

    entries: tuple[TimelineEntry, ...]


def read_timeline(
    connection: Connection, wanted: InventoryFilter, base: str | None = None, since: datetime | None = None
) -> Timeline:
    """Return the matching series. Raises SeriesError when no series matches, or several do.

    Values are relative to `base`, else to the base of the latest night in which the branch was not the base.
    """
    key = _single_series(connection, wanted, base)
    against = base or base_beside(connection, key.environment, key.branch)
    if against == key.branch:
        against = None
    points = read_series(connection, key, against, since)
    return Timeline(key, against, _entries(connection, points, key.step, against))


def _single_series(connection: Connection, wanted: InventoryFilter, base: str | None) -> SeriesKey:
    matching = find_series(connection, **vars(wanted))
    if not matching:
        raise SeriesError("no series matches", hint="./tidemark history show lists all series")
    # Without a branch no base is meant, because its ratio to itself is 1.
    others = [
        key
        for key in matching
        if key.branch != base and (base or base_beside(connection, key.environment, key.branch))
    ]
    if len(matching) == 1 or (wanted.branch is None and len(others) == 1):
        return matching[0] if len(matching) == 1 else others[0]
    lines = [f"\n    {_options(key)}" for key in matching[:SHOWN_SERIES]]
    more = f"\n    and {len(matching) - SHOWN_SERIES} more" if len(matching) > SHOWN_SERIES else ""
    raise SeriesError(
        f"{len(matching)} series match:{''.join(lines)}{more}",
        hint="select one of them by adding its options",
    )


def _options(key: SeriesKey) -> str:
    where = key.environment
    words = ["--machine", where.box, "--suite", where.suite, "--configuration", where.configuration]
    return shell_line(*words, "--branch", key.branch)


def _entries(
    connection: Connection, points: Sequence[Point], step: str, base: str | None
) -> tuple[TimelineEntry, ...]:
    ids = [point.night.session_id for point in points]
    states = _states(connection, ids, base)
    changes: dict[int, tuple[str, ...]] = {}
    for before, after in pairwise(ids):
        (old_machine, old_suite, old_base), (machine, suite, new_base) = states[before], states[after]
        found = ["machine"] if old_machine != machine else []
        changed = changed_steps(old_suite, suite)
        found += ["suite"] if changed is None or step in changed else []
        found += [f"base: {old_base} -> {new_base}"] if old_base and new_base and old_base != new_base else []
        changes[after] = tuple(found)
    return tuple(
        TimelineEntry(point, states[id_][2], changes.get(id_, ()))
        for point, id_ in zip(points, ids, strict=True)
    )


def _states(connection: Connection, ids: Sequence[int], base: str | None) -> dict[int, tuple[Any, ...]]:
    """Return the machine id, the suite's digest and the base's version of each session."""
    states: dict[int, tuple[Any, ...]] = {}
    for start in range(0, len(ids), IDS_PER_QUERY):
        chunk = ids[start : start + IDS_PER_QUERY]
        query = select(nights.c.session_id, nights.c.version).where(
            nights.c.session_id.in_(chunk), nights.c.branch == (base or "")
        )
        versions = {row[0]: row[1] for row in connection.execute(query)}
        rows = connection.execute(
            select(sessions.c.id, sessions.c.machine_id, sessions.c.suite_digest).where(
                sessions.c.id.in_(chunk)
            )
        )
        states |= {row[0]: (row[1], row[2], versions.get(row[0])) for row in rows}
    return states
