"""Taking rows into a history: what is missing is added, nothing is ever changed.

A source is read twice. First it is checked whole, against itself, the other sources and the history, with
every rule that the database has, and nothing is written; then each session is written with all its rows in a
transaction of its own, short enough for a night that runs meanwhile. Killed in between, it leaves whole
sessions, and the same merge again completes it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, TableClause, delete, insert, select

from history.derive import derive, derive_missing
from history.errors import HistoryError
from history.store.records import SessionStatus
from history.store.schema import confirmations, gaps, metrics, nights, points, runs
from history.store.writer import Store
from history.transfer.agreement import require_agreement, require_same, session_of
from history.transfer.database_source import rows_of_session
from history.transfer.id_map import Names
from history.transfer.plausibility import impossible
from history.transfer.portable_schema import PORTABLE, PROGRESS, Portable, Row
from history.transfer.rehearsal import Rehearsal, rehearsal
from history.transfer.row_source import Item, RowSource, TransferError
from suites.metrics import METRICS, RETIRED

CHUNK = 1000
"""Rows that are inserted at once."""


@dataclass
class Count:
    """Rows of one table."""

    added: int = 0
    there: int = 0
    """Were there already."""


@dataclass
class Merged:
    """What became of the rows of all sources."""

    counts: dict[str, Count] = field(default_factory=lambda: {name: Count() for name in PORTABLE})
    left_out: list[str] = field(default_factory=list)
    """Sessions that were not taken, and why."""

    derived: int = 0
    """Sessions whose nights were derived here."""


def merge(store: Store, sources: Sequence[RowSource], *, adopt_metrics: bool = False) -> Merged:
    """Take in what the history does not have yet. The same again adds nothing.

    `adopt_metrics` takes metrics that the code does not know too, as a copy of a whole history needs it.
    Raises TransferError, having written nothing, when a source is damaged, holds a metric or unit that is
    unknown here, or says something else of a session than the history.
    """
    for source in sources:
        with store.database.reading() as connection, rehearsal() as rehearsed:
            taking = _Taking(connection, source, adopt_metrics)
            for uid, group in _groups(source):
                with rehearsed.group(uid):
                    taking.check(uid, group, rehearsed)
    require_agreement(sources)
    merged = Merged()
    for source in sources:
        merged.left_out += source.left_out
        for uid, group in _groups(source):
            with _counted(merged), store.database.writing() as connection:
                _Taking(connection, source, adopt_metrics).take(uid, group, merged)
    with store.database.writing() as connection:
        merged.derived += derive_missing(connection)
    return merged


@contextmanager
def _counted(merged: Merged) -> Iterator[None]:
    """Say in the error of a transaction that failed, as on a full disk, what was written before it."""
    before = merged.counts["sessions"].added
    try:
        yield
    except HistoryError as error:
        taken = f"{before} sessions were taken whole; the same command takes the rest"
        error.hint = f"{error.hint}; {taken}" if error.hint else taken
        raise


def _groups(source: RowSource) -> Iterator[tuple[str, Iterator[Item]]]:
    """Rows that belong together: those of one session, or a stretch of those that belong to none.

    Raises TransferError when the rows of one session are not together.
    """
    ended: set[str] = set()
    for uid, group in groupby(source.items(), key=session_of):
        rows = iter(group)
        if uid in ended:
            first = next(rows)
            raise TransferError(
                f"the rows of session {uid} are not together",
                where=f"{source.where}, {source.place(first)}",
                hint="put them behind its row of sessions, as they were exported",
            )
        if uid:
            ended.add(uid)
        yield uid, rows


class _Taking:
    """One source on its way into one history, within one transaction."""

    def __init__(self, connection: Connection, source: RowSource, adopt_metrics: bool) -> None:
        self._connection = connection
        self._source = source
        self._adopt_metrics = adopt_metrics
        self._names = Names(connection)
        known = connection.execute(select(metrics.c.name, metrics.c.unit))
        self._units: dict[str, str] = {row.name: row.unit for row in known}

    def check(self, uid: str, group: Iterator[Item], rehearsed: Rehearsal) -> None:
        """Whether a group can be taken, by trying it out. Raises TransferError."""
        session_id, first, rest, refused = self._enter(uid, group)
        if first is not None and not refused:
            self._try_out(first, rehearsed)
        positions: dict[str, int] = {}
        for table, items in groupby(rest, key=lambda item: item.table):
            ours = self._ours(table, session_id)
            for item in items:
                if refused:
                    continue
                self._check_metric(item)
                self._check_position(item, positions)
                self._require_ours(item, ours)
                self._try_out(item, rehearsed)

    def _check_position(self, item: Item, positions: dict[str, int]) -> None:
        """Raises TransferError for a run whose step has another place in the suite than in earlier runs."""
        if item.table.name == "runs":
            step, place = item.row["step"], item.row["step_position"]
            if positions.setdefault(step, place) != place:
                raise self._error(item, f"step {step} has position {place}, and {positions[step]} before")

    def _try_out(self, item: Item, rehearsed: Rehearsal) -> None:
        """Whether the database would take a row, which is expected from now on. Raises TransferError."""
        local = self._local(item)
        # A copy of a whole history is one with all that an older Tidemark may have taken.
        if not self._adopt_metrics and (wrong := impossible(item)):
            raise self._error(item, wrong, "correct it; nothing was taken")
        try:
            rehearsed.try_out(item.table, item.row, local)
        except ValueError as error:
            raise self._error(item, str(error), "keep one of the rows; nothing was taken") from error
        self._names.promise(item.table, item.row)

    def take(self, uid: str, group: Iterator[Item], merged: Merged) -> None:
        """Write what is missing of a group that was checked."""
        session_id, first, rest, refused = self._enter(uid, group)
        had_rounds = session_id is not None and _has_rounds(self._connection, session_id)
        before = {name: merged.counts[name].added for name in ("runs", "measurements")}
        if refused:
            merged.left_out.append(f"session {uid} {refused}")
            return
        if first is not None:
            self._write(first.table, [first], {} if session_id is None else {(uid,): {}}, merged)
            session_id = self._names.enter_session(uid)
        for table, items in groupby(rest, key=lambda item: item.table):
            ours = self._ours(table, session_id)
            while chunk := list(islice(items, CHUNK)):
                self._write(table, chunk, ours, merged)
            if table.name == "runs":
                self._names.enter_session(uid)
        if session_id is not None:
            gained = any(merged.counts[name].added > added for name, added in before.items())
            merged.derived += _complete_night(self._connection, session_id, had_rounds and gained)

    def _enter(self, uid: str, group: Iterator[Item]) -> tuple[int | None, Item | None, Iterator[Item], str]:
        """The id of a group's session here, its own row, the rows behind that, and why it is not taken."""
        if not uid:
            return None, None, group, ""
        session_id = self._names.enter_session(uid)
        first = next(group)
        if first.table.name != "sessions":
            raise self._error(first, f"session {uid} has no row of its own before its rows")
        self._local(first)
        if first.row["status"] == SessionStatus.RUNNING:
            return session_id, first, group, "still runs"
        if session_id is None:
            return None, first, group, ""
        (ours,) = rows_of_session(self._connection, first.table, session_id)
        place = f"{self._source.where}, {self._source.place(first)}"
        require_same(first.table, first.row, ours, place, "the history")
        refused = ""
        if ours["status"] == SessionStatus.RUNNING:
            refused = "still runs here"
        elif any(ours[name] != first.row[name] for name in PROGRESS):
            refused = f"is {ours['status']} here, and {first.row['status']} there: a copy made while it ran"
        return session_id, first, group, refused

    def _ours(self, table: Portable, session_id: int | None) -> dict[Any, Row]:
        """What the history has already of a session in a table."""
        if session_id is None or not table.of_session:
            return {}
        return {table.key_of(row): row for row in rows_of_session(self._connection, table, session_id)}

    def _require_ours(self, item: Item, ours: dict[Any, Row]) -> None:
        before = ours.get(item.table.key_of(item.row))
        if before is not None and item.table.immutable:
            place = f"{self._source.where}, {self._source.place(item)}"
            require_same(item.table, item.row, before, place, "the history")

    def _write(self, table: Portable, chunk: Sequence[Item], ours: dict[Any, Row], merged: Merged) -> None:
        rows, count = [], merged.counts[table.name]
        for item in chunk:
            self._check_metric(item)
            row = self._local(item)
            if self._is_there(item, row, ours):
                count.there += 1
            else:
                rows.append(row)
        if rows:
            self._connection.execute(insert(table.table), rows)
            count.added += len(rows)

    def _is_there(self, item: Item, row: Row, ours: dict[Any, Row]) -> bool:
        table = item.table
        if table.of_session or table.name == "sessions":
            self._require_ours(item, ours if table.of_session else {})
            return table.key_of(item.row) in ours
        if table.name == "metrics":
            return item.row["name"] in self._units
        if table.name in _JOINED:
            columns = table.table.c
            same = (columns[name] == row[name] for name in _JOINED[table.name])
            return self._connection.execute(select(*columns).where(*same)).first() is not None
        return self._names.find(table.name, table.key_of(item.row)) is not None

    def _local(self, item: Item) -> Row:
        """The row with ids of this database. Raises TransferError when it names what is not there."""
        row = {name: item.row[name] for name in item.table.columns}
        try:
            for reference in item.table.references:
                row[reference.column] = self._names.of_reference(reference, item.row)
        except LookupError as error:
            raise self._error(item, f"a row of {item.table.name} names what is not there: {error}") from error
        return row

    def _check_metric(self, item: Item) -> None:
        """Raises TransferError for a metric or unit that is unknown."""
        if item.table.name == "metrics":
            name, unit = item.row["name"], item.row["unit"]
            known = METRICS[name].unit if name in METRICS else (RETIRED.get(name) or self._units.get(name))
            if known is None and not self._adopt_metrics:
                raise self._error(item, f"unknown metric: {name} ({unit})", _NEWER)
            if known not in (None, unit):
                raise self._error(item, f"unknown unit: {name} is in {unit}, and in {known} here", _NEWER)
        elif "metric" in item.row and not (self._adopt_metrics or item.row["metric"] in self._units):
            raise self._error(item, f"unknown metric: {item.row['metric']}", _NEWER)

    def _error(self, item: Item, what: str, hint: str = "") -> TransferError:
        return TransferError(
            what,
            where=f"{self._source.where}, {self._source.place(item)}",
            hint=hint or "export it again; nothing of it was taken",
        )


