"""A history that is looked at: what it did and measured, session by session."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from build.home import locate
from build.version import Version
from history.errors import HistoryError
from history.store import session_reads
from history.store.records import CalibratedNoise, DroppedRound, Machine, Run, Session, SessionStart, Sighting
from history.store.schema_status import is_ready
from history.store.session_lookup import Name, SessionFilter, latest
from history.store.sql import Source, SqliteFile

if TYPE_CHECKING:
    from suites.profiling.stacks import StepProfile


class Askable(Protocol):
    """A database that can be asked: a SqliteFile, or a history.store.database.Database."""

    where: str

    def asking(self) -> AbstractContextManager[Source]:
        """A transaction for questions in plain SQL."""

    def close(self) -> None:
        """Close every connection."""


class Reader:
    """An open history. A context manager; leaving it closes the connections."""

    def __init__(self, asked: Askable) -> None:
        self._asked = asked

    @property
    def where(self) -> str:
        """The path, or the URL without its password."""
        return self._asked.where

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; everything recorded is durable already."""
        self._asked.close()

    def asking(self) -> AbstractContextManager[Source]:
        """A transaction for questions in plain SQL."""
        return self._asked.asking()

    def dropped(self, session_id: int) -> tuple[DroppedRound, ...]:
        """The rounds of a session that were measured again, in order."""
        with self.asking() as source:
            return session_reads.dropped_of(source, session_id)

    def noise(
        self, session: SessionStart, metric: str, until: datetime | None = None
    ) -> Mapping[str, CalibratedNoise]:
        """The latest calibration's noise by step, on the machine, suite and profile of a session.

        `until` leaves out calibrations that began later.
        """
        with self.asking() as source:
            return session_reads.latest_noise(source, session, metric, until)

    def profiles(self, session_id: int, step: str, version: Version) -> "Mapping[int, StepProfile]":
        """The CPU profiles of a version on a step, by round; empty when it was not profiled."""
        from history.store.profiles import profiles_of  # only who has profiles waits for this

        with self.asking() as source:
            return profiles_of(source, session_id, step, str(version))

    def profiled_steps(self, session_id: int) -> set[str]:
        """The steps of a session of which there are CPU profiles."""
        with self.asking() as source:
            return session_reads.profiled_steps(source, session_id)

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
        with self.asking() as source:
            found = latest(source, names, limits)
            return None if found is None else (session_reads.session_of(source, found[0]), found[1])

    def latest_machine(self, hostname: str) -> Machine | None:
        """The machine of this name as it was when the last session began on it; None when none ever did."""
        with self.asking() as source:
            return session_reads.latest_machine(source, hostname)

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """The runs of a session in the order they were carried out; of the given versions, else of all.

        With the values of the given metrics, else of all.
        """
        with self.asking() as source:
            return session_reads.runs_of(source, session_id, versions, metrics)

    def sightings(self) -> tuple[Sighting, ...]:
        """Where each version was last run, per suite and profile; the latest first."""
        with self.asking() as source:
            return session_reads.sightings(source)


def existing_history(chosen: str | None) -> Path | str:
    """The path or URL of a history to look at: the one chosen, else Tidemark's own.

    Raises HistoryError when there is none: looking at one must not create it.
    """
    if chosen and "://" in chosen:
        return chosen
    path = Path(chosen) if chosen else locate().history
    if not path.is_file():
        raise HistoryError("there is no history yet", where=str(path), hint="./tidemark demo writes one")
    return path


def open_reader(target: Path | str) -> Reader:
    """Open the history at a path or an SQLAlchemy URL for looking.

    A SQLite file that is as this Tidemark needs it is read at once. All else is left to `open_store`, which
    raises as it does, and brings a history of an older Tidemark up to date.
    """
    file = _as_it_is(target) if isinstance(target, Path) else None
    if file is not None:
        return Reader(file)
    from history.store.writer import open_store  # SQLAlchemy is worth a wait here only

    return open_store(target)


def _as_it_is(path: Path) -> SqliteFile | None:
    """The file, when nothing has to be done to it and nothing is wrong with it."""
    with suppress(HistoryError):  # open_store finds out what is wrong
        file = SqliteFile(path)
        if _is_ready(file):
            return file
        file.close()
    return None


def _is_ready(file: SqliteFile) -> bool:
    with suppress(HistoryError), file.asking() as source:
        return is_ready(source)
    return False
