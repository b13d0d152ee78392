"""A history opened for reading: what its sessions did and measured."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from build.version import Version
from history.store import session_reads
from history.store.database import Database
from history.store.records import CalibratedNoise, DroppedRound, Machine, Run, Session, SessionStart, Sighting
from history.store.session_lookup import Name, SessionFilter, latest

if TYPE_CHECKING:
    from suites.profiling.stacks import StepProfile


class Reader:
    """An open history. It is a context manager; leaving it closes the connections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """The database, for the modules that read or write what is not a session."""
        return self._database

    @property
    def where(self) -> str:
        """The path, or the URL without its password."""
        return self._database.where

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; everything recorded is durable already."""
        self._database.close()

    def dropped(self, session_id: int) -> tuple[DroppedRound, ...]:
        """The rounds of a session that were measured again, in order."""
        with self._database.reading() as connection:
            return session_reads.dropped_of(connection, session_id)

    def noise(
        self, session: SessionStart, metric: str, until: datetime | None = None
    ) -> Mapping[str, CalibratedNoise]:
        """The latest calibration's noise by step, on the machine, suite and profile of a session.

        `until` leaves out calibrations that began later.
        """
        with self._database.reading() as connection:
            return session_reads.latest_noise(connection, session, metric, until)

    def profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """The CPU profiles of a version on a step, by round; empty when it was not profiled."""
        from history.store.profiles import profiles_of  # loaded only where there are profiles

        with self._database.reading() as connection:
            return profiles_of(connection, session_id, step, str(version))

    def profiled_steps(self, session_id: int) -> set[str]:
        """The steps of a session of which there are CPU profiles."""
        with self._database.reading() as connection:
            return session_reads.profiled_steps(connection, session_id)

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
        found = self.latest_of(list(map(Name, versions)), SessionFilter(suite, profile, uid, box))
        return None if found is None else found[0]

    def latest_of(
        self, names: Sequence[Name], limits: SessionFilter
    ) -> tuple[Session, tuple[Version, ...]] | None:
        """The session started last that holds all names, and the versions that they stand for in it."""
        with self._database.reading() as connection:
            found = latest(connection, names, limits)
            return None if found is None else (session_reads.session_of(connection, found[0]), found[1])

    def latest_machine(self, hostname: str) -> Machine | None:
        """The machine of this name as it was when the last session began on it; None when none ever did."""
        with self._database.reading() as connection:
            return session_reads.latest_machine(connection, hostname)

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """The runs of a session in the order they were carried out; of the given versions, else of all.

        With the values of the given metrics, else of all.
        """
        with self._database.reading() as connection:
            return session_reads.runs_of(connection, session_id, versions, metrics)

    def sightings(self) -> tuple[Sighting, ...]:
        """Where each version was last run, per suite and profile; the latest first."""
        with self._database.reading() as connection:
            return session_reads.sightings(connection)
