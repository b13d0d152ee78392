"""Taking rows into a history: what is missing is added, nothing is ever changed.

A source is read twice. First it is checked whole, against itself, the other sources and the history, with
every rule that the database has, and nothing is written; then each session is written with all its rows in a
transaction of its own, short enough for a night that runs meanwhile. Killed in between, it leaves whole
sessions, and the same merge again completes it.
"""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count, groupby, islice
from typing import Any

from sqlalchemy import Connection, TableClause, delete, insert, select

from build.errors import TidemarkError
from history.changes.confirmation import Confirms
from history.derive import derive, derive_missing
from history.errors import DamagedTextError, HistoryError, stored_object
from history.series.night import branches, configuration_name
from history.store.migrate import load
from history.store.records import SessionStatus
from history.store.schema import confirmations, gaps, metrics, nights, points, runs
from history.store.writer import Store
from history.transfer.database_source import rows_of_session
from history.transfer.portable_schema import (
    PLACE,
    PORTABLE,
    PROGRESS,
    FieldKind,
    Key,
    Portable,
    Reference,
    Row,
)
from history.transfer.row_source import INTEGER_LIMIT, Item, RowSource, TransferError
from suites.metrics import METRICS, PRIMARY, RETIRED


class Names:
    """What the rows of a database are called. Runs are known of one session at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ids: dict[str, dict[Key, int]] = {name: {} for name in PORTABLE}
        self._promises = count(-1, -1)

    def find(self, table: str, key: Key) -> int | None:
        """The id of a row; None when there is none."""
        ids = self._ids[table]
        if key not in ids and table != "runs":
            found = self._look_up(PORTABLE[table], key)
            if found is not None:
                ids[key] = found
        return ids.get(key)

    def promise(self, table: Portable, row: Row) -> None:
        """A row that will be there when it is referred to: until then it has an id below zero of its own."""
        if "id" in table.table.c and table.name != "dropped_rounds":
            self._ids[table.name].setdefault(table.key_of(row), next(self._promises))

    def of_reference(self, reference: Reference, row: Row) -> int | None:
        """What a row's fields point to. Raises LookupError that says what is not there."""
        key = tuple(row[name] for name in reference.fields)
        if reference.optional and None in key:
            return None
        found = self.find(reference.target, key)
        if found is None:
            raise LookupError(f"{reference.target} has no {' '.join(map(str, key))}")
        return found

    def enter_session(self, uid: str) -> int | None:
        """The id of a session, whose runs are known from now on; None when it is not there."""
        self._ids["runs"] = {}
        session_id = self.find("sessions", (uid,))
        if session_id is not None and session_id >= 0:
            query = select(runs.c.version, runs.c.step, runs.c.repetition, runs.c.id)
            for *key, run_id in self._connection.execute(query.where(runs.c.session_id == session_id)):
                self._ids["runs"][(uid, *key)] = run_id
        return session_id

    def _look_up(self, table: Portable, key: Sequence[object]) -> int | None:
        columns = table.table.c
        where = (columns[name] == value for name, value in zip(table.key, key, strict=True))
        return self._connection.execute(select(columns.id).where(*where)).scalar()


class Rehearsal:
    """An empty history of its own, whose rules are those of the migrations.

    It is a temporary database of SQLite, which lies in memory as long as it is small. References are not
    followed: ids are those of the history, or promised ones below zero, one for each row that is to come.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        for migration in load("sqlite"):
            for statement in migration.statements:
                connection.execute(statement)

    @contextmanager
    def group(self, uid: str) -> Iterator[None]:
        """Try out rows that belong together; those of a session, with its `uid`, are forgotten after it."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK" if uid else "COMMIT")

    def try_out(self, table: Portable, row: Row, local: Row) -> None:
        """Insert a row, whose columns in the history are `local`. Raises ValueError when that is refused."""
        # A dropped round is named by its place within the session alone.
        values = local | ({"id": row[PLACE]} if PLACE in row else {})
        statement = (
            f"INSERT INTO {table.name} ({', '.join(values)}) VALUES ({', '.join(map(':{}'.format, values))})"
        )
        try:
            self._connection.execute(statement, values)
        except sqlite3.IntegrityError as error:
            rule, _, which = str(error).partition(" constraint failed: ")
            if rule == "UNIQUE":
                key = " ".join(map(str, table.key_of(row)))
                raise ValueError(f"a row of {table.name} is there twice: {key}") from error
            raise ValueError(f"a row of {table.name} breaks a rule of the history: {which}") from error


@contextmanager
def rehearsal() -> Iterator[Rehearsal]:
    """A rehearsal, whose database is gone afterwards."""
    # An empty name is a temporary file, which SQLite begins to write when its cache is full.
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        yield Rehearsal(connection)


_VALUES: Mapping[str, tuple[str, ...]] = {
    "measurements": ("value",),
    "points": ("value",),
    "confirmations": ("level_before",),
    "change_series": ("level_before", "level_after"),
}
"""The fields of a table that hold values of the metric which the row names."""

_ANY = ("seed",)
"""Whole numbers that may be negative."""


