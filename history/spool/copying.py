"""Copying one session of the box to the history on a server: what is missing there, in one transaction.

Everything is read on the box before, so that others who write wait for a few statements only.

The box is the only one that writes its session, so what it says of it holds: how far it came, and which runs
it has. The same copy again adds nothing, whatever became of an earlier one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    LargeBinary,
    TableClause,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from history.errors import RecordError
from history.store.records import SessionStatus
from history.store.schema import (
    StoredText,
    activities,
    builds,
    calibrations,
    configurations,
    confirmations,
    counted_profiles,
    dropped_rounds,
    gaps,
    kinds,
    machines,
    measurements,
    nights,
    points,
    profiles,
    runs,
    samples,
    sessions,
    wait_profiles,
)
from history.store.session_writes import intern

_ARRAYS: Mapping[type, str] = {
    BigInteger: "bigint[]",
    Float: "double precision[]",
    LargeBinary: "bytea[]",
    StoredText: "text[]",
}
"""By the type of a column, that of an array of its values in Postgres."""


def insert_rows(connection: Connection, table: TableClause, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows, which have the same columns, and return their number.

    On Postgres each column is one array: a statement for each row would take ten times as long, most of it
    in this process.
    """
    if not rows:
        return 0
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), [dict(row) for row in rows])
        return len(rows)
    names = list(rows[0])
    arrays = ", ".join(f"CAST(:{name} AS {_ARRAYS[type(table.c[name].type)]})" for name in names)
    statement = text(f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})")
    connection.execute(statement, {name: [row[name] for row in rows] for name in names})
    return len(rows)


OF_RUNS = (measurements, kinds, samples, activities, profiles, counted_profiles, wait_profiles)
"""The tables whose rows belong to a run."""

PROGRESS = ("status", "ended_at", "options", "process_id", "process_start_ticks", "boot_id")
"""What changes of a session while it is measured."""


@dataclass
class SentSession:
    """How far a session is known to be copied."""

    there: int
    """Its id in the history."""

    last_run: int = 0
    """The highest id of its runs on the box that are in the history; 0 without any."""

    progress: Mapping[str, Any] = field(default_factory=dict)


RunKey = tuple[str, str, int]
"""Version, step and repetition of a run."""


@dataclass(frozen=True)
class Batch:
    """What is to be copied of a session, as rows of the box."""

    session: Mapping[str, Any]
    machine: Mapping[str, Any]
    builds: Mapping[int, Mapping[str, Any]]
    """By id on the box, as the configurations."""

    configurations: Mapping[int, Mapping[str, Any]]
    runs: Sequence[Mapping[str, Any]]
    of_runs: Mapping[str, Sequence[Mapping[str, Any]]]
    """By table."""

    dropped: Sequence[Mapping[str, Any]]
    noise: Sequence[Mapping[str, Any]]
    count: int
    """Of all runs of the session."""

    last_run: int

    @property
    def has_ended(self) -> bool:
        """Whether the session has."""
        return bool(self.session["status"] != SessionStatus.RUNNING)


def pack(
    source: Connection,
    session_id: int,
    known: SentSession | None,
    there: Mapping[RunKey, tuple[Any, ...]],
) -> Batch:
    """Read what the history lacks of a session of the box.

    `known` is what an earlier copy of this process returned, `there` else the runs that the history has, by
    `runs_there`. Raises RecordError when it has another run under the name of one.
    """
    row = source.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    last = known.last_run if known is not None else 0
    query = select(runs).where(runs.c.session_id == session_id, runs.c.id > last).order_by(runs.c.id)
    found = [dict(mapping) for mapping in source.execute(query).mappings()]
    missing = [run for run in found if not _is_there(run, there)]
    ids = [run["id"] for run in missing]
    number = select(func.count()).select_from(runs).where(runs.c.session_id == session_id)
    dropped, noise = dropped_rounds.c.session_id == session_id, calibrations.c.session_id == session_id
    return Batch(
        session=dict(row),
        machine=_by_id(source, machines, [row["machine_id"]])[row["machine_id"]],
        builds=_by_id(source, builds, (run["build_id"] for run in missing)),
        configurations=_by_id(source, configurations, (run["configuration_id"] for run in missing)),
        runs=missing,
        of_runs={table.name: _all(source, table, table.c.run_id.in_(ids)) for table in OF_RUNS},
        dropped=_all(source, dropped_rounds, dropped, dropped_rounds.c.id),
        noise=_all(source, calibrations, noise),
        count=source.execute(number).scalar_one(),
        last_run=found[-1]["id"] if found else last,
    )


