"""The one way into another history: what is missing there is added by natural keys, in one transaction.

The rows of each source are checked one by one and written into temporary tables of the receiving database, in
the fields that travel, without any lock. Then writers wait while ids are looked up there and what is missing
is inserted, by a few statements for each table. A source that contradicts the history, another source or
itself, or that breaks a rule, is refused as a whole, and so is the merge. Killed in the middle, it leaves the
history as it was.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    ScalarSelect,
    Table,
    Text,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from build.errors import TidemarkError
from history.changes.confirmation import Confirms
from history.derive import derive, derive_missing
from history.errors import DamagedTextError, stored_object
from history.series.night import branches, configuration_name
from history.store.records import SessionStatus
from history.store.schema import confirmations, gaps, metrics, nights, points, runs, sessions
from history.store.writer import Store
from history.transfer.database_source import rows_of_session
from history.transfer.portable_schema import PLACE, PORTABLE, PROGRESS, FieldKind, Portable, Row
from history.transfer.row_source import INTEGER_LIMIT, Item, RowSource, TransferError
from suites.metrics import METRICS, PRIMARY, RETIRED

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
    for name in _counts(table.name):
        if row[name] is not None and row[name] < 0:
            yield f"{table.name}: {name} cannot be {row[name]}"


@cache  # rows are many
def _counts(table: str) -> tuple[str, ...]:
    """The whole numbers of a table that are never negative."""
    fields = PORTABLE[table].fields.values()
    return tuple(known.name for known in fields if known.kind is FieldKind.INTEGER and known.name not in _ANY)


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


CHUNK = 1000
"""Rows that are inserted at once."""

_NEWER = "update this checkout when a newer Tidemark wrote it; nothing of it was taken"


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
    merged = Merged()
    with store.database.reading() as connection:
        known = connection.execute(select(metrics.c.name, metrics.c.unit))
        units: dict[str, str] = {row.name: row.unit for row in known}
    with store.database.writing_later() as (connection, lock):
        incoming: list[_Incoming] = []
        for number, source in enumerate(sources):
            incoming.append(_Incoming(connection, source, number))
            incoming[-1].stage(units, adopt_metrics)
            merged.left_out += source.left_out
        lock()
        for number, staged in enumerate(incoming):
            staged.take(merged, incoming[:number])
        merged.derived += derive_missing(connection)
        for staged in incoming:
            staged.drop()
    return merged


_TYPES: Mapping[FieldKind, type[Any]] = {
    **dict.fromkeys(FieldKind, Text),
    FieldKind.INTEGER: BigInteger,
    FieldKind.REAL: Float,
    FieldKind.BYTES: LargeBinary,
}

_ARRAYS: Mapping[type, str] = {
    BigInteger: "bigint[]",
    Float: "double precision[]",
    LargeBinary: "bytea[]",
    Text: "text[]",
}
"""By the type of a column, that of an array of its values in Postgres."""

ROW, ORDER = "incoming_row", "incoming_order"
"""Columns of a temporary table: where a row stood in its source, and in which order all came."""


@cache  # statements are compiled once for each table
def _staging(table: Portable, number: int) -> Table:
    """The temporary table of a source's rows: the fields that travel, and the ids that they stand for."""
    fields = (Column(name, _TYPES[known.kind]()) for name, known in table.fields.items())
    return Table(
        f"incoming_{number}_{table.name}",
        MetaData(),
        *(Column(name, BigInteger()) for name in (ROW, ORDER)),
        *fields,
        *(Column(reference.column, BigInteger()) for reference in table.references),
        PrimaryKeyConstraint(*table.key),
        prefixes=["TEMPORARY"],
        sqlite_with_rowid=False,
    )


