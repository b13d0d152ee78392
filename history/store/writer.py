"""A history opened for writing, in which sessions are recorded run by run."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from history.errors import RecordError, stored_options
from history.store.database import Database
from history.store.process import ProcessIdentity, is_alive, this_process
from history.store.reader import Reader
from history.store.records import (
    DATA,
    EXECUTED,
    FAILED,
    OUT_OF_TIME,
    PLANS,
    DroppedRound,
    RunRecord,
    SessionStart,
    SessionStatus,
    StepNoise,
    VersionFailure,
)
from history.store.schema import dropped_rounds, machines, runs, sessions
from history.store.session_writes import (
    check_values,
    insert_noise,
    insert_runs,
    intern,
    json_text,
    machine_row,
    require_plausible,
    session_row,
)
from history.timestamps import to_text
from suites.metrics import PRIMARY
from suites.turns.warmth import WARMED_UP, Warmth

if TYPE_CHECKING:
    from build.finished_build import Build
    from history.store.resume import InterruptedSession, NotResumed

LONGEST_DAYS = 7
"""A session that began this long ago in a history that boxes share, and still runs, has died."""

Derive = Callable[[Connection, int], object]
"""Derives a session that has ended, in the same transaction: writes its night or confirmation."""


class Store(Reader):
    """An open history that can also be written. `history.open.open_store` creates it."""

    def __init__(self, database: Database, clock: Callable[[], datetime], derive: Derive) -> None:
        """`clock` gives the times at which sessions begin and end; `derive` is called when one ends."""
        super().__init__(database)
        self._clock = clock
        self._derive = derive

    def now(self) -> datetime:
        """Return the time by the clock of the store."""
        return self._clock()

    @property
    def away(self) -> str:
        """Why what is recorded waits on this box instead of reaching the history; empty if it does not."""
        return ""

    @property
    def problems(self) -> Sequence[str]:
        """What of recording needs somebody: what waits on this box and why, its name, its clock."""
        return ()

    def holder(self, uid: str) -> Reader:
        """Return where a session can be read: in this history, unless it waits on the box."""
        return self

    def recorded_id(self, uid: str) -> int:
        """Return the id by which more is recorded of a session of this box. Raises RecordError without it."""
        session = self.latest_session((), uid=uid)
        if session is None:
            raise RecordError(f"there is no session {uid}", where=self.where)
        return session.id

    @contextmanager
    def standing_in(self) -> Iterator[Sequence[Connection]]:
        """Begin to read in what there is: this history, or what the box has while the history is away."""
        with self._database.reading() as connection:
            yield [connection]

    def deliver(self) -> None:
        """Send what waits on the box to the history, if anything does; `problems` say why that failed."""

    def start_session(self, start: SessionStart) -> int:
        """Begin a session of this process and return its id.

        Sessions that a dead process of the same machine left running are marked as interrupted. Raises
        RecordError when the uid exists already.
        """
        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            now = self._clock()
            self._interrupt_dead_sessions(connection, machine_id, now)
            row = session_row(start, machine_id, this_process()) | {"started_at": to_text(now)}
            statement = insert(sessions).values(row).returning(sessions.c.id)
            return int(connection.execute(statement).scalar_one())

    def resume_session(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "InterruptedSession | None":
        """Resume and return the latest interrupted session with the same request; None when there is none.

        It keeps its uid and is then running in this process.
        """
        from history.store.resume import find_interrupted, reopen  # loaded only by measuring sessions

        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            self._interrupt_dead_sessions(connection, machine_id, self._clock())
            interrupted = find_interrupted(connection, start, builds, since)
            if interrupted is not None:
                reopen(connection, interrupted.id, this_process())
        return interrupted

    def nearest_interrupted(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "NotResumed | None":
        """Return the interrupted session of this host that was nearest to be resumed; None without any."""
        from history.store.resume import nearest_interrupted

        with self._database.reading() as connection:
            return nearest_interrupted(connection, start, builds, since)

    def finish_session(self, session_id: int, status: SessionStatus) -> None:
        """End a running session and derive its night.

        Raises RecordError when it is not running, and ValueError when `status` is running.
        """
        if status is SessionStatus.RUNNING:
            raise ValueError("a session cannot end with status running")
        statement = (
            update(sessions)
            .where(sessions.c.id == session_id, sessions.c.status == SessionStatus.RUNNING)
            .values(status=status, ended_at=to_text(self._clock()))
        )
        with self._database.writing() as connection:
            if connection.execute(statement).rowcount != 1:
                raise RecordError(
                    f"session {session_id} is not running", where=self.where, hint="it has already ended"
                )
            self._derive(connection, session_id)

    @contextmanager
    def _recording(self, session_id: int) -> Iterator[Connection]:
        """Begin to write what belongs to a session: every method that records does so through this one."""
        with self._database.writing() as connection:
            yield connection

    def record_run(self, session_id: int, record: RunRecord) -> int:
        """Write a run with its measurements and samples durably, or nothing of it; return its id.

        Returns the run's id. Raises RecordError for an unknown metric, a value that its metric cannot have,
        and a run (version, step, repetition) that the session already holds.
        """
        return self.record_runs(session_id, [record])[0]

    def record_runs(self, session_id: int, records: Sequence[RunRecord]) -> list[int]:
        """Write the runs of a round, all or none, and return their ids. Raises as `record_run`."""
        for record in records:
            if record.measurement is not None:
                check_values(record.measurement, where=f"{record.build.version} {record.step}")
        with self._recording(session_id) as connection:
            return insert_runs(connection, session_id, records)

    def record_dropped(self, session_id: int, dropped: DroppedRound) -> None:
        """Keep what a disturbed round measured, and why it is measured again.

        Raises RecordError for a throughput that cannot be.
        """
        for version, qps in dropped.measured.items():
            require_plausible(PRIMARY, qps, where=f"{version} {dropped.step}")
        row = vars(dropped) | {
            "session_id": session_id,
            "dropped_at": to_text(self._clock()),
            "measured": json_text(dropped.measured),
        }
        with self._recording(session_id) as connection:
            connection.execute(insert(dropped_rounds).values(row))

    def record_plans(self, session_id: int, version: str, plans: Mapping[str, str]) -> None:
        """Store the plans of a version, by step, in the options of a session."""
        self._set_option(session_id, PLANS, {version: dict(plans)})

    def record_data(self, session_id: int, version: str, extent: Mapping[str, int]) -> None:
        """Store how large the loaded data of a version are, in the options of a session."""
        self._set_option(session_id, DATA, {version: dict(extent)})

    def record_warmth(self, session_id: int, step: str, warmth: Warmth) -> None:
        """Store how servers warmed up before a step, in the options of a session."""
        self._set_option(session_id, WARMED_UP, {step: warmth.as_option()})

    def _set_option(self, session_id: int, option: str, values: Mapping[str, object] | bool) -> None:
        """Set an option of a session, or add values to one that is an object."""
        query = select(sessions.c.options).where(sessions.c.id == session_id)
        with self._recording(session_id) as connection:
            options = stored_options(connection.execute(query).scalar_one())
            value = values if isinstance(values, bool) else {**options.get(option, {}), **values}
            statement = update(sessions).where(sessions.c.id == session_id)
            connection.execute(statement.values(options=json_text({**options, option: value})))

    def record_failed(self, session_id: int, failed: Mapping[str, VersionFailure]) -> None:
        """Store which versions failed, by version, in the options of a session."""
        causes = {version: {"cause": why.cause, "reason": why.reason} for version, why in failed.items()}
        self._set_option(session_id, FAILED, causes)

    def record_out_of_time(self, session_id: int) -> None:
        """Store that the budget of a session ended before each step was decided."""
        self._set_option(session_id, OUT_OF_TIME, True)

    def record_executed(self, session_id: int, step: str, functions: Collection[str]) -> None:
        """Store which of the changed functions a step has executed, in the options of a session."""
        self._set_option(session_id, EXECUTED, {step: sorted(functions)})

    def record_noise(self, session_id: int, noise: Sequence[StepNoise]) -> None:
        """Write the noise of the steps that a session of identical builds has determined."""
        with self._recording(session_id) as connection:
            insert_noise(connection, session_id, noise)

    def _interrupt_dead_sessions(self, connection: Connection, machine_id: int, now: datetime) -> None:
        columns = sessions.c
        here: ColumnElement[bool] = columns.machine_id == machine_id
        if self._database.is_shared:
            # Another box may have the name and the hardware of this one: only an old session is surely dead.
            here &= columns.started_at < to_text(now - timedelta(days=LONGEST_DAYS))
        # A machine whose settings changed meanwhile is another row, but the boot id shows it is the same.
        self.interrupt_dead(connection, here | (columns.boot_id == this_process().boot_id))

    def interrupt_dead(self, connection: Connection, which: ColumnElement[bool]) -> None:
        """Mark sessions as interrupted that are running, but whose process is not alive on this machine."""
        running = select(sessions).where(which, sessions.c.status == SessionStatus.RUNNING)
        for row in connection.execute(running).all():
            if is_alive(ProcessIdentity(row.process_id, row.process_start_ticks, row.boot_id)):
                continue
            last_run = select(func.max(runs.c.ended_at)).where(runs.c.session_id == row.id).scalar_subquery()
            connection.execute(
                update(sessions)
                .where(sessions.c.id == row.id)
                .values(status=SessionStatus.INTERRUPTED, ended_at=func.coalesce(last_run, row.started_at))
            )
            self._derive(connection, row.id)