def runs_there(target: Connection, uid: str) -> dict[RunKey, tuple[Any, ...]]:
    """Return the status and the times of the runs that the history has of a session."""
    run = runs.c
    query = (
        select(run.version, run.step, run.repetition, run.status, run.started_at, run.ended_at)
        .join_from(runs, sessions, run.session_id == sessions.c.id)
        .where(sessions.c.uid == uid)
    )
    return {
        (version, step, repetition): tuple(rest) for version, step, repetition, *rest in target.execute(query)
    }


def copy_batch(
    target: Connection,
    batch: Batch,
    derive: Callable[[Connection, int], object],
    known: SentSession | None = None,
) -> SentSession:
    """Write what the history lacks of a session, and return how far it is copied now.

    A session that has ended is derived there. Raises RecordError when the history holds something else under
    the same name, or lacks what it had before.
    """
    uid = batch.session["uid"]
    sent, is_new = (known, False) if known is not None else _enter(target, batch)
    _require_there(target, uid, sent)
    _insert_runs(target, batch, sent)
    added = len(batch.runs) + _copy_dropped(target, batch, sent) + _copy_noise(target, batch, sent)
    progress = {name: batch.session[name] for name in PROGRESS}
    moved = progress != sent.progress
    if moved:
        target.execute(update(sessions).where(sessions.c.id == sent.there).values(progress))
    if batch.has_ended:
        number = select(func.count()).select_from(runs).where(runs.c.session_id == sent.there)
        if target.execute(number).scalar_one() != batch.count:
            raise RecordError(f"the history has other runs of session {uid} than this box")
    if is_new or moved or (added and batch.has_ended):
        _derive_again(target, sent.there, batch.has_ended, derive)
    return SentSession(sent.there, batch.last_run, progress)


def _require_there(target: Connection, uid: str, sent: SentSession) -> None:
    """Raises RecordError when the history has no such session: a replica that lagged was promoted."""
    query = select(sessions.c.uid).where(sessions.c.id == sent.there)
    if target.execute(query).scalar() != uid:
        raise RecordError(f"the history has lost session {uid}", hint="it is sent again, whole")


def lost_sessions(source: Connection, target: Connection, uids: Collection[str]) -> list[str]:
    """Return the sessions that the history had and lacks now, or of which it lacks runs, or how they ended.

    A replica that was promoted before it had everything loses what its primary had acknowledged. A session
    without any run, but with its night, was pruned.
    """
    before, after = _extent(source, uids), _extent(target, uids)
    derived = select(sessions.c.uid).join_from(sessions, nights, nights.c.session_id == sessions.c.id)
    pruned = {
        uid
        for uid in target.execute(derived.where(sessions.c.uid.in_(uids))).scalars()
        if after[uid].runs == 0
    }
    return sorted(uid for uid in uids if uid not in pruned and before.get(uid) != after.get(uid))


class _Extent(NamedTuple):
    status: str
    ended_at: str | None
    runs: int


def _extent(connection: Connection, uids: Collection[str]) -> dict[str, _Extent]:
    query = (
        select(sessions.c.uid, sessions.c.status, sessions.c.ended_at, func.count(runs.c.id))
        .join_from(sessions, runs, runs.c.session_id == sessions.c.id, isouter=True)
        .where(sessions.c.uid.in_(uids))
        .group_by(sessions.c.uid, sessions.c.status, sessions.c.ended_at)
    )
    return {uid: _Extent(*rest) for uid, *rest in connection.execute(query)}


