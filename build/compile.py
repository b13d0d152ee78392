"""Compiling: from a source to an install tree in the cache, by the stages of its recipe."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from pwd import struct_passwd
from typing import TYPE_CHECKING

from build import environment, host
from build.accounts import compiling, make_workplace
from build.cache import store
from build.cache.earlier_compiles import SCRIPT, KeptAnswers, prepare_ccache
from build.cache.takeover import taken_over
from build.compile_commands import CompileCommands, CompileError
from build.environment import NO_HOME
from build.files import make_folder
from build.finished_build import Build
from build.home import Home
from build.progress import Progress
from build.recipes.recipe import JOBS, PLAIN, Stage
from build.request import FORMAT, BuildSpec, Patch
from build.sources import git
from build.sources.git import BASE
from build.sources.patching import APPLY, PatchError, not_applying
from build.sources.source import Source
from build.version import Version, release_numbers

if TYPE_CHECKING:
    from build.manifest import Manifest

EXTRACT = ("tar", "--extract", "--no-same-owner", "--no-same-permissions")
"""Unpacks a source tree, which nobody else may then write to, whatever the archive says."""

WITHOUT_CCACHE = {"CCACHE_DISABLE": "1"}
"""The variable with which the links to ccache do nothing, which the machine's PATH may contain."""

_PACKED = {".bz2": "--bzip2", ".gz": "--gzip", ".xz": "--xz"}
"""The options of tar for the tarballs of upstream and of Debian."""


@dataclass(frozen=True)
class CompileOptions:
    """Options of a compile that do not change its result."""

    jobs: int
    """Number of parallel processes."""

    ccache: str | None
    """The path of ccache; None to compile without it."""


def compiled(spec: BuildSpec, home: Home, progress: Progress, options: CompileOptions, lock: int) -> Build:
    """Compile into the cache; `lock` is the file descriptor of the lock of its key. Raises CompileError."""
    recipe, started, others = spec.recipe, time.monotonic(), host.runnable()
    expected = (
        store.expected_commands(home, recipe.engine, release_numbers(recipe.release)[0], slim=recipe.is_slim)
        or recipe.commands
    )
    with (
        scratch_folders(f"build-{spec.key[:12]}", spec.key, home, recipe.scratch_bytes) as (scratch, staging),
        progress.task(f"compile {spec.version}", expected, "files") as task,
    ):
        with compiling(home.path, waiting(spec.version, progress)) as account:
            make_workplace(scratch, account, "source", "installed", "answers", "tmp")
            answers = KeptAnswers(home, spec, scratch / "answers" / "cache")
            work = CompileCommands(
                label=str(spec.version),
                log=_log(spec, home),
                environment={**_environment(spec, home, options, scratch, account), **answers.environment()},
                counted=re.compile(recipe.counted.encode()),
                on_count=lambda count, total: task.update(count, max(count, total or expected)),
                on_stage=lambda stage: task.rename(f"{spec.version}: {stage}"),
                inherit=(lock,),
                account=account,
            )
            installed = _run_stages(spec, options, scratch, work, answers)
            tree = _taken_over(spec, installed, scratch, staging, work)
        manifest = _manifest(spec, options, work, time.monotonic() - started, others, tree)
        store.write_manifest(tree, manifest)
        # Publishing flushes the file system: files that are deleted before that need not be written.
        shutil.rmtree(scratch)
        build = store.publish(tree, home)
    ignored = environment.without_effect(manifest.left_out)
    if ignored:
        progress.note(f"{spec.version}: compiled without these environment variables: {', '.join(ignored)}")
    progress.note(f"{spec.version}: compiled in {time.monotonic() - started:.0f} s: {build.prefix.name}")
    return build


def _run_stages(
    spec: BuildSpec, options: CompileOptions, scratch: Path, work: CompileCommands, answers: KeptAnswers
) -> Path:
    """Unpack, patch, compile and install; return where the install tree is in the scratch folder."""
    folder, staging = scratch / "source", scratch / "installed"
    _unpack(spec.source, folder, work)
    apply_patches(spec.patches, folder, work, spec.version)
    values = {
        JOBS: str(options.jobs),
        "{compiler}": spec.compiler.command,
        "{source}": str(folder),
        "{staging}": str(staging),
    }
    answers.take_over(work.read(folder / SCRIPT))
    run_stages(spec.recipe.stages, values, folder, work)
    if work.account is None or not spec.patches:  # as for the objects of ccache
        answers.keep()
    return staging / spec.recipe.prefix.lstrip("/")


