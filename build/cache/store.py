"""The cache of finished builds: folders that are published by one rename and never change afterwards."""

import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from build import environment, host
from build.engines import git_ref
from build.errors import TidemarkError
from build.files import flush_file_system, json_value, make_folder
from build.finished_build import Build
from build.home import Home
from build.installs import INSTALL
from build.request import RECIPES
from build.sources.git import is_commit_name
from build.version import KEY, RELEASE, Engine, Version, parse_version

if TYPE_CHECKING:
    from build.manifest import Manifest

MANIFEST = "build.json"
IMPORTED = "imported.json"
"""The file beside the manifest of an imported build, which records the archive and the time of the import."""

_SHORT_KEY = 12
RECENT_COMPILES = 8
"""The compiles whose mean is what the next one is expected to take."""


class StoreError(TidemarkError):
    """A build in the cache is damaged, or a build cannot be added to the cache."""


def folder_name(engine: str, release: str, key: str) -> str:
    """Return the name of a build's folder, such as `postgres-18.6-0123456789ab`.

    Raises StoreError if engine, release or key (64 hex digits) is malformed.
    """
    if engine not in set(Engine) or not RELEASE.fullmatch(release) or not KEY.fullmatch(key):
        raise StoreError(f"'{engine}', '{release}', '{key}' are not engine, release and key of a build")
    return f"{engine}-{release}-{key[:_SHORT_KEY]}"


def find(home: Home, key: str, version: Version | None = None) -> Build | None:
    """Return the build with this key, or None; its `version` is the given one, else that of the manifest.

    A build that has lost files is none; `damaged` says which it is. Raises StoreError for a build that
    everybody may change.
    """
    build = _of_key(home, key)
    if build is None or loss_of(build):
        return None
    _require_not_open_to_all(build)
    return replace(build, version=version) if version else build


def damaged(home: Home, key: str) -> str:
    """Return what the build with this key has lost, in words; an empty text without such a build or loss."""
    build = _of_key(home, key)
    return loss_of(build) if build is not None else ""


def _of_key(home: Home, key: str) -> Build | None:
    for name in folder_names(home):
        if name.endswith(f"-{key[:_SHORT_KEY]}"):
            build = read_folder(home.builds / name)
            if build is not None and build.key == key:
                return build
    return None


def loss_of(build: Build) -> str:
    """Return what a build has lost, in words; an empty text if it has all that was installed.

    A build whose manifest has no count, which older programs wrote, is checked for the files without which
    its recipe does not count as installed.
    """
    missing = [name for name in _needed(build) if not os.path.lexists(build.prefix / name)]
    if missing:
        return f"{missing[0]} is missing"
    recorded = build.manifest.installed
    found = installed_files(build.prefix)
    for name in (MANIFEST, IMPORTED):  # written after the count
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


def all_builds(home: Home) -> list[Build]:
    """Return every finished build, ordered by engine, release and time of compiling."""
    builds = [build for name in folder_names(home) if (build := read_folder(home.builds / name)) is not None]
    return sorted(builds, key=lambda build: (build.version.engine, build.numbers, _built_at(build)))


def imported(
    home: Home,
    version: Version,
    source_digest: str | None,
    patches: list[str],
    choices: Mapping[str, Any],
) -> Build | None:
    """Return the newest imported build of this version, or None; compiler and recipe do not matter.

    Only the `choices` of a variant do, as BuildChoices.to_json gives them.

    If `source_digest` is None, because no source is known, a release is matched by its number and a commit by
    its name, and a branch matches nothing. An install tree is always matched by its number. `patches` are hex
    SHA-256, in order. Raises StoreError for a build that everybody may change.
    """
    for build in reversed(all_builds(home)):
        if (
            build.is_slim
            or not (build.prefix / IMPORTED).exists()
            or build.version.engine is not version.engine
        ):
            continue
        same_patches = [patch.sha256 for patch in build.manifest.patches] == patches
        same_choices = build.manifest.choices == choices
        if same_patches and same_choices and _same_source(build, version, source_digest):
            _require_not_open_to_all(build)
            return replace(build, version=version)
    return None


