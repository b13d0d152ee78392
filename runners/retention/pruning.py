"""Deleting builds that nobody needs, copies of data that no build can use, and old logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from build.cache import pruning
from build.cache.pruning import GIGABYTE, CachedBuild, cached_builds
from build.home import Home
from history.counts import counted
from runners.retention.data_command import chosen as chosen_copies
from suites.data_copies.store import DataCopies


@dataclass(frozen=True)
class Limits:
    """What may stay; None of a limit keeps everything."""

    builds_bytes: float | None = None
    """The most that builds take on the disk."""

    builds_used_before: datetime | None = None
    """Builds that were last used before this moment are deleted."""

    logs_written_before: datetime | None = None
    """Logs that were last written before this moment are deleted."""


@dataclass(frozen=True)
class Pruned:
    """What was deleted, and what is left."""

    builds: tuple[CachedBuild, ...]
    copies: int
    copies_bytes: int
    logs: int
    logs_bytes: int
    left: tuple[CachedBuild, ...]
    """The builds that are left."""

    @property
    def left_bytes(self) -> int:
        """What the builds that are left take on the disk."""
        return sum(build.bytes for build in self.left)

    def __str__(self) -> str:
        """One line for people; empty if nothing was deleted."""
        sizes = [
            (counted(len(self.builds), "build"), sum(build.bytes for build in self.builds)),
            (counted(self.copies, "copy of data", "copies of data"), self.copies_bytes),
            (counted(self.logs, "log"), self.logs_bytes),
        ]
        parts = [f"{what} ({gigabytes(size)})" for what, size in sizes if not what.startswith("0 ")]
        if not parts:
            return ""
        left = f"{counted(len(self.left), 'build')} left, {gigabytes(self.left_bytes)}"
        return f"deleted: {', '.join(parts)}; {left}"


def prune(
    home: Home, needed: Mapping[str, str], limits: Limits, named: tuple[CachedBuild, ...] = ()
) -> Pruned:
    """Delete what is beyond the limits, and the builds `named`; nothing may be measured meanwhile.

    `needed` is build key -> why it stays whatever it takes. Copies of data go with their builds, because
    nothing else can use them. Raises OSError; what was deleted before is gone.
    """
    known = cached_builds(home)
    gone = pruning.superfluous(
        known, needed, most_bytes=limits.builds_bytes, used_before=limits.builds_used_before
    )
    gone += [build for build in named if build not in gone]
    pruning.remove(home, gone)
    left = tuple(build for build in known if build not in gone)
    copies = DataCopies(home.copies)
    names = {build.name for build in left} | {path.stem for path in home.installs.glob("*.json")}
    unusable = chosen_copies(copies.all(), (), names, everything=False)
    for copy in unusable:
        copies.remove(copy)
    before = limits.logs_written_before
    logs = pruning.old_logs(home, before) if before is not None else []
    sizes = [path.lstat().st_size for path in logs]
    for path in logs:
        path.unlink()
    return Pruned(
        tuple(gone), len(unusable), sum(copy.bytes for copy in unusable), len(logs), sum(sizes), left
    )


def gigabytes(size: float) -> str:
    """Return bytes in gigabytes, as `data list` does."""
    return f"{size / GIGABYTE:.2f} GB"
