"""Which builds are deleted when the cache takes too much room: those used longest ago that nobody needs."""

import os
import shutil
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from build.cache import store
from build.files import make_folder
from build.finished_build import Build
from build.home import Home
from build.lock import held

if TYPE_CHECKING:
    from build.manifest import Manifest

GIGABYTE = 10**9

_USES = ".used"
"""The folder beside the builds with an empty file for each, whose time is that of the last use.

A build never changes after it was published, so that its own files cannot keep the time.
"""

_DELETED = ".deleted"
"""The suffix of a folder that is being deleted: a build is gone at once, or it is whole."""


@dataclass(frozen=True)
class CachedBuild:
    """A folder of the build cache."""

    folder: Path
    version: str
    """The version with what else it was compiled with, for people; empty without a manifest."""

    key: str
    bytes: int
    """What it takes on the disk."""

    used_at: datetime
    damage: str = ""
    """What it has lost, in words; empty if it can be used."""

    is_imported: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name


def mark_used(home: Home, build: Build) -> None:
    """Record that a build was used now. A cache that this user may not write to records nothing."""
    if build.prefix.parent != home.builds:
        return  # an install prefix of the user
    try:
        (make_folder(home.builds / _USES) / build.prefix.name).touch()
    except OSError:
        return


def cached_builds(home: Home) -> list[CachedBuild]:
    """Return the builds of the cache with what they take on the disk, the one used longest ago first."""
    found = [_cached(home, name) for name in store.folder_names(home)]
    return sorted(found, key=lambda cached: (cached.used_at, cached.name))


def superfluous(
    builds: Sequence[CachedBuild],
    needed: Collection[str],
    *,
    most_bytes: float | None = None,
    used_before: datetime | None = None,
) -> list[CachedBuild]:
    """Return the builds to delete, of `builds` in the order of `cached_builds`.

    These are all damaged ones, those last used before a moment, and, until `most_bytes` are left, those used
    longest ago. The keys `needed` stay, and so does what was imported, which cannot be compiled again.
    """
    chosen = [build for build in builds if build.damage]
    left = sum(build.bytes for build in builds if not build.damage)
    for build in builds:
        if build.damage or build.is_imported or build.key in needed:
            continue
        is_old = used_before is not None and build.used_at < used_before
        if is_old or (most_bytes is not None and left > most_bytes):
            chosen.append(build)
            left -= build.bytes
    return chosen


def remove(home: Home, builds: Sequence[CachedBuild]) -> None:
    """Delete builds, and what an interrupted call left. Raises OSError; what was deleted before is gone.

    Nothing may be measured meanwhile.
    """
    for build in builds:
        # A compile of the same key publishes its folder under this lock.
        with held(store.lock_path(home, build.key or build.name.rpartition("-")[2])):
            build.folder.rename(home.builds / f".{build.name}{_DELETED}")
    for rest in home.builds.glob(f".*{_DELETED}"):
        shutil.rmtree(rest)
    known = {*store.folder_names(home)}
    for mark in (home.builds / _USES).glob("*"):
        if mark.name not in known:
            mark.unlink()


def old_logs(home: Home, before: datetime) -> list[Path]:
    """Return the logs of compiles and servers that were last written before a moment."""
    found = []
    for path in home.logs.rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_mtime < before.timestamp():
            found.append(path)
    return sorted(found)


def _cached(home: Home, name: str) -> CachedBuild:
    folder = home.builds / name
    used_at, taken = _used_at(folder), _disk_bytes(folder)
    try:
        build = store.read_folder(folder)
    except store.StoreError as error:
        return CachedBuild(folder, "", "", taken, used_at, error.what)
    if build is None:
        return CachedBuild(folder, "", "", taken, used_at, f"it has no {store.MANIFEST}")
    is_imported = (folder / store.IMPORTED).exists()
    made = _described(build.version.plain, build.manifest)
    return CachedBuild(folder, made, build.key, taken, used_at, store.loss_of(build), is_imported)


def _used_at(folder: Path) -> datetime:
    """Return when a build was last used; without a record, when it was published."""
    for path in (folder.parent / _USES / folder.name, folder):
        try:
            return datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except FileNotFoundError:
            continue
    return datetime.fromtimestamp(0, UTC)


def _disk_bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        total += sum(os.lstat(f"{parent}/{file}").st_blocks * 512 for file in files)
    return total


def _described(version: object, manifest: "Manifest") -> str:
    """Return a version with what it was compiled with besides its source."""
    patches = len(manifest.patches)
    what = [f"{patches} {'patch' if patches == 1 else 'patches'}"] if patches else []
    for name, value in manifest.choices.items():
        what.append(f"{name}={' '.join(value) if isinstance(value, list) else value}")
    what += [" ".join(part for part in (made.name, made.ref) if part) for made in manifest.extensions]
    what += ["the server alone"] * bool(manifest.slim_programs)
    return ", ".join([str(version), *what])