def imported_from(build: Build) -> str:
    """Return the hex SHA-256 of the archive of which a build was imported; empty for others."""
    try:
        return str(json_value((build.prefix / IMPORTED).read_bytes())["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def namesakes(home: Home, build: Build) -> list[Build]:
    """Return the other whole builds of the release and source version of an imported `build`, newest first.

    They are patched and chosen alike, so that a person who names the release may mean any of them.
    """
    if not (build.prefix / IMPORTED).exists():
        return []
    own = build.manifest
    return [
        other
        for other in reversed(all_builds(home))
        if other.version.engine is build.version.engine
        and other.manifest.version == own.version
        and (other.manifest.patches, other.manifest.choices) == (own.patches, own.choices)
        and other.key != build.key
        and not other.is_slim
    ]


def _same_source(build: Build, version: Version, digest: str | None) -> bool:
    about = build.manifest.source
    if about.kind == INSTALL:
        return build.version == version  # whoever has imported it says so
    if digest is not None:
        return about.digest == digest
    if version.is_release:
        return build.version == version
    ref = git_ref(version)
    return is_commit_name(ref) and about.commit.startswith(ref)


def require_clean(build: Build) -> None:
    """Raise StoreError if a build was changed after it was published.

    A build was changed if a program is missing, or if a file is newer than the manifest, which is written
    last. Files of an imported build are as old as the import, so that only missing programs are detected.
    """
    programs = build.manifest.slim_programs or RECIPES[build.version.engine].PROGRAMS
    missing = [name for name in programs if not build.program(name).exists()]
    change = f"bin/{missing[0]} is missing" if missing else ""
    if not change and not (build.prefix / IMPORTED).exists():
        written = (build.prefix / MANIFEST).stat().st_mtime_ns
        newer = (path for path in build.prefix.rglob("*") if path.lstat().st_mtime_ns > written)
        changed = next((path for path in newer if not path.is_dir()), None)
        change = f"{changed.relative_to(build.prefix)} is newer than the manifest" if changed else ""
    if change:
        raise StoreError(
            f"the build of {build.version} in the cache was modified: {change}",
            where=str(build.prefix),
            hint=f"remove the folder {build.prefix}; the version is compiled again when it is next needed",
        )


def _require_not_open_to_all(build: Build) -> None:
    for path in (build.prefix, *build.prefix.rglob("*")):
        mode = path.lstat().st_mode
        if mode & stat.S_IWOTH and not stat.S_ISLNK(mode):
            raise StoreError(
                f"the build of {build.version} in the cache is not used: everybody may write to {path}",
                where=str(build.prefix),
                hint=f"rm -r {shlex.quote(str(build.prefix))}, then compile or import the version again",
            )


def staging(home: Home, key: str) -> Path:
    """Return the folder in which a build is assembled, beside finished builds so that it can be renamed."""
    return make_folder(home.builds) / f".{key[:_SHORT_KEY]}.partial"


def publish(tree: Path, home: Home, extra: Mapping[str, Any] | None = None) -> Build:
    """Publish a tree with its manifest by one rename; `extra` is the content of the file `IMPORTED`, if any.

    The caller holds the lock of the key. A damaged build with that key is replaced. Raises StoreError if the
    tree has no manifest.
    """
    tree.chmod(0o755)
    if extra is not None:
        (tree / IMPORTED).write_text(json.dumps(extra, indent=2) + "\n")
    staged = read_folder(tree)
    if staged is None:
        raise StoreError("the tree has no manifest", where=str(tree / MANIFEST))
    target = home.builds / folder_name(staged.version.engine, staged.release, staged.key)
    remains = read_folder(target)
    if target.exists() and (remains is None or loss_of(remains)):
        shutil.rmtree(target)  # The remainder of a build that was being deleted, or one that lost files.
    # A compile may install what everybody may write to, and folders without a member have the umask's rights.
    subprocess.run(["chmod", "-R", "go-w", "--", tree], env=environment.compiling(), check=True)
    flush_file_system(tree)
    os.rename(tree, target)  # noqa: PTH104 # named as the system call: a single atomic rename
    return replace(staged, prefix=target)


def write_manifest(tree: Path, manifest: "Manifest") -> None:
    """Write `build.json` into a tree that has not been published yet."""
    path = tree / MANIFEST
    path.write_text(json.dumps(manifest.to_json(), indent=2, sort_keys=True) + "\n")
    path.chmod(0o644)


def lock_path(home: Home, key: str) -> Path:
    """Return the path of the lock that is held while a build is compiled or imported."""
    return home.builds / ".locks" / key[:_SHORT_KEY]


def expected_commands(home: Home, engine: Engine, major: int, *, slim: bool = False) -> int | None:
    """Return the compiler runs of the last build of the same major version and kind; None without one."""
    counts = [
        count
        for build in all_builds(home)
        if build.version.engine is engine and build.major == major and build.is_slim == slim
        if (count := build.manifest.compile_commands)
    ]
    return counts[-1] if counts else None


def compile_seconds(
    home: Home, engine: Engine, *, slim: bool, patched: bool = False, extension: str = ""
) -> float | None:
    """Return the mean seconds of the last compiles of an engine, slim ones or others alone if there are any.

    They are those on an idle machine, as far as builds record how many processes wanted a core.

    One alone may have found nearly all of its objects in ccache, or none. A `patched` version finds what the
    same version without the patch left there: only compiles of patched ones say how long it takes, and they
    say nothing of others. With `extension` they are compiles of that extension alone.

    None where nothing is recorded, as of imported builds.
    """
    took = [
        (build.is_slim == slim, _built_at(build), seconds.total / _slowed(build))
        for build in all_builds(home)
        if build.version.engine is engine and _extends(build, extension)
        if bool(build.manifest.patches) == patched
        if (seconds := build.manifest.seconds) is not None
    ]
    recent = sorted(took, reverse=True)[:RECENT_COMPILES]
    same = [seconds for is_same, _, seconds in recent if is_same == recent[0][0]]
    return fmean(same) if same else None


def _slowed(build: Build) -> float:
    others, jobs = build.manifest.runnable, build.manifest.jobs
    return 1.0 if others is None or jobs <= 0 else host.slowdown(others, jobs, jobs)


def _extends(build: Build, extension: str) -> bool:
    """Return whether a build is one with this extension alone; of an empty name, one without extensions."""
    return [made.name for made in build.manifest.extensions] == ([extension] if extension else [])


def folder_names(home: Home) -> list[str]:
    """Return the names of the folders of builds, readable or not, in order."""
    try:
        names = os.listdir(home.builds)  # noqa: PTH208 # only names are needed
    except FileNotFoundError:
        return []
    return sorted(name for name in names if not name.startswith("."))


def _built_at(build: Build) -> str:
    return build.manifest.built_at


def read_folder(prefix: Path) -> Build | None:
    """Return the build in a folder; None if the folder has no manifest and is therefore not a build.

    Raises StoreError for a manifest that is none.
    """
    from build.manifest import manifest_of  # slow to load, and a mistake is told before

    path = prefix / MANIFEST
    try:
        manifest = manifest_of(json_value(path.read_text(encoding="utf-8")))
        version = parse_version(manifest.version)
        return Build(version, manifest.release, manifest.key, prefix, manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TidemarkError) as error:
        raise StoreError(
            "the manifest of a build cannot be read",
            where=f"{path}: {error}",
            hint=f"remove the folder {prefix}; the version is compiled again when it is next needed",
        ) from error


def installed_files(tree: Path) -> dict[str, int]:
    """Count the regular files and links below an install tree, and the bytes of the regular ones."""
    entries = [entry.lstat() for entry in tree.rglob("*")]
    kept = [entry for entry in entries if not stat.S_ISDIR(entry.st_mode)]
    return {"files": len(kept), "bytes": sum(file.st_size for file in kept if stat.S_ISREG(file.st_mode))}
