"""The cache of finished builds: folders that appear whole, in one rename, and never change afterwards."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from build.build import Build
from build.engines import git_ref
from build.errors import TidemarkError
from build.files import flush_file_system, json_value, make_folder
from build.home import Home
from build.recipes.engines import RECIPES
from build.sources.git import is_commit_name
from build.version import Engine, Version, parse_version

MANIFEST = "build.json"
IMPORTED = "imported.json"
"""Beside the manifest when the build was compiled elsewhere: which archive it came from, and when."""

_SHORT_KEY = 12
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.]*")


class StoreError(TidemarkError):
    """A build in the cache is damaged, or cannot be put there."""


def folder_name(engine: str, release: str, key: str) -> str:
    """`postgres-18.6-0123456789ab`. Raises StoreError for what is not a plain engine, release and key."""
    if engine not in set(Engine) or not _RELEASE.fullmatch(release) or not re.fullmatch(r"[0-9a-f]{64}", key):
        raise StoreError(f"'{engine}', '{release}', '{key}' do not name a build")
    return f"{engine}-{release}-{key[:_SHORT_KEY]}"


def find(home: Home, key: str, version: Version | None = None) -> Build | None:
    """The build with this key, or None; its `version` is the given one, else that of the manifest."""
    for name in _names(home):
        if name.endswith(f"-{key[:_SHORT_KEY]}"):
            found = _read(home.builds / name)
            if found is not None and found.key == key:
                return replace(found, version=version) if version else found
    return None


def all_builds(home: Home) -> list[Build]:
    """Every finished build, ordered by engine, release and time of compiling."""
    builds = [found for name in _names(home) if (found := _read(home.builds / name)) is not None]
    return sorted(builds, key=lambda build: (build.version.engine, build.numbers, _built_at(build)))


def imported(home: Home, version: Version, source_digest: str | None, patches: list[str]) -> Build | None:
    """The newest build imported for this version, whatever compiler and recipe it was made with.

    Without `source_digest` (no source at hand) a release is known by its number and a commit by its name; a
    branch then matches nothing. `patches` are hex SHA-256, in order.
    """
    for build in reversed(all_builds(home)):
        if not (build.prefix / IMPORTED).exists() or build.version.engine is not version.engine:
            continue
        same_patches = [patch["sha256"] for patch in build.manifest["patches"]] == patches
        if same_patches and _same_source(build, version, source_digest):
            return replace(build, version=version)
    return None


def _same_source(build: Build, version: Version, digest: str | None) -> bool:
    about = build.manifest["source"]
    if digest is not None:
        return bool(about["digest"] == digest)
    if version.is_release:
        return build.version == version
    ref = git_ref(version)
    return is_commit_name(ref) and str(about.get("commit", "")).startswith(ref)


def require_clean(build: Build) -> None:
    """Raise StoreError when a build was changed after it was published: it is no longer what it says.

    Programs that are gone count, and files that were written after its manifest, which is the last
    one that is written. Of an imported build, whose files are as old as their unpacking, only the former.
    """
    programs = RECIPES[build.version.engine].PROGRAMS
    gone = [name for name in programs if not build.program(name).exists()]
    found = f"bin/{gone[0]} is gone" if gone else ""
    if not found and not (build.prefix / IMPORTED).exists():
        written = (build.prefix / MANIFEST).stat().st_mtime_ns
        newer = (path for path in build.prefix.rglob("*") if path.lstat().st_mtime_ns > written)
        changed = next((path for path in newer if not path.is_dir()), None)
        found = f"{changed.relative_to(build.prefix)} was written later" if changed else ""
    if found:
        raise StoreError(
            f"the build of {build.version} in the cache is dirty: {found}",
            where=str(build.prefix),
            hint=f"remove the folder {build.prefix}; the version is compiled again when it is next wanted",
        )


def staging(home: Home, key: str) -> Path:
    """Where a build is put together: beside the finished ones, so that publishing is one rename."""
    return make_folder(home.builds) / f".{key[:_SHORT_KEY]}.partial"


def publish(tree: Path, home: Home, extra: Mapping[str, Any] | None = None) -> Build:
    """Move a tree with its manifest into place, in one rename; `extra` is what `IMPORTED` is to say.

    The caller holds the lock of the key. Raises StoreError when the tree has no manifest.
    """
    tree.chmod(0o755)
    if extra is not None:
        (tree / IMPORTED).write_text(json.dumps(extra, indent=2) + "\n")
    staged = _read(tree)
    if staged is None:
        raise StoreError("the tree has no manifest", where=str(tree / MANIFEST))
    target = home.builds / folder_name(staged.version.engine, staged.release, staged.key)
    if target.exists() and not (target / MANIFEST).exists():
        shutil.rmtree(target)  # What is left of a build that somebody began to delete.
    flush_file_system(tree)
    os.rename(tree, target)  # noqa: PTH104 # the system call's own name: one rename
    return replace(staged, prefix=target)


def write_manifest(tree: Path, manifest: Mapping[str, Any]) -> None:
    """Write `build.json` into a tree that is not yet published."""
    path = tree / MANIFEST
    path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    path.chmod(0o644)


def lock_path(home: Home, key: str) -> Path:
    """The lock under which a build is made or imported."""
    return home.builds / ".locks" / key[:_SHORT_KEY]


def expected_commands(home: Home, engine: Engine, major: int) -> int | None:
    """Compiler runs of the newest compile of the same major version; None when there was none."""
    counts = [
        count
        for build in all_builds(home)
        if build.version.engine is engine and build.major == major
        if (count := build.manifest.get("compile_commands"))
    ]
    return counts[-1] if counts else None


def _names(home: Home) -> list[str]:
    try:
        names = os.listdir(home.builds)  # noqa: PTH208 # names are all that is wanted
    except FileNotFoundError:
        return []
    return sorted(name for name in names if not name.startswith("."))


def require_record(manifest: Mapping[str, Any]) -> None:
    """Check what the program itself uses of a build's manifest. Raises KeyError, TypeError or ValueError."""
    for name in ("version", "release", "key"):
        if not isinstance(manifest[name], str):
            raise TypeError(f"{name} is not a text")
    if not (_RELEASE.fullmatch(manifest["release"]) and re.fullmatch("[0-9a-f]{64}", manifest["key"])):
        raise ValueError("release and key do not name a build")
    source, patches = manifest["source"], manifest["patches"]
    if not isinstance(source, dict) or not isinstance(source["digest"], str):
        raise TypeError("source has no digest")
    if not isinstance(manifest.get("built_at", ""), str):
        raise TypeError("built_at is not a text")
    if not isinstance(patches, list) or not all(isinstance(patch["sha256"], str) for patch in patches):
        raise TypeError("patches is not a list of patches")
    commands = manifest.get("compile_commands") or 0
    if type(commands) is not int or not 0 <= commands <= MOST_COMMANDS:
        raise ValueError("compile_commands is not a number of compiler runs")


MOST_COMMANDS = 10**6
"""The most compiler runs of a build: MySQL takes some thousands."""


def _built_at(build: Build) -> str:
    return str(build.manifest.get("built_at", ""))


def _read(prefix: Path) -> Build | None:
    """The build in a folder; None when it has no manifest, and so is none."""
    path = prefix / MANIFEST
    try:
        manifest = json_value(path.read_text(encoding="utf-8"))
        require_record(manifest)
        return Build(
            parse_version(manifest["version"]), manifest["release"], manifest["key"], prefix, manifest
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, TidemarkError) as error:
        raise StoreError(
            "the manifest of a build cannot be read",
            where=f"{path}: {error}",
            hint=f"remove the folder {prefix}; the version is compiled again when it is next wanted",
        ) from error
