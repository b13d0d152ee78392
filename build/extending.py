"""Builds with extensions: a copy of a build's install tree, into which PGXS installs what it compiled.

The copy consists of hard links, so that it takes no space; what an extension installs replaces links and
never writes through them. It is a build of the cache like any other, with a key of its own.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build import environment, host
from build.accounts import compiling, make_workplace
from build.cache import store
from build.cache.earlier_compiles import compiler_errors
from build.cache.takeover import taken_over
from build.compile import EXTRACT, WITHOUT_CCACHE, own_variables, run_stages, scratch_folders, waiting
from build.compile_commands import CompileCommands, CompileError
from build.extension import (
    EXTENSION_DIGITS,
    Extension,
    ExtensionError,
    commit_of,
    pinned,
    require_extensible,
)
from build.files import make_folder
from build.finished_build import Build
from build.home import Home
from build.lock import held
from build.progress import Progress
from build.recipes.recipe import JOBS, Stage
from build.sources import git

if TYPE_CHECKING:
    from build.manifest import Manifest

EXTENSION_FORMAT = 1
"""Incremented if builds with extensions change in a way that server and commits do not show."""

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""The files that make reads, in its order."""

BASELINES = {"x86_64": "-march=x86-64", "aarch64": "-march=armv8-a"}
"""The processors for which compilers compile by default. What is compiled for this machine's own cannot be
counted, since valgrind knows no AVX-512, and is not what packages have."""

NATIVE = "-march=native"
"""What many Makefiles say in place of a baseline."""

_MAKE = ("make", "PG_CONFIG={pg_config}")
# Uses PGXS where a Makefile leaves a choice, writes no bitcode, since a server compiles none of it, and says
# where modules find libraries of the server.
_WORDS = ("USE_PGXS=1", "with_llvm=no", r"rpathdir=$$ORIGIN/../lib")

STAGES = (
    Stage("prepare", ("sed", "--in-place", rf"s/{NATIVE}\b/{{baseline}}/g", "{makefile}")),
    Stage("compile", (*_MAKE, *_WORDS, "-j{jobs}")),
    Stage("install", (*_MAKE, *_WORDS, "install", "DESTDIR={staging}")),
)
"""How every extension is compiled."""

_USES_PGXS = re.compile(r"\bPGXS\b|pg_config", re.IGNORECASE)

_PGXS = "lib/**/pgxs/src/makefiles/pgxs.mk"
"""Where an installed server has it."""

_NOT_COPIED = (store.MANIFEST, store.IMPORTED)


class ExtensionCompileError(CompileError):
    """An extension does not compile with a version of the server."""


def extended(server: Build, extensions: Sequence[Extension], home: Home, progress: Progress) -> Build:
    """Return the build of a server with `extensions`, from the cache or compiled into it.

    Its manifest has an entry `extensions` with what `Extension.to_json` records of each, and as `creates` the
    name that CREATE EXTENSION takes.

    Raises ExtensionError for another engine, a build without PGXS, and a repository that has no Makefile or
    control file; ExtensionCompileError with the first error of the compiler; GitError without the commit.
    """
    require_extensible(server.version, extensions)
    extensions = tuple(pinned(extension, home, progress) for extension in extensions)
    key = _key(server, extensions)
    names = ", ".join(f"{extension.name} {extension.commit[:EXTENSION_DIGITS]}" for extension in extensions)
    with held(
        store.lock_path(home, key), lambda: progress.note(f"{names}: another process compiles it")
    ) as lock:
        found = store.find(home, key, server.version)
        if found is None:
            found = _compiled(server, extensions, key, home, progress, lock)
        else:
            progress.note(f"{server.version} with {names}: from the build cache: {found.prefix.name}")
    return found


def find_extended(server: Build, extensions: Sequence[Extension], home: Home) -> Build | None:
    """Return the build of a server with `extensions` if it needs neither network nor compiling, else None."""
    require_extensible(server.version, extensions)
    known = [extension.mirror(home).find(extension.commit or extension.ref) for extension in extensions]
    commits = [commit.commit for commit in known if commit is not None]
    if len(commits) < len(extensions):
        return None
    at = [replace(extension, commit=commit) for extension, commit in zip(extensions, commits, strict=True)]
    return store.find(home, _key(server, at), server.version)


