"""The store: what sessions did and measured, written run by run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, func, insert, select, text, update

from build.version import Version
from history import calibration, reading
from history.database import Database, RecordError, connect, connect_readonly, sqlite_file
from history.liveness import ProcessIdentity, is_alive, this_process
from history.migrate import migrate, newest, schema_number
from history.records import (
    CalibratedNoise,
    DroppedRound,
    Machine,
    Run,
    RunRecord,
    Session,
    SessionStart,
    SessionStatus,
    Sighting,
    StepNoise,
)
from history.schema import (
    dropped_rounds,
    machines,
    metrics,
    runs,
    sessions,
)
from history.schema import nights as nights_table
from history.selection import Limits, Name, is_no_bisect, latest
from history.times import now, to_text
from history.writing import check_values, insert_run, intern, json_text, machine_row, session_row
from suites.measurement import METRICS

if TYPE_CHECKING:
    from build.build import Build
    from history.resuming import Interrupted
    from suites.profiling.stacks import StepProfile


def open_store(target: Path | str, clock: Callable[[], datetime] = now) -> "Store":
    """Open the history at a path or an SQLAlchemy URL; create it, or bring its schema up to date, first.

    Raises HistoryError, leaving the target as it is, when that is no history of Tidemark's, is damaged, or
    was written by a newer Tidemark.
    """
    file = sqlite_file(target)
    # To look first leaves a file that is not ours as it is, down to its write-ahead log.
    found = schema_number(connect_readonly(file), known=newest()) if file else None
    database = connect(target)
    try:
        if found != newest():
            migrate(database)
        _derive_older(database)
        _sync_metrics(database)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


class Store:
    """An open history. A context manager; leaving it closes the connections."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    @property
    def where(self) -> str:
        """The path, or the URL without its password."""
        return self._database.where

    @property
    def database(self) -> Database:
        """For the modules that read and write what is not a session."""
        return self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; everything recorded is durable already."""
        self._database.close()

    def start_session(self, start: SessionStart) -> int:
        """Begin a session of this process and return its id.

        Sessions that a dead process of the same machine left running are marked interrupted. Raises
        RecordError when the uid is taken.
        """
        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            _interrupt_dead_sessions(connection, machine_id)
            row = session_row(start, machine_id, this_process()) | {"started_at": to_text(self._clock())}
            statement = insert(sessions).values(row).returning(sessions.c.id)
            return int(connection.execute(statement).scalar_one())

    def resume_session(
        self, start: SessionStart, builds: "Sequence[Build]", since: datetime
    ) -> "Interrupted | None":
        """Go on with the latest session that asked for the same and was interrupted; None when there is none.

        It is then running again, in this process, and keeps its uid.
        """
        from history.resuming import find_interrupted, reopen  # compare has no need of it

        with self._database.writing() as connection:
            machine_id = intern(connection, machines, "fingerprint", machine_row(start.machine))
            _interrupt_dead_sessions(connection, machine_id)
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
            _derive(connection, session_id)

    def record_run(self, session_id: int, record: RunRecord) -> int:
        """Write one run with its measurements and samples; durable on return, else nothing of it is there.

        Returns the run's id. Raises RecordError for an unknown metric, a value that is not finite, and a
        run (version, step, repetition) that the session already holds.
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
        """Keep what a disturbed round measured, and why it is measured again."""
        row = vars(dropped) | {
            "session_id": session_id,
            "dropped_at": to_text(self._clock()),
            "measured": json_text(dropped.measured),
        }
        with self._database.writing() as connection:
            connection.execute(insert(dropped_rounds).values(row))

    def dropped(self, session_id: int) -> tuple[DroppedRound, ...]:
        """The rounds of a session that were measured again, in order."""
        with self._database.reading() as connection:
            return reading.dropped_of(connection, session_id)

    def record_noise(self, session_id: int, noise: Sequence[StepNoise]) -> None:
        """Write what a session of identical builds says about the noise of its steps."""
        with self._database.writing() as connection:
            calibration.insert_noise(connection, session_id, noise)

    def noise(
        self, session: SessionStart, metric: str, until: datetime | None = None
    ) -> Mapping[str, CalibratedNoise]:
        """The latest calibration's noise by step, on the machine, suite and profile of a session.

        `until` leaves out calibrations that began later.
        """
        with self._database.reading() as connection:
            return calibration.latest_noise(connection, session, metric, until)

    def profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """The CPU profiles of a version on a step, by round; empty when it was not profiled."""
        with self._database.reading() as connection:
            from history.profiles import profiles_of

            return profiles_of(connection, session_id, step, str(version))

    def profiled_steps(self, session_id: int) -> set[str]:
        """The steps of a session of which there are CPU profiles."""
        with self._database.reading() as connection:
            return reading.profiled_steps(connection, session_id)

    def latest_session(
        self,
        versions: Sequence[Version],
        *,
        suite: str | None = None,
        profile: str | None = None,
        uid: str | None = None,
        box: str | None = None,
    ) -> Session | None:
        """The session started last that holds a run, whatever its outcome, of each of the versions."""
        found = self.latest_of(list(map(Name, versions)), Limits(suite, profile, uid, box))
        return None if found is None else found[0]

    def latest_of(self, names: Sequence[Name], limits: Limits) -> tuple[Session, tuple[Version, ...]] | None:
        """The session started last that holds all names, and the versions that they stand for in it."""
        with self._database.reading() as connection:
            found = latest(connection, names, limits)
            return None if found is None else (reading.session_of(connection, found[0]), found[1])

    def latest_machine(self, hostname: str) -> Machine | None:
        """The machine of this name as it was when the last session began on it; None when none ever did."""
        with self._database.reading() as connection:
            return reading.latest_machine(connection, hostname)

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """The runs of a session in the order they were carried out; of the given versions, else of all.

        With the values of the given metrics, else of all.
        """
        with self._database.reading() as connection:
            return reading.runs_of(connection, session_id, versions, metrics)

    def sightings(self) -> tuple[Sighting, ...]:
        """Where each version was last run, per suite and profile; the latest first."""
        with self._database.reading() as connection:
            return reading.sightings(connection)


