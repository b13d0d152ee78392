"""Builds of versions, taken from the build cache or compiled into it."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from pwd import struct_passwd
from typing import TYPE_CHECKING

from build import host, workplace
from build.build import Build
from build.build_spec import FORMAT, BuildRequest, BuildSpec, build_spec
from build.cache import damage, failures, objects, store
from build.cache.answers import SCRIPT, KeptAnswers
from build.cache.pruning import mark_used
from build.cache.takeover import taken_over
from build.engines import git_ref
from build.files import make_folder
from build.home import Home
from build.installs.content import PrefixError
from build.installs.install import recorded_install
from build.lock import held
from build.programs import environment
from build.programs.work import CompileCommands, CompileError
from build.progress import Progress
from build.recipes.choices import PLAIN
from build.recipes.recipe import Stage
from build.sources import source
from build.unpack import apply_patches, masquerade, unpack
from build.version import Version, release_numbers

if TYPE_CHECKING:
    from build.manifest import Manifest


@dataclass(frozen=True)
class CompileOptions:
    """Options of a compile that do not change its result."""

    jobs: int
    """Number of parallel processes."""

    ccache: str | None
    """The path of ccache; None to compile without it."""


def provide(
    request: BuildRequest,
    home: Home,
    progress: Progress,
    *,
    use_ccache: bool = True,
    jobs: int | None = None,
    again: bool = False,
) -> Build:
    """Return the requested build from the cache; compile it if it is not there.

    `jobs` is the number of parallel processes (default: one per core). What is known not to compile here
    fails at once, unless it is to be tried `again`.
    Raises SourceError, RecipeError, HostError, PatchError or CompileError, all of which are TidemarkErrors.
    """
    version, build = request.version, find(request, home)
    if build is not None and version.is_install:
        return build
    if build is not None:
        progress.note(f"{version}: from the build cache: {build.prefix.name}{_namesakes(build, home)}")
        mark_used(home, build)
        return build
    obtained = source.obtain(version, home, progress, request.git_source)
    options = CompileOptions(jobs or host.cores(), host.ccache_program() if use_ccache else None)
    spec = build_spec(obtained, request)
    if again:
        failures.forget(home, spec)
    build = _imported(request, obtained, home) or _compile_once(spec, home, progress, options)
    mark_used(home, build)
    return build


def find(request: BuildRequest, home: Home) -> Build | None:
    """Return the requested build if it needs neither download nor compiling; None otherwise.

    The result is always None for a branch, because only its source knows the commit it points to today.
    """
    version = request.version
    if version.is_install:
        return _installed(request, home)
    known: list[source.Source | None] = [*source.known_sources(version, home, request.git_source)]
    for asked in dict.fromkeys((replace(request, slim=None), request)):
        for candidate in known or [None]:
            build = _imported(asked, candidate, home)
            if build is None and candidate is not None:
                build = store.find(home, build_spec(candidate, asked).key, version)
            if build is not None:
                return build
    return None


def require_known(version: Version, home: Home, git_source: str | None = None) -> None:
    """Raise GitError for a version whose git source has no such tag or branch, before any work begins.

    It is also raised when the source cannot be reached, unless there is a build of a version of that name.
    """
    if version.is_release or version.is_install:
        return
    if any(build.version.plain == version.plain for build in store.all_builds(home)):
        return
    repository = source.repository_of(version, home, git_source)
    if repository is not None:
        repository.require(git_ref(version))


def _installed(request: BuildRequest, home: Home) -> Build:
    version = request.version
    if not request.is_plain:
        raise PrefixError(
            f"{version} is installed already: it can be neither patched, compiled otherwise nor linked again",
            hint="omit --patch, --build and --layouts, or measure its source: a release, branch or commit",
        )
    return recorded_install(version, home)


def _imported(request: BuildRequest, known: source.Source | None, home: Home) -> Build | None:
    # A build is imported in order to be measured, even if compiling on this machine would give another one.
    digest, patches = known.digest if known else None, [patch.sha256 for patch in request.read_patches]
    if request.relinks:
        return None
    return store.imported(home, request.version, digest, patches, request.choices.to_json())


def _namesakes(build: Build, home: Home) -> str:
    """Return which builds an imported one could be mistaken for, and how to name these; empty if none."""
    others = [f"{build.version.engine}@NAME={other.prefix}" for other in store.namesakes(home, build)]
    return f", which was imported; there are others of this version: {', '.join(others)}" if others else ""


def _compile_once(spec: BuildSpec, home: Home, progress: Progress, options: CompileOptions) -> Build:
    """Compile under the lock of the build key, unless another process has compiled the build meanwhile."""

    def on_wait() -> None:
        progress.note(f"{spec.version}: the same build is being compiled already; waiting for it")

    with held(store.lock_path(home, spec.key), on_wait) as lock:
        build = store.find(home, spec.key, spec.version)
        if build is not None:
            progress.note(f"{spec.version}: from the build cache: {build.prefix.name}")
            return build
        loss = store.damaged(home, spec.key)
        if loss:
            progress.note(f"{spec.version}: the build in the cache is damaged, and compiled again: {loss}")
        known = failures.recall(home, spec)
        if known is not None:
            raise known
        try:
            return _compile(spec, home, progress, options, lock)
        except CompileError as error:
            failures.remember(home, spec, error)
            raise


def _compile(spec: BuildSpec, home: Home, progress: Progress, options: CompileOptions, lock: int) -> Build:
    recipe, started, others = spec.recipe, time.monotonic(), host.runnable()
    expected = (
        store.expected_commands(home, recipe.engine, release_numbers(recipe.release)[0], slim=recipe.is_slim)
        or recipe.commands
    )

    def on_wait() -> None:
        progress.note(f"{spec.version}: another compile of root's is going on; waiting for it")

    with (
        _scratch(spec, home) as (scratch, staging),
        progress.task(f"compile {spec.version}", expected, "files") as task,
    ):
        with workplace.compiling(home.path, on_wait) as account:
            workplace.make_workplace(scratch, account, "source", "installed", "answers", "tmp")
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
    unpack(spec.source, folder, work)
    apply_patches(spec.patches, folder, work, spec.version)
    values = {
        "{jobs}": str(options.jobs),
        "{compiler}": spec.compiler.command,
        "{source}": str(folder),
        "{staging}": str(staging),
    }
    answers.take_over(work.read(folder / SCRIPT))
    for stage in spec.recipe.stages:
        command, *again = _attempts(stage, values)
        work.run(stage.name, command, folder, again=again)
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


def _attempts(stage: Stage, values: dict[str, str]) -> list[list[str]]:
    """Return the command of a stage, and how it is repeated when it fails: as it was, then with one job.

    Makefiles whose parts do not wait for generated headers fail with several jobs when a machine is slow. A
    commit that fails here is taken for one that does not compile ever after. What was compiled is kept.
    """
    command = [_fill(word, values) for word in stage.command]
    if values["{jobs}"] == "1" or not any("{jobs}" in word for word in stage.command):
        return [command]
    return [command, command, [_fill(word, {**values, "{jobs}": "1"}) for word in stage.command]]


def _fill(word: str, values: dict[str, str]) -> str:
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
    # If the scratch folder is inside a git checkout, git would treat the source as a part of that checkout:
    # `git apply` would silently do nothing, and makefiles would record the revision of the checkout.
    own = {"GIT_CEILING_DIRECTORIES": str(scratch), "TMPDIR": str(scratch / "tmp")}
    base = environment.compiling({**own, **spec.recipe.environment})
    if not _uses_ccache(spec, options) or options.ccache is None:
        # The machine's PATH may contain links to ccache with the compiler's name.
        return {**base, "CCACHE_DISABLE": "1"}
    # The scratch folder differs between compiles of the same file, so that paths must not enter the hash.
    settings = {"CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
    if account is None:
        settings["CCACHE_DIR"] = os.environ.get("CCACHE_DIR") or str(make_folder(home.ccache))
    else:
        settings["CCACHE_DIR"] = str(home.ccache)
        objects.prepare(home.ccache, account, writable=not spec.patches)
        if spec.patches:
            settings |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": str(scratch / "tmp")}
    return {**base, **settings, "PATH": masquerade(options.ccache, scratch / "ccache")}


def _uses_ccache(spec: BuildSpec, options: CompileOptions) -> bool:
    # A compiler given as a path is not searched on PATH, so that ccache cannot replace it.
    return options.ccache is not None and "/" not in spec.compiler.command


@contextmanager
def _scratch(spec: BuildSpec, home: Home) -> Iterator[tuple[Path, Path]]:
    """Yield two folders, scratch and staging, and delete them afterwards; the caller holds the lock."""
    scratch, staging = home.scratch / f"build-{spec.key[:12]}", store.staging(home, spec.key)
    _check_space(home, spec.recipe.scratch_bytes)
    shutil.rmtree(staging, ignore_errors=True)  # A killed process may have left it.
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
            "installed": damage.installed(tree),
        }
    )


def _passed_on(account: struct_passwd | None) -> set[str]:
    """Return the caller's variables that a compile got: another user cannot write to a ccache of root's."""
    return {*environment.COMPILING} - ({"CCACHE_DIR"} if account else set())
