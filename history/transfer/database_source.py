"""Rows of a history's database in the fields that travel."""

import sys
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, false, func, or_, select

from history.errors import RESTORE
from history.open import readable_database
from history.store.database import Database
from history.store.migrate import require_schema
from history.store.records import SessionStatus
from history.store.schema import (
    calibrations,
    change_series,
    measurements,
    metrics,
    points,
    runs,
    samples,
    series,
    sessions,
)
from history.store.schema_status import newest
from history.store.sqlite.soundness import require_measured
from history.timestamps import to_text
from history.transfer.portable_schema import (
    PLACE,
    PORTABLE,
    Portable,
    Row,
    after_sessions,
    before_sessions,
    of_sessions,
)
from history.transfer.row_source import Item, TransferError, checked
from suites.metrics import METRICS

Columns = dict[str, ColumnElement[Any]]

FETCHED = 1000
"""Rows that are held at once."""

BULK = {"measurements": measurements.c.value, "samples": samples.c.qps, "points": points.c.value}
"""Tables that hold nearly all rows of a history, and the one number of each of their rows."""


@dataclass(frozen=True)
class Selection:
    """Which sessions travel; None leaves the choice open."""

    suite: str | None = None
    since: datetime | None = None
    """The earliest start."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.suite is None and self.since is None

    def conditions(self) -> list[ColumnElement[bool]]:
        """On `sessions`."""
        found: list[ColumnElement[bool]] = []
        if self.suite is not None:
            found.append(sessions.c.suite == self.suite)
        if self.since is not None:
            found.append(sessions.c.started_at >= to_text(self.since))
        return found


class StoredRows:
    """A history as a source, within one transaction: what is written meanwhile is not seen.

    Sessions that run are left out: they would have to be completed elsewhere.
    """

    def __init__(self, connection: Connection, where: str, selection: Selection | None = None) -> None:
        self._connection = connection
        self._selection = selection or Selection()
        self._where = where

    @property
    def where(self) -> str:
        """The path or URL."""
        return self._where

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sessions that run."""
        running = sessions.c.status == SessionStatus.RUNNING
        query = select(sessions.c.uid).where(running, *self._selection.conditions())
        return tuple(
            f"session {uid} still runs"
            for uid in self._connection.execute(query.order_by(sessions.c.uid)).scalars()
        )

    def place(self, item: Item) -> str:
        """Where a row stood."""
        return f"row {item.number} of {item.table.name}"

    def items(self) -> Iterator[Item]:
        """All rows. Raises HistoryError for one that cannot be read, and where measurements are missing."""
        chosen = select(sessions.c.id).where(
            sessions.c.status != SessionStatus.RUNNING, *self._selection.conditions()
        )
        require_measured(self._connection, self._where, sessions.c.id.in_(chosen))
        for table in before_sessions():
            yield from self._rows(table, *self._needed(table, chosen))
        yield from self._rows(PORTABLE["sessions"], sessions.c.id.in_(chosen))
        for table in of_sessions():
            yield from self._rows(table, session_of(table).in_(chosen), *_within(table, chosen))
        for table in after_sessions():
            yield from self._rows(table, *self._needed(table, chosen))

    def require_whole(self) -> None:
        """Raises HistoryError when a row cannot be read, also of a session that runs, or numbers are missing.

        The rows of BULK are not read one by one: there `require_sound` has SQLite compare the kind of every
        value with that of its column, and find what belongs to nothing.
        """
        require_measured(self._connection, self._where)
        for name, column in BULK.items():
            infinite = select(column).where(func.abs(column) > sys.float_info.max).limit(1)
            if self._connection.execute(infinite).first():
                raise TransferError(
                    f"the history is damaged: {name} holds a number that is infinite",
                    where=self._where,
                    hint=RESTORE,
                )
        for table in PORTABLE.values():
            if table.name not in BULK:
                for _ in self._rows(table):
                    pass

    def _rows(self, table: Portable, *conditions: ColumnElement[bool]) -> Iterator[Item]:
        query = selected(table).where(*conditions)
        streamed = self._connection.execution_options(yield_per=FETCHED)
        for number, row in enumerate(streamed.execute(query).mappings(), start=1):
            if table.name in BULK:  # which SQLite's own check, of the opened file, knows to be what they say
                yield Item(table, dict(row), number)
                continue
            try:
                yield Item(table, checked(table, dict(row)), number)
            except ValueError as error:
                raise TransferError(
                    f"the history holds what it should not: {error}",
                    where=f"{self._where}, row {number} of {table.name}",
                    hint="it was not written by Tidemark; mend it, or leave its session out",
                ) from error

    def _needed(self, table: Portable, chosen: Select[Any]) -> list[ColumnElement[bool]]:
        """What limits a table that several sessions share."""
        if table.name == "metrics":
            return [self._known_or_used()]
        if table.name in ("changes", "change_series", "acknowledgements"):
            columns = table.table.c
            change = columns.id if table.name == "changes" else columns.change_id
            return [change.not_in(_reaching_out(chosen))]
        if self._selection.is_all:
            return []
        if table.name in ("alerts", "notices", "bisects", "bisect_events"):
            # Of the whole history's changes, of sessions of any suite.
            return [false()]
        if table.name == "machines":
            return [table.table.c.id.in_(select(sessions.c.machine_id).where(sessions.c.id.in_(chosen)))]
        if table.name in ("builds", "configurations"):
            name = {"builds": "build_id", "configurations": "configuration_id"}[table.name]
            found: ColumnElement[bool] = table.table.c.id.in_(
                select(runs.c[name]).where(runs.c.session_id.in_(chosen))
            )
            if table.name == "builds":
                nights = PORTABLE["nights"].table
                pruned = select(nights.c.build_id).where(nights.c.session_id.in_(chosen))
                found = or_(found, table.table.c.id.in_(pruned))
            return [found]
        if table.name != "series":
            raise ValueError(f"no rule says which rows of {table.name} a selection of sessions needs")
        return [series.c.id.in_(select(points.c.series_id).where(points.c.session_id.in_(chosen)))]

    def _known_or_used(self) -> ColumnElement[bool]:
        """Metrics that the code has, and of those that are gone from it the ones with values."""
        gone = select(metrics.c.name).where(metrics.c.name.not_in(METRICS))
        used = [
            name
            for name in self._connection.execute(gone).scalars().all()
            if any(
                self._connection.execute(
                    select(table.c.metric).where(table.c.metric == name).limit(1)
                ).first()
                for table in (measurements, calibrations, series)
            )
        ]
        return metrics.c.name.in_([*METRICS, *used])


