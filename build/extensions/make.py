"""Builds with extensions: a copy of a build's install tree, into which PGXS installs what it compiled.

The copy consists of hard links, so that it takes no space; what an extension installs replaces links and
never writes through them. It is a build of the cache like any other, with a key of its own.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from pwd import struct_passwd
from typing import Any

from build import host, workplace
from build.build import Build
from build.cache import damage, store
from build.cache.failures import compiler_errors
from build.cache.takeover import taken_over
from build.extensions.extension import (
    EXTENSION_DIGITS,
    Extension,
    ExtensionError,
    commit_of,
    pinned,
    require_extensible,
)
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.manifest import Manifest, manifest_of
from build.programs import accounts, environment
from build.programs.work import CompileCommands, CompileError
from build.progress import Progress
from build.sources import git
from build.unpack import EXTRACT

EXTENSION_FORMAT = 1
"""Incremented if builds with extensions change in a way that server and commits do not show."""

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""The files that make reads, in its order."""

WORDS = ("USE_PGXS=1", "with_llvm=no", r"rpathdir=$$ORIGIN/../lib")
"""What make is told: to use PGXS where a Makefile leaves a choice, to write no bitcode, since a server
compiles none of it, and where modules find libraries of the server."""

BASELINES = {"x86_64": "-march=x86-64", "aarch64": "-march=armv8-a"}
"""The processors for which compilers compile by default. What is compiled for this machine's own cannot be
counted, since valgrind knows no AVX-512, and is not what packages have."""

_IS_NATIVE = r"-march=native\b"
"""An expression of Python and of sed."""

_USES_PGXS = re.compile(r"\bPGXS\b|pg_config", re.IGNORECASE)

_NOT_COPIED = (store.MANIFEST, store.IMPORTED)

_PG_CONFIG_SECONDS = 30.0


class ExtensionCompileError(CompileError):
    """An extension does not compile with a version of the server."""


@dataclass(frozen=True)
class _Installation:
    """Where one extension is compiled and installed."""

    server: Build
    scratch: Path
    """A folder for the source, and for the root of what is installed."""

    log: Path
    lock: int
    account: struct_passwd | None
    """The user who compiles; None for the current one."""


def with_extensions(build: Build, extensions: Sequence[Extension], home: Home, progress: Progress) -> Build:
    """Return the build of the same server with `extensions`, from the cache or compiled into it.

    Its manifest has an entry `extensions` with what `Extension.to_json` records of each, and as `creates` the
    name that CREATE EXTENSION takes. Without extensions the build itself is returned.

    Raises ExtensionError for another engine, a build without PGXS, and a repository that has no Makefile or
    control file; ExtensionCompileError with the first error of the compiler; GitError without the commit.
    """
    if not extensions:
        return build
    require_extensible(build.version, extensions)
    extensions = tuple(pinned(extension, home, progress) for extension in extensions)
    key = _key(build, extensions)
    names = ", ".join(f"{extension.name} {extension.commit[:EXTENSION_DIGITS]}" for extension in extensions)
    with held(
        store.lock_path(home, key), lambda: progress.note(f"{names}: another process compiles it")
    ) as lock:
        found = store.find(home, key, build.version)
        if found is None:
            found = _make(build, extensions, key, home, progress, lock)
        else:
            progress.note(f"{build.version} with {names}: from the build cache: {found.prefix.name}")
    return found


