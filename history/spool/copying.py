"""Copying one session of the box to the history on a server: what is missing there, in one transaction.

The box is the only one that writes its session, so what it says of it holds: how far it came, and which runs
it has. The same copy again adds nothing, whatever became of an earlier one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, TableClause, delete, func, insert, select, update

from history.errors import RecordError
from history.store.records import SessionStatus
from history.store.schema import (
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
)
from history.store.session_writes import intern

OF_RUNS = (measurements, kinds, samples, profiles, counted_profiles)
"""The tables whose rows belong to a run."""

PROGRESS = ("status", "ended_at", "options", "process_id", "process_start_ticks", "boot_id")
"""What changes of a session while it is measured."""

CHUNK = 200
"""Runs that are copied at once; a profiled one may have megabytes."""


@dataclass
class SentSession:
    """How far a session is known to be copied."""

    there: int
    """Its id in the history."""

    last_run: int = 0
    """The highest id of its runs on the box that are in the history; 0 without any."""

    dropped: int = 0
    """How many of its dropped rounds are."""

    progress: Mapping[str, Any] = field(default_factory=dict)
    ids: dict[tuple[str, int], int] = field(default_factory=dict)
    """Ids of builds and configurations in the history, by table and id on the box, of one transaction."""


def copy_session(
    source: Connection,
    target: Connection,
    session_id: int,
    derive: Callable[[Connection, int], object],
    known: SentSession | None = None,
) -> SentSession:
    """Copy what the history lacks of a session of the box, and return how far it is copied now.

    `known` is what an earlier copy of this process returned: what it covers is not looked for again. Without
    it everything is compared. A session that has ended is derived there. Raises RecordError when the history
    holds something else under the same name.
    """
    row = dict(source.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one())
    sent, is_new = (known, False) if known is not None else _enter(source, target, row)
    _require_there(target, row["uid"], sent)
    sent.ids.clear()
    whole = known is None
    added = _copy_runs(source, target, session_id, sent, compare=whole)
    added += _copy_dropped(source, target, session_id, sent)
    added += _copy_noise(source, target, session_id, sent) if whole else 0
    progress = {name: row[name] for name in PROGRESS}
    moved = progress != sent.progress
    if moved:
        changed = update(sessions).where(sessions.c.id == sent.there, sessions.c.uid == row["uid"])
        target.execute(changed.values(progress))
        sent.progress = progress
    if is_new or moved or (added and row["status"] != SessionStatus.RUNNING):
        _derive_again(target, sent.there, row["status"], derive)
    return sent


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


def _enter(source: Connection, target: Connection, row: Mapping[str, Any]) -> tuple[SentSession, bool]:
    """Return the session in the history, and whether it was added; its runs are not looked at."""
    machine = _row(source, machines, row["machine_id"])
    machine_id = intern(target, machines, "fingerprint", machine)
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


def _row(source: Connection, table: TableClause, row_id: int) -> dict[str, Any]:
    found = source.execute(select(table).where(table.c.id == row_id)).mappings().one()
    return {name: value for name, value in found.items() if name != "id"}


def _copy_runs(
    source: Connection, target: Connection, session_id: int, sent: SentSession, *, compare: bool
) -> int:
    """Copy the runs that are missing, each with all it measured; return how many."""
    query = select(runs).where(runs.c.session_id == session_id, runs.c.id > sent.last_run)
    found = iter(source.execute(query.order_by(runs.c.id)).mappings().all())
    there = _runs_there(target, sent.there) if compare else {}
    added = 0
    while chunk := [dict(row) for row in islice(found, CHUNK)]:
        missing = [row for row in chunk if not _is_there(row, there)]
        _insert_runs(source, target, missing, sent)
        sent.last_run = chunk[-1]["id"]
        added += len(missing)
    return added


def _runs_there(target: Connection, there: int) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    its = runs.c
    query = select(its.version, its.step, its.repetition, its.status, its.started_at, its.ended_at)
    rows = target.execute(query.where(its.session_id == there))
    return {(version, step, repetition): tuple(rest) for version, step, repetition, *rest in rows}


def _is_there(row: Mapping[str, Any], there: Mapping[tuple[str, str, int], tuple[Any, ...]]) -> bool:
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


def _insert_runs(
    source: Connection, target: Connection, missing: Sequence[Mapping[str, Any]], sent: SentSession
) -> None:
    if not missing:
        return
    rows = []
    for row in missing:
        its = {name: value for name, value in row.items() if name != "id"} | {"session_id": sent.there}
        its["build_id"] = _shared(source, target, builds, "key", row["build_id"], sent)
        if row["configuration_id"] is not None:
            its["configuration_id"] = _shared(
                source, target, configurations, "digest", row["configuration_id"], sent
            )
        rows.append(its)
    # The positions of a session's runs are in order, so that these alone are new.
    least = min(row["position"] for row in rows)
    target.execute(insert(runs), rows)
    key = (runs.c.version, runs.c.step, runs.c.repetition)
    written = select(runs.c.id, *key).where(runs.c.session_id == sent.there, runs.c.position >= least)
    ids = {tuple(name): run_id for run_id, *name in target.execute(written)}
    new = {row["id"]: ids[row["version"], row["step"], row["repetition"]] for row in missing}
    for table in OF_RUNS:
        of_run = source.execute(select(table).where(table.c.run_id.in_(new))).mappings()
        _insert(target, table, (dict(row) | {"run_id": new[row["run_id"]]} for row in of_run))


def _insert(target: Connection, table: TableClause, rows: Iterator[Mapping[str, Any]]) -> int:
    every = list(rows)
    if every:
        target.execute(insert(table), every)
    return len(every)


def _shared(
    source: Connection, target: Connection, table: TableClause, key: str, row_id: int, sent: SentSession
) -> int:
    """Return the id in the history of a build or a configuration of the box."""
    name = (table.name, row_id)
    if name not in sent.ids:
        sent.ids[name] = intern(target, table, key, _row(source, table, row_id))
    return sent.ids[name]


def _copy_dropped(source: Connection, target: Connection, session_id: int, sent: SentSession) -> int:
    """Copy the dropped rounds behind those that are there: they have no name, but an order."""
    its = dropped_rounds.c
    if not sent.dropped:
        sent.dropped = len(target.execute(select(its.id).where(its.session_id == sent.there)).all())
    query = select(dropped_rounds).where(its.session_id == session_id).order_by(its.id).offset(sent.dropped)
    rows = [dict(row) for row in source.execute(query).mappings()]
    for row in rows:
        del row["id"]
        row["session_id"] = sent.there
    sent.dropped += len(rows)
    return _insert(target, dropped_rounds, iter(rows))


def _copy_noise(source: Connection, target: Connection, session_id: int, sent: SentSession) -> int:
    its = calibrations.c
    there = {
        tuple(row) for row in target.execute(select(its.step, its.metric).where(its.session_id == sent.there))
    }
    rows = source.execute(select(calibrations).where(its.session_id == session_id)).mappings().all()
    missing = (row for row in rows if (row["step"], row["metric"]) not in there)
    return _insert(target, calibrations, (dict(row) | {"session_id": sent.there} for row in missing))


def _derive_again(
    target: Connection, there: int, status: str, derive: Callable[[Connection, int], object]
) -> None:
    """Derive a session that has ended; one that runs, perhaps again, has nothing derived."""
    for table in (points, gaps, nights, confirmations):
        target.execute(delete(table).where(table.c.session_id == there))
    if status != SessionStatus.RUNNING:
        derive(target, there)
