"""From a version to a build: found in the cache, or compiled once and kept."""

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build import host, order
from build.build import Build
from build.cache import store
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.order import FORMAT, Order, Patch
from build.progress import Progress
from build.sources import source
from build.unpack import apply_patches, masquerade, unpack
from build.version import Version, release_numbers
from build.work import CompileCommands


@dataclass(frozen=True)
class Means:
    """How to compile; none of it changes the result."""

    jobs: int
    """Processes at once."""

    ccache: str | None
    """The path of ccache; None to do without."""


def provide(
    version: Version,
    home: Home,
    progress: Progress,
    *,
    patches: Sequence[Path] = (),
    git_source: str | None = None,
    use_ccache: bool = True,
    jobs: int | None = None,
) -> Build:
    """The build of a version: the one in the cache, else compiled now.

    `patches` are applied in order; `git_source` is a URL or path asked before upstream (default:
    the engine's variable, such as `$TIDEMARK_GIT_POSTGRES`); `jobs` is how many processes compile at once
    (default: one a core).
    Raises SourceError, RecipeError, HostError, PatchError or CompileError, TidemarkErrors all.
    """
    changes = order.read_patches(patches)
    found = _find(version, home, changes, git_source)
    if found is None:
        obtained = source.obtain(version, home, progress, git_source)
        means = Means(jobs or host.cores(), host.ccache_program() if use_ccache else None)
        found = _imported(version, obtained, home, changes)
        found = found or _made_once(order.order(obtained, changes), home, progress, means)
    else:
        progress.note(f"{version}: from the build cache: {found.prefix.name}")
    return found


def lookup(
    version: Version, home: Home, *, patches: Sequence[Path] = (), git_source: str | None = None
) -> Build | None:
    """The build of a version if `provide` would neither fetch nor compile anything; None otherwise.

    A branch is always None: only its source knows which commit it means today.
    """
    return _find(version, home, order.read_patches(patches), git_source)


def _find(version: Version, home: Home, patches: tuple[Patch, ...], git_source: str | None) -> Build | None:
    known: list[source.Source | None] = [*source.at_hand(version, home, git_source)]
    for candidate in known or [None]:
        found = _imported(version, candidate, home, patches)
        if found is None and candidate is not None:
            found = store.find(home, order.order(candidate, patches).key, version)
        if found is not None:
            return found
    return None


def _imported(
    version: Version, known: source.Source | None, home: Home, patches: tuple[Patch, ...]
) -> Build | None:
    # Whoever imported a build means it to be measured, even where the compiler here would make another.
    digest = known.digest if known else None
    return store.imported(home, version, digest, [patch.sha256 for patch in patches])


def _made_once(wanted: Order, home: Home, progress: Progress, means: Means) -> Build:
    def waits() -> None:
        progress.note(f"{wanted.version}: another process compiles the same build; waiting for it")

    with held(store.lock_path(home, wanted.key), waits) as lock:
        found = store.find(home, wanted.key, wanted.version)
        if found is not None:
            progress.note(f"{wanted.version}: from the build cache: {found.prefix.name}")
            return found
        return _compiled(wanted, home, progress, means, lock)


def _compiled(wanted: Order, home: Home, progress: Progress, means: Means, lock: int) -> Build:
    recipe, started = wanted.recipe, time.monotonic()
    expected = (
        store.expected_commands(home, recipe.engine, release_numbers(recipe.release)[0]) or recipe.commands
    )
    with (
        _scratch(wanted, home) as (scratch, staging),
        progress.task(f"compile {wanted.version}", expected) as task,
    ):
        work = CompileCommands(
            label=str(wanted.version),
            log=_log(wanted, home),
            environment=_environment(wanted, home, means, scratch),
            counted=re.compile(recipe.counted.encode()),
            on_count=lambda count: task.update(count, max(count, expected)),
            on_stage=lambda stage: task.rename(f"{wanted.version}: {stage}"),
            inherit=(lock,),
        )
        tree = _run_stages(wanted, means, scratch / "source", staging, work)
        store.write_manifest(tree, _manifest(wanted, means, work, time.monotonic() - started))
        shutil.rmtree(scratch)  # Before publishing, which flushes what was written: this need not be.
        build = store.publish(tree, home)
    progress.note(f"{wanted.version}: compiled in {time.monotonic() - started:.0f} s: {build.prefix.name}")
    return build


