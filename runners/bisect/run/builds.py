"""Builds of the positions of a bisect; a failure of the commit is told apart from one of the machine."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from build.cache.earlier_compiles import compiler_errors, is_of_machine
from build.cache.store import all_builds, require_clean
from build.compile_commands import FIRST_ERROR, CompileError
from build.errors import TidemarkError
from build.extending import ExtensionCompileError
from build.extension import Extension
from build.finished_build import Build
from build.home import Home
from build.progress import Progress
from build.provide import provide
from build.recipes.recipe import RecipeError
from build.relink import can_relink
from build.request import BuildRequest
from build.sources.source import AbsentVersionError
from build.version import Version
from history.store.records import FailureCause
from runners.bisect.domain.question import CandidateRange
from runners.measuring.failures.cause import MIN_FREE_BYTES, build_failure, run_failure
from suites.additions.variant import UNCHANGED, Variant

MAX_LINES = 12
"""The most lines of a reason."""


class MachineError(TidemarkError):
    """Something failed because of the machine, not because of the commit."""


@dataclass(frozen=True)
class Unusable:
    """A position that cannot be measured."""

    reason: str
    cause: FailureCause = FailureCause.VERSION
    """Whether its source is surely to blame; otherwise another time it may compile."""


Provide = Callable[[Version, str | None], Build]
"""Returns the build of a version, from a git source if one is given."""


def provider(
    home: Home,
    progress: Progress,
    programs: tuple[str, ...],
    variant: Variant = UNCHANGED,
    *,
    relinks: bool = False,
    searched: Extension | None = None,
) -> Provide:
    """Return the function that provides builds from the build cache, compiling them where needed.

    All are compiled as `variant` says. What it compiles has the server and `programs`, and no more than
    measuring them needs. Where that fails, and not by an error of the compiler, as in a source that is laid
    out differently, all of it is compiled. With `relinks` they keep what their server is linked from. Builds
    with extensions are whole; of an extension that is `searched`, a version's variant is the commit.
    """

    def provided(version: Version, git: str | None) -> Build:
        extensions = variant.extensions
        if searched is not None:
            extensions = (*extensions, replace(searched, ref=version.variant))
        whole = BuildRequest(
            version.plain, variant.patches, variant.build, git, relinks=relinks, extensions=extensions
        )
        if extensions:
            return provide(whole, home, progress)
        try:
            return provide(replace(whole, slim=programs), home, progress)
        except CompileError as error:
            if compiler_errors(error) or is_of_machine(error):
                raise
            progress.note(
                f"{version}: not all of a slim build can be made, so that a whole one is: {error.what}"
            )
            return provide(whole, home, progress)

    return provided


def build_of(version: Version, git: str | None, home: Home, provided: Provide) -> Build | Unusable:
    """Return the build of a position, or why its source does not exist or does not compile.

    Raises TidemarkError for failures of the disk, the network or the cache.
    """
    try:
        build = provided(version, git)
    except (CompileError, RecipeError) as error:
        require_disk_free(home.path, error)
        if is_of_machine(error):
            raise _of_machine(error, home.path) from error
        return Unusable(_why_not_compiled(error), build_failure(error).cause)
    except AbsentVersionError as error:
        if git is not None:
            raise  # a known commit is in the mirror: it was lost on this machine
        return Unusable(f"source not available: {error.what}")
    if not version.is_install:
        require_clean(build)
    return replace(build, version=version)


def require_disk_free(folder: Path, error: Exception) -> None:
    """Raise MachineError from `error` when the disk is full: the commit is then not at fault."""
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise _of_machine(error, folder) from error


def require_own_failure(folder: Path, error: TidemarkError) -> None:
    """Raise MachineError from `error` unless it is the failure of the version that was loaded."""
    require_disk_free(folder, error)
    if run_failure(error, folder).cause is FailureCause.MACHINE:
        raise MachineError(
            f"a server failed for a reason that says nothing of its commit:\n{error}",
            where=str(folder),
            hint="remove the reason, and run the same command again",
        ) from error


def _of_machine(error: Exception, folder: Path) -> MachineError:
    free = shutil.disk_usage(folder).free
    return MachineError(
        f"the machine ran out of disk or memory ({free / 1e9:.1f} GB of disk are free):\n{error}",
        where=str(folder),
        hint="free some disk space or memory, and run the same command again",
    )


def built_already(span: CandidateRange, home: Home, variant: Variant = UNCHANGED) -> list[int]:
    """Return the candidates whose commit or release is in the build cache, maybe with another compiler.

    Builds count if they were compiled as `variant` says. Patched ones are not known by their patches here.
    """
    if variant.patches:
        return []
    cached, choices = set(), variant.build.to_json()
    for build in all_builds(home):
        is_plain = not (build.manifest.patches or build.extensions or can_relink(build))
        if is_plain and build.manifest.choices == choices:
            cached.add(build.manifest.source.commit or str(build.version))
    inner = enumerate(span.points[1:-1], start=1)
    return [place for place, point in inner if (point.commit or point.version) in cached]


def shorten_reason(reason: str) -> str:
    """Shorten a reason to MAX_LINES lines: a first error with what follows, or the end of a log."""
    lines = reason.strip().splitlines()
    if len(lines) <= MAX_LINES:
        return "\n".join(lines)
    is_first = lines[0].endswith(FIRST_ERROR)
    kept = [*lines[: MAX_LINES - 1], "…"] if is_first else [lines[0], "…", *lines[2 - MAX_LINES :]]
    return "\n".join(kept)


def _why_not_compiled(error: TidemarkError) -> str:
    """Return what failed with the errors of the compiler: a parallel build logs them far above its end."""
    errors = compiler_errors(error)
    if isinstance(error, ExtensionCompileError):
        return "\n".join([error.what, *errors[1:MAX_LINES]])
    if not errors:
        return f"does not compile: {error}"
    what = error.what.splitlines()[0].partition("; the ")[0]
    return "\n".join([f"does not compile: {what}", *errors[: MAX_LINES - 1]])
