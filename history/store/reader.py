"""A history opened for reading: its sessions, runs, profiles and calibrations."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from build.version import Version
from history.store import session_reads
from history.store.database import Database
from history.store.records import (
    CalibratedNoise,
    DroppedRound,
    LatestRun,
    Machine,
    Run,
    Session,
    SessionStart,
)
from history.store.session_lookup import Name, SessionFilter, latest, latest_of_any_status
from history.store.sqlite.soundness import require_sound_session
from suites.control_groups.declared import Declared

if TYPE_CHECKING:
    from suites.accounting.activity import Activity
    from suites.profiling.stacks import StepProfile


class Reader:
    """An open history. It is a context manager that closes the connections at its end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """The database, for modules that read or write anything other than sessions."""
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
        """Close the connections. Everything recorded is durable already."""
        self._database.close()

    def dropped(self, session_id: int) -> tuple[DroppedRound, ...]:
        """Return the dropped rounds of a session, in the order in which they were dropped."""
        with self._database.reading() as connection:
            return session_reads.dropped_of(connection, session_id)

    def noise(
        self, session: SessionStart, metric: str, until: datetime | None = None
    ) -> Mapping[str, CalibratedNoise]:
        """Return the noise of a metric by step, from the latest calibrations that apply to a session.

        `until` ignores calibrations that began later. `latest_noise` says which calibrations apply.
        """
        with self._database.reading() as connection:
            return session_reads.latest_noise(connection, session, metric, until)

    def calibrated_throughput(
        self, machine: Machine, suite: str, profile: str, durability: str, declared: Declared, step: str
    ) -> float | None:
        """Return the mean transactions/s of a step in the latest calibration; None without one.

        `declared` is what each server gets in place of what the machine has.
        """
        with self._database.reading() as connection:
            return session_reads.calibrated_throughput(
                connection, machine, suite, profile, durability, declared, step
            )

    def profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """Return the CPU profiles of a version on a step, by round; empty when it was not profiled."""
        from history.store.profiles import profiles_of  # loaded only when there are profiles

        with self._database.reading() as connection:
            return profiles_of(connection, session_id, step, str(version))

    def counted_profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """Return the counted instructions of a version on a step by function, by round."""
        from history.store.profiles import counted_profiles_of  # loaded only when there are profiles

        with self._database.reading() as connection:
            return counted_profiles_of(connection, session_id, step, str(version))

    def wait_profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """Return what the clients of a version did on a step, by round; empty when it was not sampled."""
        from history.store.profiles import wait_profiles_of  # loaded only when a step changed

        with self._database.reading() as connection:
            return wait_profiles_of(connection, session_id, step, str(version))

    def profiled_steps(self, session_id: int) -> tuple[set[str], set[str], set[str]]:
        """Return the steps of a session with sampled CPU profiles, with client waits, with counted ones."""
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
        """Return the latest session with a run, whatever its outcome, of each version; None without any."""
        latest_match = self.latest_of(list(map(Name, versions)), SessionFilter(suite, profile, uid, box))
        return None if latest_match is None else latest_match[0]

    def latest_of(
        self, names: Sequence[Name], limits: SessionFilter
    ) -> tuple[Session, tuple[Version, ...]] | None:
        """Return the latest session with all names, and their versions in it; None when there is none.

        Raises HistoryError for one that `require_sound_session` finds damaged.
        """
        with self._database.reading() as connection:
            match = latest(connection, names, limits)
            if match is None:
                return None
            session_id, versions = match
            if not self._database.is_shared:  # a server keeps its foreign keys itself
                require_sound_session(connection, session_id, self.where)
            return session_reads.session_of(connection, session_id), versions

    def passed_over(self, names: Sequence[Name], limits: SessionFilter, session: Session) -> Session | None:
        """Return the session after `session` with all names that failed or was interrupted; None without."""
        with self._database.reading() as connection:
            match = latest_of_any_status(connection, names, limits)
            if match is None or match[0] == session.id:
                return None
            return session_reads.session_of(connection, match[0])

    def latest_machine(self, hostname: str) -> Machine | None:
        """Return the machine of a host as of its latest session; None when the host has no session."""
        with self._database.reading() as connection:
            return session_reads.latest_machine(connection, hostname)

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """Return the runs of a session in the order in which they were carried out.

        Without versions those of all versions, and without metrics the values of all metrics.
        """
        with self._database.reading() as connection:
            return session_reads.runs_of(connection, session_id, versions, metrics)

    def samples(self, session_id: int, step: str) -> Mapping[int, Sequence[float]]:
        """Return the throughput of each second of the runs of a step in a session, by run's id."""
        with self._database.reading() as connection:
            return session_reads.samples_of(connection, session_id, step)

    def activities(self, session_id: int) -> "Mapping[int, Sequence[Activity]]":
        """Return what went on beside queries in the runs of a session, by run's id."""
        with self._database.reading() as connection:
            return session_reads.activities_of(connection, session_id)

    def bursts(self, session: Session) -> Collection[int]:
        """Return the ids of the runs of a session that had background work which comes in bursts."""
        if not session.is_long:
            return ()
        with self._database.reading() as connection:
            return session_reads.bursts_of(connection, session.id, session.options)

    def kinds(
        self, session_id: int, versions: Sequence[Version]
    ) -> Mapping[int, Mapping[str, Mapping[str, float]]]:
        """Return the values of the runs of some versions in a session, by run's id, kind and metric."""
        with self._database.reading() as connection:
            return session_reads.kinds_of(connection, session_id, versions)

    def manifests(self, session_id: int, versions: Sequence[Version]) -> Mapping[str, Mapping[str, Any]]:
        """Return the manifests of the builds of some versions in a session, by version."""
        with self._database.reading() as connection:
            return session_reads.manifests_of(connection, session_id, versions)

    def settings(self, session_id: int, versions: Sequence[Version]) -> Mapping[str, Mapping[str, str]]:
        """Return the settings with which the servers of some versions ran in a session, by version."""
        with self._database.reading() as connection:
            return session_reads.settings_of(connection, session_id, versions)

    def latest_runs(self) -> tuple[LatestRun, ...]:
        """Return the latest session of each version, suite and profile, latest first."""
        with self._database.reading() as connection:
            return session_reads.latest_runs(connection)