def _run_stages(wanted: Order, means: Means, folder: Path, staging: Path, work: CompileCommands) -> Path:
    """Unpack, patch, compile and install; returns the install tree in the staging folder."""
    unpack(wanted.source, folder, work)
    apply_patches(wanted.patches, folder, work)
    filled = {
        "{jobs}": str(means.jobs),
        "{compiler}": wanted.compiler.command,
        "{source}": str(folder),
        "{staging}": str(staging),
    }
    for stage in wanted.recipe.stages:
        work.run(stage.name, [_fill(word, filled) for word in stage.command], folder)
    tree = staging / wanted.recipe.prefix.lstrip("/")
    missing = [name for name in wanted.recipe.installs if not (tree / name).exists()]
    if missing:
        raise work.failure("install", f"it left out {', '.join(missing)}")
    return tree


def _fill(word: str, values: dict[str, str]) -> str:
    # Not str.format(): a flag may hold braces of its own.
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word


def _environment(wanted: Order, home: Home, means: Means, scratch: Path) -> dict[str, str]:
    # Below a git checkout git would take the source for a part of it: `git apply` then silently does nothing,
    # and makefiles that ask git for a revision get a foreign one.
    alone = {"GIT_CEILING_DIRECTORIES": str(scratch)}
    base = {**host.compile_environment(), **alone, **wanted.recipe.environment}
    if not _uses_ccache(wanted, means) or means.ccache is None:
        return {
            **base,
            "CCACHE_DISABLE": "1",
        }  # The machine's PATH may hold ccache under the compiler's name.
    cache = os.environ.get("CCACHE_DIR") or str(make_folder(home.ccache))
    # Scratch folders differ between builds of one file: neither the folder nor paths below it may count.
    shared = {"CCACHE_DIR": cache, "CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
    return {**base, **shared, "PATH": masquerade(means.ccache, scratch / "ccache")}


def _uses_ccache(wanted: Order, means: Means) -> bool:
    # A compiler given by its path is not looked up on PATH, so that ccache cannot stand in for it.
    return means.ccache is not None and "/" not in wanted.compiler.command


@contextmanager
def _scratch(wanted: Order, home: Home) -> Iterator[tuple[Path, Path]]:
    """The folders of one compile, empty at the start and gone at the end; the caller holds the key's lock."""
    scratch, staging = home.scratch / f"build-{wanted.key[:12]}", store.staging(home, wanted.key)
    _check_space(home, wanted.recipe.scratch_bytes)
    for folder in (scratch, staging):
        shutil.rmtree(folder, ignore_errors=True)  # What a killed process left.
    make_folder(scratch / "source")
    make_folder(staging)
    try:
        yield scratch, staging
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(staging, ignore_errors=True)


def _check_space(home: Home, needed: int) -> None:
    free = shutil.disk_usage(make_folder(home.scratch)).free
    if free < needed:
        raise host.HostError(
            f"compiling needs about {needed / 1e9:.1f} GB of disk, {free / 1e9:.1f} GB are free",
            where=str(home.scratch),
            hint="make room, or let TIDEMARK_HOME name a folder on a larger disk",
        )


def _log(wanted: Order, home: Home) -> Path:
    path = (
        make_folder(home.logs) / f"build-{wanted.recipe.engine}-{wanted.recipe.release}-{wanted.key[:12]}.log"
    )
    path.write_text(f"{wanted.version}, key {wanted.key}, {wanted.compiler.version}\n")
    path.chmod(0o644)
    return path


def _manifest(wanted: Order, means: Means, work: CompileCommands, seconds: float) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "key": wanted.key,
        "engine": wanted.recipe.engine,
        "version": str(wanted.version),
        "release": wanted.recipe.release,
        "source": wanted.source.to_json(),
        "recipe": wanted.recipe.identity(),
        "patches": [{"name": patch.path.name, "sha256": patch.sha256} for patch in wanted.patches],
        "compiler": asdict(wanted.compiler),
        "ccache": _uses_ccache(wanted, means),
        "jobs": means.jobs,
        "seconds": {**work.seconds, "total": round(seconds, 3)},
        "compile_commands": work.count,
        "host": {"os": host.os_name(), "architecture": host.architecture(), "glibc": host.glibc_version()},
        "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