def selected(table: Portable) -> Select[Any]:
    """The rows of a table in the fields that travel, in a lasting order."""
    columns, joined = _named(table, table.table, table.table, table.fields)
    if PLACE in table.fields:
        stored = table.table.c
        columns[PLACE] = func.row_number().over(partition_by=stored.session_id, order_by=stored.id)
    fields = (columns[name].label(name) for name in table.fields)
    return select(*fields).select_from(joined).order_by(*_order(table))


def session_of(table: Portable) -> ColumnElement[Any]:
    """In `selected`, the id of the session that a row of a session's table belongs to, or is."""
    columns = table.table.c
    if table.name == "sessions":
        return columns.id
    if "session_id" in columns:
        return columns.session_id
    return _alias(table, "run_id").c.session_id


_ALIASES: dict[tuple[str, str], FromClause] = {}


def _alias(table: Portable, column: str) -> FromClause:
    """The table that a column points to, under a name of its own: several may point to one."""
    reference = next(candidate for candidate in table.references if candidate.column == column)
    target = PORTABLE[reference.target].table
    return _ALIASES.setdefault((table.name, column), target.alias(f"{table.name}_{column}"))


def _named(
    table: Portable, source: FromClause, joined: FromClause, wanted: Collection[str], *, outer: bool = False
) -> tuple[Columns, FromClause]:
    """The wanted fields of a table's rows by name, and the join that has them."""
    columns: Columns = {name: source.c[name] for name in table.columns}
    for reference in table.references:
        if not set(reference.fields) <= set(wanted):
            continue
        target, optional = PORTABLE[reference.target], outer or reference.optional
        alias = _alias(table, reference.column)
        joined = joined.join(alias, alias.c.id == source.c[reference.column], isouter=optional)
        found, joined = _named(target, alias, joined, target.key, outer=optional)
        columns |= {name: found[key] for name, key in zip(reference.fields, target.key, strict=True)}
    return columns, joined


def _order(table: Portable) -> list[ColumnElement[Any]]:
    """By age where there is one, else by what the rows are stored by."""
    columns = table.table.c
    if table.name == "sessions":
        return [columns.started_at, columns.uid]
    if "id" in columns:
        return [columns.id]
    local = [reference.column for reference in table.references if set(reference.fields) <= set(table.key)]
    return [columns[name] for name in (*local, *(name for name in table.key if name in columns))]


def _within(table: Portable, chosen: Select[Any]) -> list[ColumnElement[bool]]:
    """What limits the rows of a session that name other sessions: they cannot travel without these."""
    columns = table.table.c
    return [columns[name].in_(chosen) for name in ("before_id", "after_id") if name in columns]


def _reaching_out(chosen: Select[Any]) -> Select[Any]:
    """Changes that name a session which is not chosen: they cannot travel without it."""
    names = ("last_before_id", "first_after_id", "raised_id", "gone_id")
    outside = [change_series.c[name].not_in(chosen) for name in names]  # null is not outside
    return select(change_series.c.change_id).where(or_(*outside))


@contextmanager
def opened(target: Path | str, selection: Selection | None = None) -> Iterator[StoredRows]:
    """Another history, for reading only. Raises as `readable_database`."""
    with readable(target) as database, database.reading() as connection:
        if database.dialect == "postgresql":  # as it is in SQLite anyway: one state for all queries
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield StoredRows(connection, database.where, selection)


@contextmanager
def readable(target: Path | str) -> Iterator[Database]:
    """The database of a history that is there, with the newest schema, and sound, however large.

    Raises as `readable_database`.
    """
    with closing(readable_database(target, most_bytes=None)) as database:
        require_schema(database, newest())
        yield database


def rows_of_session(connection: Connection, table: Portable, session_id: int) -> Iterator[Row]:
    """A session's rows in one table, as they travel."""
    query = selected(table).where(session_of(table) == session_id)
    yield from (dict(row) for row in connection.execute(query).mappings())
