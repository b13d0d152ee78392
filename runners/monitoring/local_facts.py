"""What a box knows of itself without the history: heartbeat, pause, disk, backups, and what waits."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from build.cache.pruning import cached_builds
from build.home import Home
from history.backups.rotation import PREFIX
from history.errors import HistoryError
from history.spool.journal import Waiting, waiting_in
from runners.nightly.heartbeat import Status, status
from runners.occupancy.pause import Pause, last_pause
from suites.data_copies.store import DataCopies


@dataclass(frozen=True)
class CurrentFacts:
    """What takes milliseconds to read, so that it is read again after each step of a session."""

    at: datetime
    found: Status
    pause: Pause | None
    """The last one, which may have ended."""

    free_bytes: int | None
    """What is free on the disk of the home; None before there is a home."""

    disk_bytes: int | None
    """The size of that disk."""

    @property
    def current_pause(self) -> Pause | None:
        """The pause that is in force; None without one."""
        return self.pause if self.pause is not None and self.pause.is_in_force(self.at) else None

    @property
    def night_seconds(self) -> float | None:
        """How long the last night took, or has taken so far; None before the first."""
        beat = self.found.beat
        if beat is None:
            return None
        end = self.at if beat.ended_at is None else datetime.fromisoformat(beat.ended_at)
        return max((end - datetime.fromisoformat(beat.began_at)).total_seconds(), 0.0)


@dataclass(frozen=True)
class StoredFacts:
    """What lies below the home, for which its folders are read through."""

    bytes_by_kind: Mapping[str, int]
    """What builds, copies of data, logs and backups take on the disk; a kind that could not be read is left
    out."""

    backups: int
    newest_backup: datetime | None
    waiting: tuple[Waiting, ...]
    """What the box has recorded and the history does not have yet."""

    problem: str
    """Why that is unknown; empty if it is known."""


def read_current(home: Home, now: datetime) -> CurrentFacts:
    """Read the heartbeat, the last pause and the free space of the disk."""
    pause = last_pause(home)
    found = status(home.heartbeat, now, None if pause is None else pause.until)
    try:
        disk = shutil.disk_usage(home.path)
    except OSError:  # there is no such folder before the first night
        return CurrentFacts(now, found, pause, None, None)
    return CurrentFacts(now, found, pause, disk.free, disk.total)


def read_stored(home: Home) -> StoredFacts:
    """Read what lies below the home."""
    backups = dict(_files(home.backups, f"{PREFIX}*.db"))
    written = [moment for _, moment in backups.values()]
    readers: dict[str, Callable[[], int]] = {
        "builds": lambda: sum(build.bytes for build in cached_builds(home)),
        "copies": lambda: sum(copy.bytes for copy in DataCopies(home.copies).all()),
        "logs": lambda: sum(size for _, (size, _) in _files(home.logs, "**/*")),
        "backups": lambda: sum(size for size, _ in backups.values()),
    }
    sizes = {}
    for kind, read in readers.items():
        with suppress(OSError):  # something is deleted, or published, at this moment
            sizes[kind] = read()
    try:
        waiting, problem = tuple(waiting_in(home.spool)), ""
    except HistoryError as error:
        waiting, problem = (), f"what waits on this box is unknown: {error}"
    return StoredFacts(sizes, len(backups), max(written, default=None), waiting, problem)


def _files(folder: Path, pattern: str) -> Iterator[tuple[Path, tuple[int, datetime]]]:
    """Yield regular files with their size in bytes and when they were last written."""
    for path in folder.glob(pattern):
        try:
            found = path.lstat()
        except OSError:
            continue
        if path.is_file() and not path.is_symlink():
            yield path, (found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))