def impossible(item: Item) -> str:
    """What is wrong with a row, by the first value in it that cannot be; empty when nothing is."""
    return next(_wrong(item), "")


def _wrong(item: Item) -> Iterator[str]:
    row, table = item.row, item.table
    for name in _VALUES.get(table.name, ()):
        yield from _refused(row["metric"], row[name])
    if table.name == "samples":
        yield from _refused(PRIMARY, row["qps"])
    if table.name == "dropped_rounds":
        yield from _wrong_rates(row)
    if table.name == "sessions":
        yield from _wrong_options(row)
    for column in table.fields.values():
        value = row[column.name]
        if column.kind is FieldKind.INTEGER and value is not None and value < 0 and column.name not in _ANY:
            yield f"{table.name}: {column.name} cannot be {value}"


def _refused(metric: str, value: float) -> Iterator[str]:
    """Of a metric that the code does not have any more, nothing is known."""
    if metric in METRICS and not METRICS[metric].is_plausible(value):
        yield METRICS[metric].refusal(value)


def _wrong_rates(row: Row) -> Iterator[str]:
    """What is wrong with the throughput by version of a dropped round."""
    for version, qps in stored_object(row["measured"]).items():
        if type(qps) not in (int, float) or (type(qps) is int and abs(qps) >= INTEGER_LIMIT):
            yield f"dropped_rounds: measured is no rate for {version}"
        else:
            yield from _refused(PRIMARY, qps)


def _wrong_options(row: Row) -> Iterator[str]:
    """What is wrong with the options of a session: its night could not be derived from them."""
    options = stored_object(row["options"])
    try:
        configuration_name(row)
        Confirms.of(options)
        named = options.get("branches", {})
        branches(options.get("versions", ()), named)
        texts = [*named.values(), *options.get("not_built", {}).values()]
    except (ValueError, TypeError, AttributeError, KeyError, TidemarkError) as error:
        reason = error.reason if isinstance(error, DamagedTextError) else str(error)
        yield f"the options of session {row['uid']} are not those of a session: {reason}"
        return
    if not all(isinstance(text, str) for text in texts):
        yield f"the options of session {row['uid']} are not those of a session: a branch or reason is no text"


def require_agreement(sources: Sequence[RowSource]) -> None:
    """Raises TransferError when two sources hold a row of one session that differs.

    Sessions that are the same everywhere, as in an export that is named twice, are compared by one digest for
    all of their rows; single rows are held only of those that are not. A session of which a source has a copy
    made while it ran is left out by the merge, and so is not compared.
    """
    if len(sources) < 2:
        return
    differing = _differing(sources)
    if not differing:
        return
    known: dict[tuple[str, Key], tuple[Row, str]] = {}
    for source in sources:
        for item in source.items():
            if session_of(item) in differing and item.table.immutable:
                place = f"{source.where}, {source.place(item)}"
                name = (item.table.name, item.table.key_of(item.row))
                before, where = known.setdefault(name, (item.row, place))
                require_same(item.table, item.row, before, place, where)


def session_of(item: Item) -> str:
    """The uid of the session that a row belongs to, or is; empty when it belongs to none."""
    if item.table.name == "sessions":
        return str(item.row["uid"])
    return str(item.row["session"]) if item.table.of_session else ""


def require_same(table: Portable, row: Row, other: Row, place: str, where: str) -> None:
    """Raises TransferError when two rows of one key differ, other than in how far a session came."""
    names = [
        name
        for name in row
        if row[name] != other[name] and not (table.name == "sessions" and name in PROGRESS)
    ]
    if names:
        key = " ".join(map(str, table.key_of(row)))
        said = "; ".join(f"{name} is {_short(row[name])}, not {_short(other[name])}" for name in names)
        raise TransferError(
            f"{table.name} {key} is there already and differs: {said}",
            where=f"{place}, against {where}",
            hint="two sessions never share a name: one of the two was changed; nothing of it was taken",
        )


def _differing(sources: Sequence[RowSource]) -> set[str]:
    """The sessions of which two sources hold different rows, apart from copies of a session that ran."""
    digests: defaultdict[str, set[int]] = defaultdict(set)
    progress: defaultdict[str, set[tuple[object, ...]]] = defaultdict(set)
    for source in sources:
        of_source: defaultdict[str, int] = defaultdict(int)
        for uid, item in _immutable(source):
            of_source[uid] ^= _digest(item)
            if item.table.name == "sessions":
                progress[uid].add(tuple(item.row[name] for name in PROGRESS))
        for uid, digest in of_source.items():
            digests[uid].add(digest)
    return {uid for uid, found in digests.items() if len(found) > 1 and len(progress[uid]) == 1}


def _immutable(source: RowSource) -> Iterator[tuple[str, Item]]:
    for item in source.items():
        if item.table.immutable and (uid := session_of(item)):
            yield uid, item


def _digest(item: Item) -> int:
    """Of one row, so that those of several can be combined in any order."""
    text = repr((item.table.name, sorted(item.row.items())))
    return int.from_bytes(hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=16).digest())


def _short(value: object) -> str:
    return repr(value)[:40]


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
