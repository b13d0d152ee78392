"""One series night by night, with what else changed between the nights."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, select

from build.errors import TidemarkError
from history.series.inventory import InventoryFilter
from history.series.series import AT_ONCE, Point, SeriesKey, at_place, base_branch, find, read
from history.store.schema import nights, sessions

SHOWN_SERIES = 20
"""Of several that match as many are listed."""


class SeriesError(TidemarkError):
    """No series is as described, or several are."""


@dataclass(frozen=True)
class TimelineEntry:
    """One night, and what is not as it was the night before."""

    point: Point
    base_version: str | None
    """Which version of the base was measured; None without a base in this night."""

    changes: tuple[str, ...]
    """Of machine, suite and base."""


@dataclass(frozen=True)
class Timeline:
    """A series over its nights."""

    key: SeriesKey
    base: str | None
    """The branch that values are relative to; None when the series is the base itself."""

    entries: tuple[TimelineEntry, ...]


def read_timeline(
    connection: Connection, wanted: InventoryFilter, base: str | None = None, since: datetime | None = None
) -> Timeline:
    """The series that is as described. Raises SeriesError when there is none, or more than one.

    Relative to `base`, else to the base of the latest night in which the branch itself was not the base.
    """
    key = _the_one(connection, wanted, base)
    against = base or _base_of(connection, key)
    if against == key.branch:
        against = None
    points = read(connection, key, against, since)
    return Timeline(key, against, _entries(connection, points, against))


def _the_one(connection: Connection, wanted: InventoryFilter, base: str | None) -> SeriesKey:
    found = find(connection, **vars(wanted))
    if not found:
        raise SeriesError("no series is like that", hint="./tidemark history show lists what there is")
    bases = {place: base or base_branch(connection, place) for place in {key.place for key in found}}
    # Whoever does not name a branch hardly means the base, whose own ratio says nothing.
    others = [key for key in found if key.branch != bases[key.place]]
    if len(found) == 1 or (wanted.branch is None and len(others) == 1):
        return found[0] if len(found) == 1 else others[0]
    lines = [f"\n    {_options(key)}" for key in found[:SHOWN_SERIES]]
    more = f"\n    and {len(found) - SHOWN_SERIES} more" if len(found) > SHOWN_SERIES else ""
    raise SeriesError(
        f"{len(found)} series are like that:{''.join(lines)}{more}",
        hint="choose one by adding these options",
    )


def _base_of(connection: Connection, key: SeriesKey) -> str | None:
    mine, its_base = nights.alias("mine"), nights.alias("base")
    query = (
        select(its_base.c.branch)
        .join_from(mine, its_base, its_base.c.session_id == mine.c.session_id)
        .where(
            at_place(mine, key.place),
            mine.c.branch == key.branch,
            mine.c.is_base == 0,
            its_base.c.is_base == 1,
        )
        .order_by(mine.c.started_at.desc(), mine.c.session_id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def _options(key: SeriesKey) -> str:
    place = key.place
    return (
        f"--machine {place.box} --suite {place.suite} --configuration '{place.configuration}' "
        f"--branch {key.branch}"
    )


def _entries(connection: Connection, points: Sequence[Point], base: str | None) -> tuple[TimelineEntry, ...]:
    ids = [point.night.session_id for point in points]
    states = _states(connection, ids, base)
    changes: dict[int, tuple[str, ...]] = {}
    for before, after in pairwise(ids):
        changes[after] = tuple(
            f"{what}{f': {old} -> {new}' if what == 'base' else ''}"
            for what, old, new in zip(
                ("machine", "suite", "base"), states[before], states[after], strict=True
            )
            if old != new and (what != "base" or (old and new))
        )
    return tuple(
        TimelineEntry(point, states[id_][2], changes.get(id_, ()))
        for point, id_ in zip(points, ids, strict=True)
    )


def _states(connection: Connection, ids: Sequence[int], base: str | None) -> dict[int, tuple[Any, ...]]:
    """Machine, suite's digest and the base's version of each session."""
    found: dict[int, tuple[Any, ...]] = {}
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        query = select(nights.c.session_id, nights.c.version).where(
            nights.c.session_id.in_(some), nights.c.branch == (base or "")
        )
        versions = {row[0]: row[1] for row in connection.execute(query)}
        rows = connection.execute(
            select(sessions.c.id, sessions.c.machine_id, sessions.c.suite_digest).where(
                sessions.c.id.in_(some)
            )
        )
        found |= {row[0]: (row[1], row[2], versions.get(row[0])) for row in rows}
    return found
