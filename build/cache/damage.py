"""What a build in the cache has lost since it was published: files that are gone or cut short."""

import os
import stat
from pathlib import Path

from build.build import Build
from build.errors import TidemarkError
from build.recipes.engines import RECIPES


def installed(tree: Path) -> dict[str, int]:
    """Count the regular files and links below an install tree, and the bytes of the regular ones."""
    entries = [entry.lstat() for entry in tree.rglob("*")]
    kept = [entry for entry in entries if not stat.S_ISDIR(entry.st_mode)]
    return {"files": len(kept), "bytes": sum(file.st_size for file in kept if stat.S_ISREG(file.st_mode))}


def lost(build: Build, beside: tuple[str, ...]) -> str:
    """Return what a build has lost, in words; an empty text if it has all that was installed.

    `beside` are the files that were written after the count. A build whose manifest has no count, which
    older programs wrote, is checked for the files without which its recipe does not count as installed.
    """
    missing = [name for name in _needed(build) if not os.path.lexists(build.prefix / name)]
    if missing:
        return f"{missing[0]} is missing"
    recorded = build.manifest.installed
    found = installed(build.prefix)
    for name in beside:
        path = build.prefix / name
        if path.exists():
            found["files"] -= 1
            found["bytes"] -= path.stat().st_size
    for what, count in (("files", recorded.files), ("bytes", recorded.bytes)):
        if found[what] < count:
            return f"it has {found[what]} of {count} {what}"
    return ""


def _needed(build: Build) -> tuple[str, ...]:
    if "stages" not in build.manifest.recipe:
        return ()  # An install tree that was made elsewhere: what it has is not that of the recipe.
    module = RECIPES[build.version.engine]
    programs = build.manifest.slim_programs
    try:
        if programs and module.slim_recipe is not None:
            return module.slim_recipe(build.release, _any_library, programs).installs
        return module.recipe(build.release, _any_library).installs
    except TidemarkError:
        return ()  # Compiled by a program that knew this release.


def _any_library(name: str) -> bool:
    del name
    return True
