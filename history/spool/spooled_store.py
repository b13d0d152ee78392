"""A history on a server as a box records into it: into its journal first, then into the history."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, func, select

from history.errors import HistoryError, LockedError, RecordError
from history.open import open_reader, prepare
from history.spool.copying import RunKey, SentSession, copy_batch, lost_sessions, pack, runs_there
from history.spool.journal import Journal, Waiting, too_old
from history.store.database import Database
from history.store.reader import Reader
from history.store.records import CalibratedNoise, Machine, SessionStart, SessionStatus, StepNoise
from history.store.schema import machines, sessions
from history.store.schema_status import newest
from history.store.writer import Derive, Store
from history.timestamps import to_text
from suites.control_groups.declared import Declared

if TYPE_CHECKING:
    from build.finished_build import Build
    from history.store.resume import InterruptedSession, NotResumed

APART = timedelta(minutes=5)
"""How far the clocks of a box and of the history's server may be apart."""

LOOKED_AT = timedelta(days=8)
"""How far back sessions of another box with the same name are looked for; clocks may be a day apart."""


def warnings(
    connection: Connection, own: Collection[str], boots: Collection[str], moment: datetime
) -> Iterator[str]:
    """Yield what is wrong with a box in a history on a server, a sentence each.

    `own` are the uids of the sessions that this box recorded, `boots` the boots in which it did, and `moment`
    is its time.
    """
    yield from _clock(connection, moment)
    yield from _namesakes(connection, own, boots, moment)


def _clock(connection: Connection, moment: datetime) -> Iterator[str]:
    if connection.dialect.name != "postgresql":
        return
    apart = moment - connection.execute(select(func.clock_timestamp())).scalar_one()
    if abs(apart) > APART:
        hours = abs(apart) / timedelta(hours=1)
        side = "ahead of" if apart > timedelta(0) else "behind"
        yield (
            f"the clock of this box is {hours:.1f} hours {side} that of the history's server: its nights are"
            " ordered by its own; set it with timedatectl"
        )


def _namesakes(
    connection: Connection, own: Collection[str], boots: Collection[str], moment: datetime
) -> Iterator[str]:
    """Sessions of another boot that came into the history after the first of ours, under the same name.

    Ids are in the order in which they came, so that no clock decides.
    """
    ours = select(sessions.c.id, machines.c.hostname).join_from(
        sessions, machines, machines.c.id == sessions.c.machine_id
    )
    found = connection.execute(ours.where(sessions.c.uid.in_(own)).order_by(sessions.c.id)).all()
    if not found:
        return
    first, name = found[0].id, found[-1].hostname
    others = (
        select(func.count(), func.max(sessions.c.uid))
        .join_from(sessions, machines, machines.c.id == sessions.c.machine_id)
        .where(
            machines.c.hostname == name,
            sessions.c.id > first,
            sessions.c.uid.not_in(own),
            sessions.c.boot_id.not_in(boots),
            sessions.c.started_at >= to_text(moment - LOOKED_AT),
        )
    )
    number, uid = tuple(connection.execute(others).one())
    if number:
        yield (
            f"another box calls itself {name} too and recorded {number} sessions, such as {uid}: the nights"
            " of both are in the same series; give one of them another name with hostnamectl"
        )


T = TypeVar("T")

SEND_SECONDS = 1.0
"""The least time between two sendings of a session that runs: rounds of milliseconds are sent together."""

RETRY_SECONDS, LONGEST_RETRY_SECONDS = 30.0, 900.0
"""After how long a server that was away is tried again; twice that after each attempt, up to the longest."""

HURRIED_MS = 500
"""How long a box that measures waits for others who write; what was not sent goes with the next round."""

PATIENCE_SECONDS = 60.0
"""How long one transaction of a recording may take before the server counts as away."""