def _taken_over(
    spec: BuildSpec, installed: Path, scratch: Path, staging: Path, work: CompileCommands
) -> Path:
    """Return a copy of the install tree below `staging` that belongs to the current user."""
    tree = taken_over(installed, scratch, staging, work)
    missing = [name for name in spec.recipe.installs if not (tree / name).exists()]
    if missing:
        raise work.failure("install", f"not installed: {', '.join(missing)}")
    return tree


def run_stages(
    stages: Sequence[Stage], values: Mapping[str, str], folder: Path, work: CompileCommands
) -> None:
    """Run stages in a source tree; `values` are what their placeholders stand for. Raises CompileError."""
    for stage in stages:
        command, *again = _attempts(stage, values)
        work.run(stage.name, command, folder, again=again)


def _attempts(stage: Stage, values: Mapping[str, str]) -> list[list[str]]:
    """Return the command of a stage, and how it is repeated when it fails: as it was, then with one job.

    Makefiles whose parts do not wait for generated headers fail with several jobs when a machine is slow. A
    commit that fails here is taken for one that does not compile ever after. What was compiled is kept.
    """
    command = [_fill(word, values) for word in stage.command]
    if values[JOBS] == "1" or not any(JOBS in word for word in stage.command):
        return [command]
    return [command, command, [_fill(word, {**values, JOBS: "1"}) for word in stage.command]]


def _fill(word: str, values: Mapping[str, str]) -> str:
    # Not str.format(), because a flag may contain braces of its own.
    for placeholder, value in values.items():
        word = word.replace(placeholder, value)
    return word