def _interrupt_dead_sessions(connection: Connection, machine_id: int) -> None:
    # A machine whose settings were changed meanwhile is another row; in the same boot it is the same machine.
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
        _derive(connection, row.id)


def _derive(connection: Connection, session_id: int) -> None:
    from history.nights import derive  # here and above: only who writes, or has profiles, waits for these

    derive(connection, session_id)


def _derive_older(database: Database) -> None:
    """Give the sessions of a history from before there were nights theirs."""
    with database.reading() as connection:
        if connection.execute(select(nights_table.c.session_id).limit(1)).scalar() is not None:
            return
        ended = sessions.c.status != SessionStatus.RUNNING
        some = select(sessions.c.id).where(ended, is_no_bisect()).limit(1)
        if connection.execute(some).scalar() is None:
            return
    with database.writing() as connection:
        from history.nights import derive_missing

        derive_missing(connection)


def _sync_metrics(database: Database) -> None:
    """Make the table say what METRICS says; a metric that is gone from there keeps its last description."""
    with database.reading() as connection:
        rows = connection.execute(select(metrics)).mappings().all()
    known = {row["name"]: dict(row) for row in rows}
    wanted = {name: vars(metric) for name, metric in METRICS.items()}
    changed = [row for name, row in wanted.items() if known.get(name) != row]
    if not changed:
        return
    statement = text(
        "INSERT INTO metrics (name, unit, better, description) VALUES (:name, :unit, :better, :description)"
        " ON CONFLICT (name) DO UPDATE SET"
        " unit = excluded.unit, better = excluded.better, description = excluded.description"
    )
    with database.writing() as connection:
        connection.execute(statement, changed)