class _Incoming:
    """The rows of one source, in temporary tables of a history."""

    def __init__(self, connection: Connection, source: RowSource, number: int) -> None:
        self._connection, self._source, self._number = connection, source, number
        self._waiting: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._held: dict[str, int] = {}
        """The tables that have rows, and how many."""
        self._order = 0

    # --- staging

    def stage(self, units: Mapping[str, str], adopt_metrics: bool) -> None:
        """Check every row of the source, and write it into its temporary table. Raises TransferError."""
        known = dict(units)
        positions: dict[tuple[str, str], int] = {}
        for item in self._source.items():
            self._check_metric(item, known, adopt_metrics)
            # A copy of a whole history is one with all that an older Tidemark may have taken.
            if not adopt_metrics and (wrong := impossible(item)):
                raise self._error(item.table, item.row, item.number, wrong, "correct it; nothing was taken")
            if item.table.name == "runs":
                step, place = item.row["step"], item.row["step_position"]
                if (before := positions.setdefault((item.row["session"], step), place)) != place:
                    said = f"step {step} has position {place}, and {before} before"
                    raise self._error(item.table, item.row, item.number, said)
            self._order += 1
            waiting = self._waiting[item.table.name]
            waiting.append({ROW: item.number, ORDER: self._order, **item.row})
            if len(waiting) == CHUNK:
                self._flush(item.table)
        for name in list(self._waiting):
            self._flush(PORTABLE[name])
        if self._connection.dialect.name == "postgresql":
            for name in self._held:
                self._connection.exec_driver_sql(f"ANALYZE {self._staged(PORTABLE[name]).name}")

    def _flush(self, table: Portable) -> None:
        rows = self._waiting.pop(table.name, [])
        if not rows:
            return
        staged = self._staged(table)
        if table.name not in self._held:
            staged.create(self._connection)
        self._held[table.name] = self._held.get(table.name, 0) + len(rows)
        try:
            with self._connection.begin_nested():
                _insert_rows(self._connection, staged, rows)
        except IntegrityError:
            for row in rows:
                try:
                    with self._connection.begin_nested():
                        self._connection.execute(insert(staged), row)
                except IntegrityError as error:
                    key = " ".join(map(str, table.key_of(row)))
                    said = f"a row of {table.name} is there twice: {key}"
                    hint = "keep one of the rows; nothing was taken"
                    raise self._error(table, row, row[ROW], said, hint) from error
            raise

    def _check_metric(self, item: Item, units: dict[str, str], adopt_metrics: bool) -> None:
        """Raises TransferError for a metric or unit that is unknown."""
        unknown = ""
        if item.table.name == "metrics":
            name, unit = item.row["name"], item.row["unit"]
            known = METRICS[name].unit if name in METRICS else (RETIRED.get(name) or units.get(name))
            if known is None and not adopt_metrics:
                unknown = f"unknown metric: {name} ({unit})"
            elif known not in (None, unit):
                unknown = f"unknown unit: {name} is in {unit}, and in {known} here"
        elif "metric" in item.row and not (adopt_metrics or item.row["metric"] in units):
            unknown = f"unknown metric: {item.row['metric']}"
        if unknown:
            raise self._error(item.table, item.row, item.number, unknown, _NEWER)

    # --- taking

    def take(self, merged: Merged, earlier: Sequence["_Incoming"]) -> None:
        """Insert what is missing, and derive what follows from it; `earlier` are the sources before this one.

        Writers have to wait meanwhile. Raises TransferError.
        """
        self._leave_out(merged)
        had_rounds = self._with_rounds()
        gained: set[str] = set()
        for name in PORTABLE:
            if name not in self._held:
                continue
            table = PORTABLE[name]
            self._look_up(table)
            if table.immutable:
                self._require_agreement(table, earlier)
            if name in ("runs", "measurements"):
                gained |= self._gaining(table)
            self._insert_missing(table, merged.counts[name])
        if had_rounds & gained:
            its = sessions.c.id
            query = select(its).where(
                sessions.c.uid.in_(had_rounds & gained),
                its.in_(select(nights.c.session_id)),
                its.not_in(select(confirmations.c.session_id)),
            )
            for session_id in self._connection.execute(query.order_by(sessions.c.started_at)).scalars().all():
                _derive_again(self._connection, session_id)
                merged.derived += 1

    def drop(self) -> None:
        """Drop the temporary tables, which a connection would keep."""
        for name in self._held:
            self._staged(PORTABLE[name]).drop(self._connection)

    def place_of(self, table: Portable, key: Mapping[str, Any]) -> str:
        """Where a row with a key stood in this source; empty when it has none."""
        if table.name not in self._held:
            return ""
        staged = self._staged(table)
        row = self._connection.execute(
            select(staged).where(*(staged.c[name] == value for name, value in key.items()))
        )
        found = row.mappings().first()
        return "" if found is None else self._place(table, dict(found), found[ROW])

    def _leave_out(self, merged: Merged) -> None:
        """Leave out the sessions that run, or of which one side has a copy that was made while they ran."""
        if "sessions" not in self._held:
            return
        staged = self._staged(PORTABLE["sessions"])
        names = [staged.c[name].label(f"their_{name}") for name in PROGRESS]
        query = select(staged.c.uid, *names, *(sessions.c[name] for name in PROGRESS)).join_from(
            staged, sessions, sessions.c.uid == staged.c.uid, isouter=True
        )
        refused = []
        for row in self._connection.execute(query.order_by(staged.c[ORDER])):
            reason = _why_left_out(row)
            if reason:
                merged.left_out.append(f"session {row.uid} {reason}")
                refused.append(row.uid)
        for name in self._held if refused else ():
            table = PORTABLE[name]
            if table.name == "sessions" or table.of_session:
                its = self._staged(table)
                column = its.c.uid if table.name == "sessions" else its.c.session
                self._held[name] -= self._connection.execute(delete(its).where(column.in_(refused))).rowcount

    def _with_rounds(self) -> set[str]:
        """The sessions of the source of which the history has rounds: it has none of those it pruned."""
        if "sessions" not in self._held:
            return set()
        staged = self._staged(PORTABLE["sessions"])
        query = select(sessions.c.uid).where(
            sessions.c.uid.in_(select(staged.c.uid)), exists().where(runs.c.session_id == sessions.c.id)
        )
        return set(self._connection.execute(query).scalars())

    def _look_up(self, table: Portable) -> None:
        """Write the ids that the rows name. Raises TransferError for a row that names what is not there."""
        if not table.references:
            return
        staged = self._staged(table)
        ids = {}
        for reference in table.references:
            target = PORTABLE[reference.target]
            given = {key: staged.c[name] for key, name in zip(target.key, reference.fields, strict=True)}
            ids[reference.column] = _id_of(target, given, staged)
        self._connection.execute(update(staged).values(ids))
        for reference in table.references:
            fields = [staged.c[name] for name in reference.fields]
            lost = [staged.c[reference.column].is_(None), *(column.is_not(None) for column in fields)]
            row = self._first(staged, and_(*lost))
            if row is not None:
                key = " ".join(str(row[name]) for name in reference.fields)
                said = f"a row of {table.name} names what is not there: {reference.target} has no {key}"
                raise self._error(table, row, row[ROW], said)

    def _require_agreement(self, table: Portable, earlier: Sequence["_Incoming"]) -> None:
        """Raises TransferError when the history has another row under the name of one."""
        staged, ours = self._staged(table), _ours(table)
        key = _local_key(table)
        left = {*key, *(PROGRESS if table.name == "sessions" else ())}
        compared = [name for name in _local_columns(table) if name not in left]
        differs = or_(*(ours.c[name].is_distinct_from(staged.c[name]) for name in compared))
        query = (
            select(staged)
            .join_from(staged, ours, and_(*(ours.c[name] == staged.c[name] for name in key)))
            .where(differs)
            .order_by(staged.c[ORDER])
            .limit(1)
        )
        found = self._connection.execute(query).mappings().first()
        if found is None:
            return
        row = {name: found[name] for name in table.fields}
        uid = row["uid"] if table.name == "sessions" else row["session"]
        session_id = self._connection.execute(select(sessions.c.id).where(sessions.c.uid == uid)).scalar_one()
        named = {name: row[name] for name in table.key}
        (before,) = (
            other
            for other in rows_of_session(self._connection, table, session_id)
            if table.key_of(other) == table.key_of(row)
        )
        names = [
            name
            for name in row
            if row[name] != before[name] and not (table.name == "sessions" and name in PROGRESS)
        ]
        shown = " ".join(map(str, table.key_of(row)))
        said = "; ".join(f"{name} is {_short(row[name])}, not {_short(before[name])}" for name in names)
        places = filter(None, (source.place_of(table, named) for source in earlier))
        raise TransferError(
            f"{table.name} {shown} is there already and differs: {said}",
            where=f"{self._place(table, row, found[ROW])}, against {next(places, 'the history')}",
            hint="two sessions never share a name: one of the two was changed; nothing of it was taken",
        )

    def _missing(self, table: Portable) -> ColumnElement[bool]:
        staged, ours = self._staged(table), _ours(table)
        return ~exists().where(*(ours.c[name] == staged.c[name] for name in _local_key(table)))

    def _gaining(self, table: Portable) -> set[str]:
        """The sessions that get rows of a table."""
        staged = self._staged(table)
        query = select(staged.c.session).where(self._missing(table)).distinct()
        return set(self._connection.execute(query).scalars())

    def _insert_missing(self, table: Portable, count: Count) -> None:
        """Insert the rows that the history lacks. Raises TransferError for one that breaks a rule of it."""
        staged = self._staged(table)
        names = _local_columns(table)
        missing = select(*(staged.c[name] for name in names)).where(self._missing(table))
        if "id" in table.table.c:  # which is in order of age
            missing = missing.order_by(staged.c[ORDER])
        try:
            with self._connection.begin_nested():
                statement = insert(table.table).from_select(names, missing)
                # Else the driver of Postgres says -1.
                added = self._connection.execute(
                    statement, execution_options={"preserve_rowcount": True}
                ).rowcount
        except IntegrityError:
            self._refuse(table)
            raise
        count.added += added
        count.there += self._held[table.name] - added

    def _refuse(self, table: Portable) -> None:
        """Raises TransferError for the first row that the history does not take."""
        staged = self._staged(table)
        missing = select(staged).where(self._missing(table)).order_by(staged.c[ORDER])
        for found in self._connection.execute(missing).mappings().all():
            try:
                with self._connection.begin_nested():
                    row = {name: found[name] for name in _local_columns(table)}
                    self._connection.execute(insert(table.table), row)
            except IntegrityError as error:
                said = str(error.orig).splitlines()[0]
                rule = said.partition(" constraint failed: ")[2] or said
                said = f"a row of {table.name} breaks a rule of the history: {rule}"
                hint = "keep one of the rows; nothing was taken"
                raise self._error(table, dict(found), found[ROW], said, hint) from error

    def _first(self, staged: Table, which: ColumnElement[bool]) -> dict[str, Any] | None:
        query = select(staged).where(which).order_by(staged.c[ORDER]).limit(1)
        found = self._connection.execute(query).mappings().first()
        return None if found is None else dict(found)

    def _staged(self, table: Portable) -> Table:
        return _staging(table, self._number)

    def _place(self, table: Portable, row: Row, number: int) -> str:
        item = Item(table, {name: row[name] for name in table.fields}, number)
        return f"{self._source.where}, {self._source.place(item)}"

    def _error(self, table: Portable, row: Row, number: int, what: str, hint: str = "") -> TransferError:
        hint = hint or "export it again; nothing of it was taken"
        return TransferError(what, where=self._place(table, row, number), hint=hint)