class SpooledStore(Store):
    """Records into the journal of the box; the history on the server gets each round as soon as it can.

    Ids of sessions that it returns are those of the journal, and only recording takes them. What is read is
    read in the history; while that is away, the journal and the latest backup stand in.
    """

    def __init__(
        self,
        database: Database,
        journal: Journal,
        clock: Callable[[], datetime],
        derive: Derive,
        backup: Path | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`backup` is a copy of the history; `note` is told when the server goes away and comes back."""
        super().__init__(database, clock, derive)
        self._journal, self._backup, self._note = journal, backup, note
        self._server = database.impatient(PATIENCE_SECONDS)
        self._hurried = database.impatient(PATIENCE_SECONDS, HURRIED_MS)
        self._sent: dict[int, SentSession] = {}
        """Sessions of this process that are sent up to where they are, by the id in the journal."""
        self._refused: dict[int, str] = {}
        self._warnings: tuple[str, ...] = ()
        """What the last delivery found about boxes and clocks, a sentence each."""
        self._prepared = False
        self._away = ""
        self._retry_seconds, self._next_try = RETRY_SECONDS, 0.0
        self._next_send = 0.0

    @property
    def away(self) -> str:
        """Why what is recorded waits on this box instead of reaching the history; empty if it does not."""
        return self._away

    @property
    def problems(self) -> Sequence[str]:
        """What of recording needs somebody: what waits on this box and why, its name, its clock."""
        waiting = self.waiting
        found = [f"{waiting}: {self._away}"] if self._away else []
        found += [f"a session stays on this box: {why}" for why in self._refused.values()]
        return (*found, *self._warnings)

    @property
    def waiting(self) -> Waiting:
        """What waits on this box."""
        return self._journal.waiting()

    def close(self) -> None:
        """Close the connections. What waits stays on the box."""
        super().close()
        self._journal.store.close()

    # --- reading

    def holder(self, uid: str) -> Reader:
        """Return where a session can be read: in this history, unless it waits on the box."""
        session_id = self._journal.id_of(uid)
        waits = session_id in self._journal.pending()
        return self._journal.store if waits else self

    def recorded_id(self, uid: str) -> int:
        """Return the id by which more is recorded of a session of this box. Raises RecordError without it."""
        return self._journal.store.recorded_id(uid)

    @contextmanager
    def standing_in(self) -> Iterator[Sequence[Connection]]:
        """Begin to read in what there is: this history, or the journal and the latest backup."""
        self._read(lambda reader: reader.latest_machine(""))  # which finds out whether it is there
        with ExitStack() as stack:
            if not self._away:
                yield [stack.enter_context(self._database.reading())]
                return
            yield [stack.enter_context(stand_in.database.reading()) for stand_in in self._stand_ins(stack)]

    def latest_machine(self, hostname: str) -> Machine | None:
        """Return the machine of a host as of its latest session; None when the host has no session."""
        found = self._read(lambda reader: reader.latest_machine(hostname))
        return next((machine for machine in found if machine is not None), None)

    def noise(
        self, session: SessionStart, metric: str, until: datetime | None = None
    ) -> Mapping[str, CalibratedNoise]:
        """Return the noise of a metric by step, from the latest calibrations that apply to a session."""
        found: dict[str, CalibratedNoise] = {}
        for noise in reversed(self._read(lambda reader: reader.noise(session, metric, until))):
            found |= noise
        return found

    def calibrated_throughput(
        self, machine: Machine, suite: str, profile: str, durability: str, declared: Declared, step: str
    ) -> float | None:
        """Return the mean transactions/s of a step in the latest calibration; None without one.

        `declared` is what each server gets in place of what the machine has.
        """
        found = self._read(
            lambda reader: reader.calibrated_throughput(machine, suite, profile, durability, declared, step)
        )
        return next((rate for rate in found if rate is not None), None)

    def _read(self, read: Callable[[Reader], T]) -> list[T]:
        """Return what the history says, or what each of those that stand in for it says, newest first."""
        if not self._away:
            try:
                return [read(Reader(self._server))]
            except HistoryError as error:
                self._went_away(error)
        with ExitStack() as stack:
            return [read(stand_in) for stand_in in self._stand_ins(stack)]

    def _stand_ins(self, stack: ExitStack) -> list[Reader]:
        """Return the journal and the latest backup."""
        found: list[Reader] = [self._journal.store]
        if self._backup is not None:
            with suppress(HistoryError, OSError):
                found.append(stack.enter_context(open_reader(self._backup)))
        return found

    # --- recording

    def start_session(self, start: SessionStart) -> int:
        """Begin a session of this process and return its id in the journal. Raises as that of a file."""
        session_id = self._journal.store.start_session(start)
        self._send_soon(session_id, at_once=True)
        return session_id

    def resume_session(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "InterruptedSession | None":
        """Resume the latest interrupted session of this box; never one of another with its name."""
        found = self._journal.store.resume_session(start, builds, since)
        if found is not None:
            self._journal.send_again([found.uid])
            self._send_soon(found.id, at_once=True)
        return found

    def nearest_interrupted(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "NotResumed | None":
        """Return the interrupted session of this box that was nearest to be resumed; None without any."""
        return self._journal.store.nearest_interrupted(start, builds, since)

    def finish_session(self, session_id: int, status: SessionStatus) -> None:
        """End a running session and derive its night, also where it waits."""
        self._journal.store.finish_session(session_id, status)
        self._send_soon(session_id, at_once=True)

    @contextmanager
    def _recording(self, session_id: int) -> Iterator[Connection]:
        """Begin to write into the journal; once it is there, the history gets it."""
        with self._journal.store.database.writing() as connection:
            yield connection
        self._send_soon(session_id)

    def record_noise(self, session_id: int, noise: Sequence[StepNoise]) -> None:
        """Write the noise of the steps that a session of identical builds has determined."""
        self._journal.send_again([self._journal.uid_of(session_id)])  # which may have been delivered
        super().record_noise(session_id, noise)
        self._send_soon(session_id, at_once=True)

    # --- sending

    def deliver(self) -> None:
        """Send everything that waits on the box; `problems` say why that failed."""
        with suppress(HistoryError):
            self._attempt(self._deliver)

    def _send_soon(self, session_id: int, *, at_once: bool = False) -> None:
        """Send what is new of a session, unless the last sending is too recent or the server is away."""
        now = time.monotonic()
        if now < (self._next_try if self._away else 0.0 if at_once else self._next_send):
            return
        server = self._server if at_once else self._hurried
        with suppress(HistoryError):
            self._attempt(self._deliver if self._away else lambda: self._send(session_id, server))
        self._next_send = time.monotonic() + SEND_SECONDS

    def _attempt(self, send: Callable[[], None]) -> None:
        try:
            try:
                self._prepare()
                send()
            except HistoryError as error:
                if self._away or isinstance(error, LockedError):
                    raise
                # A connection that a restart of the server has ended says nothing of the server now.
                self._sent.clear()
                self._prepare()
                send()
        except LockedError:
            raise  # others write: the next round is sent with this one
        except HistoryError as error:
            self._went_away(error)
            raise
        if self._away:
            self._note("the history is back")
        self._away, self._retry_seconds = "", RETRY_SECONDS

    def _went_away(self, error: HistoryError) -> None:
        if not self._away:
            self._note(f"what is measured waits on this box: {error}")
        else:
            self._retry_seconds = min(2 * self._retry_seconds, LONGEST_RETRY_SECONDS)
        self._away = str(error)
        self._next_try = time.monotonic() + self._retry_seconds
        self._sent.clear()

    def _prepare(self) -> None:
        """Once, create the history or migrate it."""
        if not self._prepared:
            prepare(self._server)
            for database in (self._database, self._hurried):
                database.require_schema(newest())
            self._prepared = True

    def _deliver(self) -> None:
        self._journal.end_dead_sessions()
        kept = self._journal.kept()
        journal = self._journal.store.database
        with journal.reading() as source, self._server.reading() as connection:
            lost = lost_sessions(source, connection, kept)
            own = (*kept, *self._journal.pending().values())
            self._warnings = tuple(warnings(connection, own, self._journal.boots(), self._clock()))
        self._journal.send_again(lost)
        self._refused.clear()
        for session_id in self._journal.pending():
            self._send(session_id, self._server)
        self._journal.forget(too_old(self._clock()))

    def _send(self, session_id: int, server: Database) -> None:
        """Send a session; one that the history refuses stays on the box, and holds up no other."""
        try:
            try:
                self._copy(server, session_id, self._sent.get(session_id))
            except RecordError:  # as when the commit before it was carried out, though its answer was lost
                self._sent.pop(session_id, None)
                self._copy(server, session_id, None)
        except RecordError as error:
            self._refused[session_id] = str(error)
            self._note(f"a session stays on this box: {error}")

    def _copy(self, server: Database, session_id: int, known: SentSession | None) -> None:
        there: Mapping[RunKey, tuple[Any, ...]] = {}
        if known is None:
            uid = self._journal.uid_of(session_id)
            with self._server.reading() as target:
                there = runs_there(target, uid)
        with self._journal.store.database.reading() as source:
            batch = pack(source, session_id, known, there)
        with server.writing() as target:
            sent = copy_batch(target, batch, self._derive, known)
        uid = batch.session["uid"]
        if batch.has_ended:
            self._journal.note_delivered(uid, sent.last_run, self._clock())
        else:
            self._sent[session_id] = sent
            self._journal.note_sent(uid, sent.last_run)
