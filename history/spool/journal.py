"""The journal of a box: a SQLite history of its own in which every round is recorded first.

There is one for each history on a server, in the folder `spool` of the home. A session stays in it for
KEPT_DAYS after the history has it: so that it can be resumed without the server, and be sent again after the
server was replaced by a replica that did not have everything yet.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Connection,
    TableClause,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy import column as column_
from sqlalchemy import table as table_

from build.addresses import without_secrets
from history.counts import counted
from history.open import open_store
from history.spool.copying import OF_RUNS
from history.store.database import connect
from history.store.process import own_boot_id
from history.store.records import SessionStatus
from history.store.schema import (
    calibrations,
    confirmations,
    dropped_rounds,
    gaps,
    nights,
    points,
    runs,
    sessions,
)
from history.store.sqlite.read_only import connect_readonly
from history.store.writer import Store
from history.timestamps import from_text, now, to_text

KEPT_DAYS = 7
"""How long a session that the history has stays on the box."""

_OF_SESSIONS = (dropped_rounds, calibrations, nights, points, gaps, confirmations)

_deliveries = table_("spool_deliveries", *(column_(name) for name in ("uid", "last_run", "delivered_at")))
_target = table_("spool_target", column_("address"))


@dataclass(frozen=True)
class Waiting:
    """What the box has and a history does not, as far as the box knows."""

    address: str
    """The URL of the history, without its password."""

    sessions: int
    rounds: int
    """Rounds of steps, each with a run of every version."""

    since: datetime | None
    """When the oldest of these sessions began."""

    @property
    def found(self) -> str:
        """How much it is."""
        return f"{counted(self.rounds, 'round')} of {counted(self.sessions, 'session')}"

    def __str__(self) -> str:
        """Return it for people."""
        wait = "waits" if self.rounds == 1 else "wait"
        since = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        return f"{self.found} {wait} on this box{since} for {self.address}"


def journal_path(folder: Path, url: str) -> Path:
    """Return the journal of a box for the history at a URL; it depends on no password."""
    address = without_secrets(connect(url).where)
    return folder / f"{hashlib.sha256(address.encode()).hexdigest()[:12]}.db"


def waiting_in(folder: Path) -> list[Waiting]:
    """Return what waits in all journals of a folder. Raises HistoryError for one that cannot be read."""
    found = []
    for path in sorted(folder.glob("*.db")):
        database = connect_readonly(path)
        try:
            with database.reading() as connection:
                found.append(_waiting(connection))
        finally:
            database.close()
    return [waiting for waiting in found if waiting.sessions]


class Journal:
    """An open journal. Sessions are recorded in its store."""

    def __init__(self, store: Store) -> None:
        """`store` is one that `opened` has prepared."""
        self.store = store

    def pending(self) -> dict[int, str]:
        """Return the uids of the sessions that the history may lack, by id, in the order they began in."""
        query = select(sessions.c.id, sessions.c.uid).where(~_is_delivered())
        with self.store.database.reading() as connection:
            found = connection.execute(query.order_by(sessions.c.id))
            return {row.id: row.uid for row in found}

    def kept(self) -> list[str]:
        """Return the uids of the sessions that the history has by what the box knows."""
        query = select(sessions.c.uid).where(_is_delivered()).order_by(sessions.c.uid)
        with self.store.database.reading() as connection:
            return list(connection.execute(query).scalars())

    def boots(self) -> set[str]:
        """Return the ids of the boots in which its sessions were measured."""
        with self.store.database.reading() as connection:
            return set(connection.execute(select(sessions.c.boot_id)).scalars())

    def end_dead_sessions(self) -> None:
        """Mark sessions as interrupted that a dead process left running; all are of this box.

        Those of another container of this machine are left alone: whether they run is not seen here.
        """
        own = own_boot_id()
        kernel = own.partition("/")[0]
        which = (sessions.c.boot_id == own) | ~sessions.c.boot_id.startswith(kernel, autoescape=True)
        with self.store.database.writing() as connection:
            self.store.interrupt_dead(connection, which)

    def id_of(self, uid: str) -> int | None:
        """Return the id of a session; None when the journal does not hold it."""
        with self.store.database.reading() as connection:
            return connection.execute(select(sessions.c.id).where(sessions.c.uid == uid)).scalar()

    def note_sent(self, uid: str, last_run: int) -> None:
        """Note up to which run the history has a session that has not ended there."""
        self._note(uid, last_run, None)

    def note_delivered(self, uid: str, last_run: int, when: datetime) -> None:
        """Note that the history has the whole of a session, which ended."""
        self._note(uid, last_run, to_text(when))

    def _note(self, uid: str, last_run: int, delivered_at: str | None) -> None:
        with self.store.database.writing() as connection:
            connection.execute(delete(_deliveries).where(_deliveries.c.uid == uid))
            row = {"uid": uid, "last_run": last_run, "delivered_at": delivered_at}
            connection.execute(insert(_deliveries).values(row))

    def send_again(self, uids: Collection[str]) -> None:
        """Note that the history lacks something of sessions."""
        if uids:
            with self.store.database.writing() as connection:
                connection.execute(
                    update(_deliveries).where(_deliveries.c.uid.in_(uids)).values(delivered_at=None)
                )

    def uid_of(self, session_id: int) -> str:
        """Return the uid of a session that the journal holds."""
        with self.store.database.reading() as connection:
            query = select(sessions.c.uid).where(sessions.c.id == session_id)
            return str(connection.execute(query).scalar_one())

    def forget(self, before: datetime) -> None:
        """Delete the sessions that the history has since before a time."""
        old = select(_deliveries.c.uid).where(_deliveries.c.delivered_at < to_text(before))
        ids = select(sessions.c.id).where(sessions.c.uid.in_(old), sessions.c.status != SessionStatus.RUNNING)
        with self.store.database.writing() as connection:
            for session_id in connection.execute(ids).scalars().all():
                _delete_session(connection, session_id)

    def waiting(self) -> Waiting:
        """Return what waits in it."""
        with self.store.database.reading() as connection:
            return _waiting(connection)


def open_journal_store(path: Path, url: str, clock: Callable[[], datetime] = now) -> Store:
    """Open the store of a journal; create it first, and note for which history it is. Raises HistoryError."""
    store = open_store(path, clock)
    path.chmod(0o600)
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS spool_deliveries (uid TEXT NOT NULL PRIMARY KEY,"
            " last_run INTEGER NOT NULL, delivered_at TEXT) STRICT"
        )
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS spool_target (address TEXT NOT NULL) STRICT")
        if connection.execute(select(_target.c.address)).first() is None:
            connection.execute(insert(_target).values(address=connect(url).where))
    return store


def too_old(moment: datetime | None = None) -> datetime:
    """Return the time before which what was delivered is forgotten."""
    return (moment or now()) - timedelta(days=KEPT_DAYS)


def _is_delivered() -> ColumnElement[bool]:
    return exists().where(_deliveries.c.uid == sessions.c.uid, _deliveries.c.delivered_at.is_not(None))


def _waiting(connection: Connection) -> Waiting:
    address = connection.execute(select(_target.c.address)).scalar() or "a history"
    sent = (
        select(func.coalesce(func.max(_deliveries.c.last_run), 0))
        .where(_deliveries.c.uid == sessions.c.uid)
        .scalar_subquery()
    )
    columns = (sessions.c.uid, sessions.c.started_at, runs.c.step, runs.c.repetition)
    behind = (runs.c.session_id == sessions.c.id) & (runs.c.id > sent)
    query = select(*columns).join_from(sessions, runs, behind, isouter=True).where(~_is_delivered())
    # One that runs, and of which nothing waits, does not wait.
    matters = or_(runs.c.id.is_not(None), sessions.c.status != SessionStatus.RUNNING)
    rows = [tuple(row) for row in connection.execute(query.where(matters).distinct())]
    since = min((from_text(started) for _, started, *_ in rows), default=None)
    rounds = sum(step is not None for _, _, step, _ in rows)
    return Waiting(address, len({uid for uid, *_ in rows}), rounds, since)


def _delete_session(connection: Connection, session_id: int) -> None:
    of_session = select(runs.c.id).where(runs.c.session_id == session_id)
    for run in OF_RUNS:
        connection.execute(delete(run).where(run.c.run_id.in_(of_session)))
    tables: Sequence[TableClause] = (*_OF_SESSIONS, runs)
    for table in tables:
        connection.execute(delete(table).where(table.c.session_id == session_id))
    uid = select(sessions.c.uid).where(sessions.c.id == session_id).scalar_subquery()
    connection.execute(delete(_deliveries).where(_deliveries.c.uid == uid))
    connection.execute(delete(sessions).where(sessions.c.id == session_id))