_JOINED = {
    "change_series": ("change_id", "series_id"),
    "acknowledgements": ("change_id", "happened_at"),
    "bisect_events": ("bisect_id", "number"),
    "pool_boxes": ("pool", "box"),
    "placements": ("pool", "suite", "configuration", "branch", "number"),
}
"""Tables without an id, and what names a row of them here."""

_NEWER = "update this checkout when a newer Tidemark wrote it; nothing of it was taken"


def _has_rounds(connection: Connection, session_id: int) -> bool:
    """Whether a session has runs: it has none when they were pruned."""
    return _has(connection, runs, session_id)


def _complete_night(connection: Connection, session_id: int, gained: bool) -> int:
    """Derive the night of a session that has none; and again when a session gained what it had no rounds of.

    Returns 1 when it was derived, else 0. A night whose rounds were pruned and come back stays as it is.
    """
    if not _has_rounds(connection, session_id):
        return 0
    if _has(connection, confirmations, session_id):
        return 0
    if not _has(connection, nights, session_id):
        return int(derive(connection, session_id))
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
    for table in (nights, points, gaps):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    derive(connection, session_id)
    now = set(
        connection.execute(select(points.c.series_id).where(points.c.session_id == session_id)).scalars()
    )
    lost = [row for row in kept if row["series_id"] not in now]
    if lost:
        connection.execute(insert(points), lost)


def _has(connection: Connection, table: TableClause, session_id: int) -> bool:
    query = select(table.c.session_id).where(table.c.session_id == session_id).limit(1)
    return connection.execute(query).first() is not None