def _key(build: Build, extensions: Sequence[Extension]) -> str:
    content = {
        "format": EXTENSION_FORMAT,
        "server": build.key,
        "extensions": [[extension.name, extension.commit] for extension in extensions],
        "words": [WORDS, BASELINES],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _make(
    build: Build, extensions: Sequence[Extension], key: str, home: Home, progress: Progress, lock: int
) -> Build:
    def on_wait() -> None:
        progress.note(f"{build.version}: another compile of root's is going on; waiting for it")

    started = time.monotonic()
    scratch, tree = home.scratch / f"extension-{key[:12]}", store.staging(home, key)
    for folder in (scratch, tree):
        shutil.rmtree(folder, ignore_errors=True)  # A killed process may have left them.
    try:
        _copy(build, tree)
        made: list[dict[str, Any]] = []
        for extension in extensions:
            name = f"{extension.name}-{extension.commit[:EXTENSION_DIGITS]}-{build.release}-{key[:12]}"
            log, compiled = _log(home, name, extension, build), scratch / extension.name
            with (
                progress.task(f"compile {extension} for {build.version}"),
                workplace.compiling(home.path, on_wait) as account,
            ):
                workplace.make_workplace(compiled, account, "source", "root", "tmp")
                place = _Installation(build, compiled, log, lock, account)
                creates = _install(extension, place, tree, home)
            made.append({**extension.to_json(), "creates": creates})
        seconds = time.monotonic() - started
        store.write_manifest(tree, _manifest(build, key, made, seconds, tree))
        result = store.publish(tree, home)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(tree, ignore_errors=True)
    named = ", ".join(map(str, extensions))
    progress.note(f"{build.version}: compiled {named} in {seconds:.0f} s: {result.prefix.name}")
    return replace(result, version=build.version)


def _manifest(build: Build, key: str, made: Sequence[dict[str, Any]], seconds: float, tree: Path) -> Manifest:
    return manifest_of(
        {
            **build.manifest.to_json(),
            "version": str(build.version.plain),
            "key": key,
            "server": build.key,
            "extensions": list(made),
            # Not a count of the server's files, from which the length of a later compile is told.
            "compile_commands": 0,
            "seconds": {"total": round(seconds, 3)},
            "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "installed": damage.installed(tree),
        }
    )


def _install(extension: Extension, place: _Installation, tree: Path, home: Home) -> str:
    """Compile an extension and install it into `tree`; return the name that CREATE EXTENSION takes."""
    label = f"{extension} for {place.server.version}"
    work = CompileCommands(
        label=label,
        log=place.log,
        environment=environment.compiling(
            {
                "CCACHE_DISABLE": "1",
                "GIT_CEILING_DIRECTORIES": str(place.scratch),
                "TMPDIR": str(place.scratch / "tmp"),
            }
        ),
        counted=re.compile(rb"\s-c -o\s"),
        inherit=(place.lock,),
        account=place.account,
    )
    source, root = place.scratch / "source", place.scratch / "root"
    with git.archive(commit_of(extension, home)) as stream:
        work.run("unpack", EXTRACT, source, stream.stdout)
    _prepare(extension, source, place.server, work)
    make = ["make", f"PG_CONFIG={_pg_config(place.server)}", *WORDS]
    try:
        work.run("compile", [*make, f"-j{host.cores()}"], source)
        work.run("install", [*make, "install", f"DESTDIR={root}"], source)
    except CompileError as error:
        complaints = compiler_errors(error)
        raise ExtensionCompileError(
            f"{label} does not compile: {complaints[0]}" if complaints else error.what,
            where=error.where,
            hint=f"name a ref of {extension.name} that supports {place.server.version.plain}",
        ) from error
    prefix = _pg_config(place.server).parent.parent
    installed = root / str(prefix).lstrip("/")
    if not installed.is_dir():
        raise _no_control(extension, label, [])
    installed = taken_over(installed, place.scratch, place.scratch / "taken over", work)
    creates = _control(extension, installed, label)
    _merge(installed, tree)
    return creates


def _prepare(extension: Extension, source: Path, server: Build, work: CompileCommands) -> None:
    """Have the Makefile of an unpacked source compile for any processor in place of -march=native.

    Who chose a processor for the server by --build has what the Makefile says. Raises ExtensionError without
    a Makefile, or for one without PGXS.
    """
    makefile = next((source / name for name in MAKEFILES if (source / name).is_file()), None)
    if makefile is None:
        raise ExtensionError(
            f"{extension} has no Makefile in its top folder",
            where=extension.to_json()["repository"],
            hint="only extensions that PGXS compiles are supported, with: make PG_CONFIG=...",
        )
    text = work.read(makefile).decode(errors="replace")
    if not _USES_PGXS.search(text):
        raise ExtensionError(
            f"the Makefile of {extension} does not use PGXS",
            where=extension.to_json()["repository"],
            hint="it has to include what `pg_config --pgxs` prints",
        )
    chosen = "-march=" in server.manifest.choices.get("CFLAGS", "")
    baseline = BASELINES.get(host.architecture())
    if baseline and not chosen and re.search(_IS_NATIVE, text):
        work.run("prepare", ["sed", "--in-place", f"s/{_IS_NATIVE}/{baseline}/g", makefile.name], source)


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
    return ExtensionError(f"{label}: it {what}", where=f"--extension {extension.name}", hint=hint)


def _pg_config(build: Build) -> Path:
    """Return the path of pg_config, which prints paths below the folder where it really lies."""
    program = build.program("pg_config").resolve()
    try:
        words = [str(program), "--pgxs"]
        said = subprocess.run(
            [*accounts.become(accounts.server_account()), *words],
            env=environment.compiling(),
            capture_output=True,
            text=True,
            check=True,
            timeout=_PG_CONFIG_SECONDS,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise ExtensionError(
            f"pg_config of {build.version} does not run: {error}", where=str(program)
        ) from error
    if not Path(said).is_file():
        raise ExtensionError(
            f"the build of {build.version} has no PGXS, which compiles extensions", where=said
        )
    return program


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

    shutil.copytree(prefix, tree, symlinks=True, copy_function=link, ignore=left_out)


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


def _log(home: Home, name: str, extension: Extension, build: Build) -> Path:
    path = make_folder(home.logs) / f"build-extension-{name}.log"
    path.write_text(f"{extension}, commit {extension.commit}, for {build.version}, key {build.key}\n")
    path.chmod(0o644)
    return path