def _environment(
    spec: BuildSpec,
    home: Home,
    options: CompileOptions,
    scratch: Path,
    account: struct_passwd | None,
) -> dict[str, str]:
    base = environment.compiling({**own_variables(scratch), **spec.recipe.environment})
    if not _uses_ccache(spec, options) or options.ccache is None:
        return {**base, **WITHOUT_CCACHE}
    # The scratch folder differs between compiles of the same file, so that paths must not enter the hash.
    settings = {"CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
    if account is None:
        settings["CCACHE_DIR"] = os.environ.get("CCACHE_DIR") or str(make_folder(home.ccache))
    else:
        settings["CCACHE_DIR"] = str(home.ccache)
        prepare_ccache(home.ccache, account, writable=not spec.patches)
        if spec.patches:
            settings |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": str(scratch / "tmp")}
    return {**base, **settings, "PATH": _masquerade(options.ccache, scratch / "ccache")}


def own_variables(scratch: Path) -> dict[str, str]:
    """Return the variables of every compile in a scratch folder.

    If that is inside a git checkout, git would treat the source as a part of that checkout: `git apply` would
    silently do nothing, and makefiles would record the revision of the checkout.
    """
    return {"GIT_CEILING_DIRECTORIES": str(scratch), "TMPDIR": str(scratch / "tmp")}


def _uses_ccache(spec: BuildSpec, options: CompileOptions) -> bool:
    # A compiler given as a path is not searched on PATH, so that ccache cannot replace it.
    return options.ccache is not None and "/" not in spec.compiler.command


@contextmanager
def scratch_folders(name: str, key: str, home: Home, needed_bytes: int = 0) -> Iterator[tuple[Path, Path]]:
    """Yield a scratch folder `name`, which is not made, and the staging folder of a key, which is empty.

    Both are deleted afterwards. The caller holds the lock of the key. Raises HostError if a disk is too full.
    """
    scratch, staging = home.scratch / name, store.staging(home, key)
    _check_space(home, needed_bytes)
    shutil.rmtree(staging, ignore_errors=True)  # A killed process may have left it.
    make_folder(staging)
    try:
        yield scratch, staging
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(staging, ignore_errors=True)


def waiting(version: Version, progress: Progress) -> Callable[[], None]:
    """Return what says that a compile waits for another one of root's."""
    return lambda: progress.note(f"{version}: another compile of root's is going on; waiting for it")


def _check_space(home: Home, needed: int) -> None:
    free = shutil.disk_usage(make_folder(home.scratch)).free
    if free < needed:
        raise host.HostError(
            f"compiling needs about {needed / 1e9:.1f} GB of disk space, only {free / 1e9:.1f} GB are free",
            where=str(home.scratch),
            hint="free some disk space, or set TIDEMARK_HOME to a folder on a larger disk",
        )


def _log(spec: BuildSpec, home: Home) -> Path:
    path = make_folder(home.logs) / f"build-{spec.recipe.engine}-{spec.recipe.release}-{spec.key[:12]}.log"
    path.write_text(f"{spec.version}, key {spec.key}, {spec.compiler.version}\n")
    path.chmod(0o644)
    return path


def _manifest(
    spec: BuildSpec, options: CompileOptions, work: CompileCommands, seconds: float, others: float, tree: Path
) -> "Manifest":
    from build.manifest import manifest_of  # slow to load, and a mistake is told before

    return manifest_of(
        {
            "format": FORMAT,
            "key": spec.key,
            "engine": str(spec.recipe.engine),
            "version": str(spec.version),
            "release": spec.recipe.release,
            "source": spec.source.to_json(),
            "recipe": spec.recipe.identity(),
            "patches": [{"name": patch.path.name, "sha256": patch.sha256} for patch in spec.patches],
            **({"choices": spec.choices.to_json()} if spec.choices != PLAIN else {}),
            "compiler": asdict(spec.compiler),
            **({"slim_programs": list(spec.recipe.slim_programs)} if spec.recipe.is_slim else {}),
            "ccache": _uses_ccache(spec, options),
            "jobs": options.jobs,
            "runnable": round((others + host.runnable()) / 2, 1),
            "left_out": environment.left_out(_passed_on(work.account)),
            "seconds": {**work.seconds, "total": round(seconds, 3)},
            "compile_commands": work.count,
            "host": {
                "os": host.os_name(),
                "architecture": host.architecture(),
                "glibc": host.glibc_version(),
            },
            "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "installed": store.installed_files(tree),
        }
    )


def _passed_on(account: struct_passwd | None) -> set[str]:
    """Return the caller's variables that a compile got: another user cannot write to a ccache of root's."""
    return {*environment.COMPILING} - ({"CCACHE_DIR"} if account else set())


def _unpack(source: Source, folder: Path, work: CompileCommands) -> None:
    """Unpack the source tree into the empty folder `folder`. Raises CompileError or GitError."""
    if source.tarball is not None:
        packed = _PACKED[source.tarball.suffix]
        with source.tarball.open("rb") as file:  # which the user that compiles need not be able to read
            work.run("unpack", [*EXTRACT, packed, "--strip-components=1", "--file=-"], folder, file)
    elif source.commit is not None:
        with git.archive(source.commit) as stream:
            work.run("unpack", EXTRACT, folder, stream.stdout)


def apply_patches(patches: tuple[Patch, ...], folder: Path, work: CompileCommands, version: Version) -> None:
    """Apply the patches in order as `patch -p1` would, but without fuzz.

    Raises PatchError for the first patch that does not apply exactly to `version` after those before it, with
    file and line of the hunk.
    """
    for number, patch in enumerate(patches, start=1):
        started = work.log.stat().st_size
        # In no repository: one around this folder could be anybody's, and its filters would run.
        command = [*BASE, "--git-dir", NO_HOME, *APPLY, "--verbose", "-"]
        try:
            with patch.path.open("rb") as file:
                work.run("patch", command, folder, file)
        except CompileError as error:
            place = (number, len(patches))
            raise _patch_error(patch.path, place, version, work.log, started) from error


def _patch_error(patch: Path, place: tuple[int, int], version: Version, log: Path, start: int) -> PatchError:
    with log.open(errors="replace") as file:
        file.seek(start)
        return not_applying(patch, place, str(version), file.read(), log=str(log))


def _masquerade(ccache: str, folder: Path) -> str:
    """Create links to ccache named `gcc`, `cc` and so on in `folder`, and return a PATH that begins with it.

    `CC="ccache gcc"` would be recorded in pg_config and in the makefiles of extensions, and so change what is
    installed. A link with the compiler's name leaves no trace.
    """
    folder.mkdir()
    for name in filter(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++")):
        (folder / name).symlink_to(ccache)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