def _enter(target: Connection, batch: Batch) -> tuple[SentSession, bool]:
    """Return the session in the history, and whether it was added; its runs are not looked at."""
    row = batch.session
    machine_id = intern(target, machines, "fingerprint", batch.machine)
    there = target.execute(select(sessions).where(sessions.c.uid == row["uid"])).mappings().first()
    if there is None:
        values = {name: value for name, value in row.items() if name != "id"} | {"machine_id": machine_id}
        found = target.execute(insert(sessions).values(values).returning(sessions.c.id)).scalar_one()
        return SentSession(int(found), progress={name: row[name] for name in PROGRESS}), True
    theirs = dict(there)
    differing = [
        name
        for name, value in row.items()
        if name not in ("id", "machine_id", *PROGRESS) and theirs[name] != value
    ]
    if differing or theirs["machine_id"] != machine_id:
        raise RecordError(
            f"the history holds another session under the name {row['uid']}:"
            f" {', '.join(differing or ['machine'])} differ",
            hint="one of the two was changed; nothing of it was sent",
        )
    return SentSession(int(theirs["id"]), progress={name: theirs[name] for name in PROGRESS}), False


def _all(
    source: Connection, table: TableClause, which: ColumnElement[bool], *order: ColumnElement[Any]
) -> list[dict[str, Any]]:
    return [dict(row) for row in source.execute(select(table).where(which).order_by(*order)).mappings()]


def _by_id(source: Connection, table: TableClause, ids: Iterable[int | None]) -> dict[int, dict[str, Any]]:
    found = _all(source, table, table.c.id.in_({key for key in ids if key is not None}))
    return {row.pop("id"): row for row in found}


def _is_there(row: Mapping[str, Any], there: Mapping[RunKey, tuple[Any, ...]]) -> bool:
    """Whether the history has a run: it was written with all it measured, or not at all."""
    key = (row["version"], row["step"], row["repetition"])
    if key not in there:
        return False
    if there[key] != (row["status"], row["started_at"], row["ended_at"]):
        raise RecordError(
            f"the history holds another run under the same name: {' '.join(map(str, key))}",
            hint="one of the two was changed; nothing of it was sent",
        )
    return True


def _insert_runs(target: Connection, batch: Batch, sent: SentSession) -> None:
    if not batch.runs:
        return
    build_ids = {number: intern(target, builds, "key", row) for number, row in batch.builds.items()}
    configuration_ids = {
        number: intern(target, configurations, "digest", row) for number, row in batch.configurations.items()
    }
    rows = [
        {
            **{name: value for name, value in row.items() if name != "id"},
            "session_id": sent.there,
            "build_id": build_ids[row["build_id"]],
            "configuration_id": configuration_ids.get(row["configuration_id"]),
        }
        for row in batch.runs
    ]
    insert_rows(target, runs, rows)
    # The positions of a session's runs are in order, so that few others are found.
    least = min(row["position"] for row in rows)
    key = (runs.c.version, runs.c.step, runs.c.repetition)
    written = select(runs.c.id, *key).where(runs.c.session_id == sent.there, runs.c.position >= least)
    ids = {tuple(name): run_id for run_id, *name in target.execute(written)}
    new = {row["id"]: ids[row["version"], row["step"], row["repetition"]] for row in batch.runs}
    for table in OF_RUNS:
        of_run = batch.of_runs[table.name]
        insert_rows(target, table, [{**row, "run_id": new[row["run_id"]]} for row in of_run])


def _copy_dropped(target: Connection, batch: Batch, sent: SentSession) -> int:
    """Copy the dropped rounds behind those that are there: they have no name, but an order."""
    if not batch.dropped:
        return 0
    columns = dropped_rounds.c
    number = len(target.execute(select(columns.id).where(columns.session_id == sent.there)).all())
    rows = [{**row, "session_id": sent.there} for row in batch.dropped[number:]]
    for row in rows:
        del row["id"]
    return insert_rows(target, dropped_rounds, rows)


def _copy_noise(target: Connection, batch: Batch, sent: SentSession) -> int:
    if not batch.noise:
        return 0
    columns = calibrations.c
    query = select(columns.step, columns.metric).where(columns.session_id == sent.there)
    there = {tuple(row) for row in target.execute(query)}
    missing = [row for row in batch.noise if (row["step"], row["metric"]) not in there]
    return insert_rows(target, calibrations, [{**row, "session_id": sent.there} for row in missing])


def _derive_again(
    target: Connection, there: int, has_ended: bool, derive: Callable[[Connection, int], object]
) -> None:
    """Derive a session that has ended; one that runs, perhaps again, has nothing derived."""
    for table in (points, gaps, nights, confirmations):
        target.execute(delete(table).where(table.c.session_id == there))
    if has_ended:
        derive(target, there)