def _insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, which have the same columns.

    On Postgres each column is one array: a statement for each row would take ten times as long, most of it
    in this process.
    """
    names = list(rows[0])
    if connection.dialect.name != "postgresql":
        places = ", ".join("?" * len(names))
        values = [tuple(row[name] for name in names) for row in rows]
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})", values)
        return
    arrays = ", ".join(f"CAST(:{name} AS {_ARRAYS[type(table.c[name].type)]})" for name in names)
    statement = text(f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})")
    connection.execute(statement, {name: [row[name] for row in rows] for name in names})


def _local_columns(table: Portable) -> list[str]:
    """The columns of a row here, but for an id that it gets here."""
    return [*table.columns, *(reference.column for reference in table.references)]


def _local_key(table: Portable) -> list[str]:
    """The columns that name a row here."""
    ids = [reference.column for reference in table.references if set(reference.fields) <= set(table.key)]
    named = {name for reference in table.references for name in reference.fields}
    return [*ids, *(name for name in table.key if name not in named)]


@cache
def _ours(table: Portable) -> FromClause:
    """The rows of a table here; dropped rounds with their place, which is their name within a session."""
    if PLACE not in table.fields:
        return table.table.alias(f"our_{table.name}")
    stored = table.table.c
    place = func.row_number().over(partition_by=stored.session_id, order_by=stored.id).label(PLACE)
    return select(table.table, place).subquery(f"our_{table.name}")


def _id_of(target: Portable, given: Mapping[str, ColumnElement[Any]], staged: Table) -> ScalarSelect[Any]:
    """The id of the row of a table whose key is `given` by columns of a temporary table."""
    row = target.table.alias()
    named = [row.c[name] == given[name] for name in target.key if name in target.columns]
    for reference in target.references:
        if set(reference.fields) <= set(target.key):
            further = PORTABLE[reference.target]
            keys = {key: given[name] for key, name in zip(further.key, reference.fields, strict=True)}
            named.append(row.c[reference.column] == _id_of(further, keys, staged))
    return select(row.c.id).where(*named).correlate(staged).scalar_subquery()


def _why_left_out(row: Any) -> str:
    """Why a session is not taken; empty when it is. `row` says how far it came there, and here if it is."""
    if row.their_status == SessionStatus.RUNNING:
        return "still runs"
    if row.status is None or (row.status, row.ended_at) == (row.their_status, row.their_ended_at):
        return ""
    if row.status == SessionStatus.RUNNING:
        return "still runs here"
    return f"is {row.status} here, and {row.their_status} there: a copy made while it ran"


def _short(value: object) -> str:
    return repr(value)[:40]


def _derive_again(connection: Connection, session_id: int) -> None:
    """Derive the night of a session that gained rounds; what was derived of rounds that were pruned stays."""
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
