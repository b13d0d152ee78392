"""A history opened for writing: sessions are recorded run by run."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, insert, select, update

from history.errors import RecordError
from history.store.database import Database
from history.store.process import ProcessIdentity, is_alive, this_process
from history.store.reader import Reader
from history.store.records import DroppedRound, RunRecord, SessionStart, SessionStatus, StepNoise
from history.store.schema import dropped_rounds, machines, runs, sessions
from history.store.session_writes import (
    check_values,
    insert_noise,
    insert_run,
    intern,
    json_text,
    machine_row,
    require_plausible,
    session_row,
)
from history.timestamps import to_text
from suites.metrics import PRIMARY

if TYPE_CHECKING:
    from build.build import Build
    from history.store.resume import Interrupted

Derive = Callable[[Connection, int], object]
"""Writes what a session that ended comes to, such as its night, within the transaction that ends it."""


class Store(Reader):
    """An open history that can be written too. Made by `history.open.open_store`."""

    def __init__(self, database: Database, clock: Callable[[], datetime], derive: Derive) -> None:
        """`clock` says when sessions begin and end; `derive` is called for each session that ended."""
        super().__init__(database)
        self._clock = clock
        self._derive = derive

    def start_session(self, start: SessionStart) -> int:
        """Begin a session of this process and return its id.

        Sessions that a dead process of the same machine left running are marked interrupted. Raises
        RecordError when the uid is taken.
        """
        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            self._interrupt_dead_sessions(connection, machine_id)
            row = session_row(start, machine_id, this_process()) | {"started_at": to_text(self._clock())}
            statement = insert(sessions).values(row).returning(sessions.c.id)
            return int(connection.execute(statement).scalar_one())

    def resume_session(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "Interrupted | None":
        """Go on with the latest session that asked for the same and was interrupted; None when there is none.

        It is then running again, in this process, and keeps its uid.
        """
        from history.store.resume import find_interrupted, reopen  # loads what only a session needs

        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            self._interrupt_dead_sessions(connection, machine_id)
            found = find_interrupted(connection, start, builds, since)
            if found is not None:
                reopen(connection, found.id, this_process())
        return found

    def finish_session(self, session_id: int, status: SessionStatus) -> None:
        """End a running session and derive its night. Raises RecordError when it is not running."""
        if status is SessionStatus.RUNNING:
            raise ValueError("a session does not end as running")
        statement = (
            update(sessions)
            .where(sessions.c.id == session_id, sessions.c.status == SessionStatus.RUNNING)
            .values(status=status, ended_at=to_text(self._clock()))
        )
        with self._database.writing() as connection:
            if connection.execute(statement).rowcount != 1:
                raise RecordError(
                    f"session {session_id} is not running", where=self.where, hint="it has ended already"
                )
            self._derive(connection, session_id)

    def record_run(self, session_id: int, record: RunRecord) -> int:
        """Write one run with its measurements and samples; durable on return, else nothing of it is there.

        Returns the run's id. Raises RecordError for an unknown metric, a value that its metric cannot have,
        and a run (version, step, repetition) that the session already holds.
        """
        return self.record_runs(session_id, [record])[0]

    def record_runs(self, session_id: int, records: Sequence[RunRecord]) -> list[int]:
        """Write the runs of a round: all of them, or none. Returns their ids; raises as `record_run`."""
        for record in records:
            if record.measurement is not None:
                check_values(record.measurement, where=f"{record.build.version} {record.step}")
        with self._database.writing() as connection:
            return [insert_run(connection, session_id, record) for record in records]

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
        with self._database.writing() as connection:
            connection.execute(insert(dropped_rounds).values(row))

    def record_noise(self, session_id: int, noise: Sequence[StepNoise]) -> None:
        """Write what a session of identical builds says about the noise of its steps."""
        with self._database.writing() as connection:
            insert_noise(connection, session_id, noise)

    def _interrupt_dead_sessions(self, connection: Connection, machine_id: int) -> None:
        # A machine whose settings were changed meanwhile is another row; in one boot it is the same machine.
        here = (sessions.c.machine_id == machine_id) | (sessions.c.boot_id == this_process().boot_id)
        mine = select(sessions).where(here, sessions.c.status == SessionStatus.RUNNING)
        for row in connection.execute(mine).all():
            if is_alive(ProcessIdentity(row.process_id, row.process_start_ticks, row.boot_id)):
                continue
            last_run = select(func.max(runs.c.ended_at)).where(runs.c.session_id == row.id).scalar_subquery()
            connection.execute(
                update(sessions)
                .where(sessions.c.id == row.id)
                .values(status=SessionStatus.INTERRUPTED, ended_at=func.coalesce(last_run, row.started_at))
            )
            self._derive(connection, row.id)