def _key(server: Build, extensions: Sequence[Extension]) -> str:
    content = {
        "format": EXTENSION_FORMAT,
        "server": server.key,
        "extensions": [[extension.name, extension.commit] for extension in extensions],
        "stages": [[asdict(stage) for stage in STAGES], BASELINES],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _compiled(
    server: Build, extensions: Sequence[Extension], key: str, home: Home, progress: Progress, lock: int
) -> Build:
    started = time.monotonic()
    with scratch_folders(f"extension-{key[:12]}", key, home) as (scratch, tree):
        _copy(server, tree)
        made: list[dict[str, Any]] = []
        for extension in extensions:
            folder = scratch / extension.name
            with (
                progress.task(f"compile {extension} for {server.version}"),
                compiling(home.path, waiting(server.version, progress)) as account,
            ):
                make_workplace(folder, account, "source", "root", "tmp")
                work = CompileCommands(
                    label=f"{extension} for {server.version}",
                    log=_log(home, extension, server, key),
                    environment=environment.compiling(own_variables(folder) | WITHOUT_CCACHE),
                    counted=re.compile(rb"\s-c -o\s"),
                    inherit=(lock,),
                    account=account,
                )
                creates = _install(extension, server, folder, tree, work, home)
            made.append({**extension.to_json(), "creates": creates})
        seconds = time.monotonic() - started
        store.write_manifest(tree, _manifest(server, key, made, seconds, tree))
        result = store.publish(tree, home)
    named = ", ".join(map(str, extensions))
    progress.note(f"{server.version}: compiled {named} in {seconds:.0f} s: {result.prefix.name}")
    return replace(result, version=server.version)


def _manifest(
    server: Build, key: str, made: Sequence[dict[str, Any]], seconds: float, tree: Path
) -> "Manifest":
    from build.manifest import manifest_of  # slow to load, and a mistake is told before

    return manifest_of(
        {
            **server.manifest.to_json(),
            "version": str(server.version.plain),
            "key": key,
            "server": server.key,
            "extensions": list(made),
            # Not a count of the server's files, from which the length of a later compile is told.
            "compile_commands": 0,
            "seconds": {"total": round(seconds, 3)},
            "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "installed": store.installed_files(tree),
        }
    )


def _install(
    extension: Extension, server: Build, folder: Path, tree: Path, work: CompileCommands, home: Home
) -> str:
    """Compile an extension and install it into `tree`; return the name that CREATE EXTENSION takes."""
    source, root, prefix = folder / "source", folder / "root", server.prefix.resolve()
    if not any(prefix.glob(_PGXS)):
        raise ExtensionError(
            f"the build of {server.version} has no PGXS, which compiles extensions", where=str(prefix)
        )
    with git.archive(commit_of(extension, home)) as stream:
        work.run("unpack", EXTRACT, source, stream.stdout)
    makefile = _makefile(extension, source, work)
    baseline = BASELINES.get(host.architecture())
    chosen = "-march=" in server.manifest.choices.get("CFLAGS", "")  # by build.CFLAGS, for the server
    if not baseline or chosen:
        baseline = NATIVE
    values = {
        # It prints paths below the folder where it really lies.
        "{pg_config}": str(prefix / "bin/pg_config"),
        "{makefile}": makefile,
        "{baseline}": baseline,
        "{staging}": str(root),
        JOBS: str(host.cores()),
    }
    try:
        run_stages(STAGES, values, source, work)
    except CompileError as error:
        complaints = compiler_errors(error)
        raise ExtensionCompileError(
            f"{work.label} does not compile: {complaints[0]}" if complaints else error.what,
            where=error.where,
            hint=f"name a ref of {extension.name} that supports {server.version.plain}",
        ) from error
    installed = root / str(prefix).lstrip("/")
    if not installed.is_dir():
        raise _no_control(extension, work.label, [])
    installed = taken_over(installed, folder, folder / "taken over", work)
    creates = _control(extension, installed, work.label)
    _merge(installed, tree)
    return creates


def _makefile(extension: Extension, source: Path, work: CompileCommands) -> str:
    """Return the name of the Makefile of an unpacked source. Raises ExtensionError without one of PGXS."""
    makefile = next((source / name for name in MAKEFILES if (source / name).is_file()), None)
    if makefile is None:
        raise ExtensionError(
            f"{extension} has no Makefile in its top folder",
            where=extension.to_json()["repository"],
            hint="only extensions that PGXS compiles are supported, with: make PG_CONFIG=...",
        )
    if not _USES_PGXS.search(work.read(makefile).decode(errors="replace")):
        raise ExtensionError(
            f"the Makefile of {extension} does not use PGXS",
            where=extension.to_json()["repository"],
            hint="it has to include what `pg_config --pgxs` prints",
        )
    return makefile.name


def _control(extension: Extension, installed: Path, label: str) -> str:
    """Return the extension that is to be created, by the control files that were installed."""
    names = sorted(path.stem for path in installed.rglob("extension/*.control"))
    if extension.name in names:
        return extension.name
    if len(names) == 1:
        return names[0]
    raise _no_control(extension, label, names)


def _no_control(extension: Extension, label: str, names: Sequence[str]) -> ExtensionError:
    what = (
        f"installs {len(names)} extensions, none of which is called so"
        if names
        else "installs no control file"
    )
    hint = (
        f"name one of: {', '.join(names)}" if names else "only what CREATE EXTENSION can create is supported"
    )
    return ExtensionError(f"{label}: it {what}", where=f"extension {extension.name}", hint=hint)


def _copy(build: Build, tree: Path) -> None:
    """Make `tree` a copy of an install tree, of hard links where the file system has them."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            shutil.copy2(source, target, follow_symlinks=False)

    prefix = build.prefix

    def left_out(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if folder == str(prefix) and name in _NOT_COPIED]

    shutil.copytree(prefix, tree, symlinks=True, copy_function=link, ignore=left_out, dirs_exist_ok=True)


def _merge(installed: Path, tree: Path) -> None:
    """Move what was installed into a tree, in place of files of the same names."""
    for path in sorted(installed.rglob("*")):
        target = tree / path.relative_to(installed)
        if path.is_dir() and not path.is_symlink():
            make_folder(target)
            continue
        with suppress(FileNotFoundError):
            target.unlink()  # a hard link: its file is the server's own
        shutil.move(path, target)


def _log(home: Home, extension: Extension, server: Build, key: str) -> Path:
    name = f"{extension.name}-{extension.commit[:EXTENSION_DIGITS]}-{server.release}-{key[:12]}"
    path = make_folder(home.logs) / f"build-extension-{name}.log"
    path.write_text(f"{extension}, commit {extension.commit}, for {server.version}, key {server.key}\n")
    path.chmod(0o644)
    return path
