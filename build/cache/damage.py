"""What a build in the cache has lost since it was published: files that are gone or cut short."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from build.build import Build
from build.errors import TidemarkError
from build.recipes.engines import RECIPES

INSTALLED = "installed"
"""The key of a manifest under which the number of installed files and their bytes are kept."""


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
    recorded = build.manifest.get(INSTALLED)
    if recorded is None:
        return ""
    found = installed(build.prefix)
    for name in beside:
        path = build.prefix / name
        if path.exists():
            found["files"] -= 1
            found["bytes"] -= path.stat().st_size
    for what in ("files", "bytes"):
        if found[what] < recorded[what]:
            return f"it has {found[what]} of {recorded[what]} {what}"
    return ""


def require_count(manifest: Mapping[str, Any]) -> None:
    """Check the count of a manifest, which may have none. Raises KeyError, TypeError or ValueError."""
    recorded = manifest.get(INSTALLED, {"files": 0, "bytes": 0})
    for what in ("files", "bytes"):
        if type(recorded[what]) is not int or recorded[what] < 0:
            raise ValueError(f"{INSTALLED} has no number of {what}")


def _needed(build: Build) -> tuple[str, ...]:
    about = build.manifest.get("recipe", {})
    if "stages" not in about:
        return ()  # An install tree that was described by hand: what it has is not that of the recipe.
    module = RECIPES[build.version.engine]
    programs = build.manifest.get("slim_programs")
    try:
        if programs and module.slim_recipe is not None:
            return module.slim_recipe(build.release, _any_library, programs).installs
        return module.recipe(build.release, _any_library).installs
    except TidemarkError:
        return ()  # Compiled by a program that knew this release.


def _any_library(name: str) -> bool:
    del name
    return True
