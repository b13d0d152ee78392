"""Builds of the positions of a bisect, and which failures speak of the commit and not of the machine."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from build.build import Build
from build.cache.store import all_builds, require_clean
from build.errors import TidemarkError
from build.home import Home
from build.make import provide
from build.progress import Progress
from build.recipes.recipe import RecipeError
from build.sources.source import SourceError
from build.version import Version
from build.work import CompileError
from runners.bisect.domain.question import CandidateRange

LEAST_FREE_BYTES = 500_000_000
"""With less than this free, a failure is one of the disk."""

MOST_LINES = 12
"""Of a reason."""

LONGEST_LINE = 200

_COMPILERS_WORDS = re.compile(r":\d+: (?:fatal )?error: |^ld: |undefined reference to")
_MACHINES_FAULT = re.compile(r"No space left on device|Killed signal|signal 9|Cannot allocate memory")


class MachineError(TidemarkError):
    """The machine, and not the commit, is why something failed."""


@dataclass(frozen=True)
class Unusable:
    """A position that cannot be measured."""

    reason: str


Provide = Callable[[Version, str | None], Build]
"""The build of a version, from a git source if one is named."""


def provider(home: Home, progress: Progress) -> Provide:
    """As the build cache provides them, with ccache."""

    def provided(version: Version, git: str | None) -> Build:
        return provide(version, home, progress, git_source=git)

    return provided


def build_of(version: Version, git: str | None, home: Home, provided: Provide) -> Build | Unusable:
    """The build of a position, or why its source cannot be had or compiled.

    Raises the error of everything else: of the disk, the network, the cache.
    """
    try:
        build = provided(version, git)
    except (CompileError, RecipeError) as error:
        require_disk_free(home.path, error)
        if _MACHINES_FAULT.search(str(error)):
            raise _of_machine(error, home.path) from error
        return Unusable(_why_not_compiled(error))
    except SourceError as error:
        if git is not None:
            raise  # a commit that is known lies in the mirror: the machine lost it
        return Unusable(f"cannot be had: {error.what}")
    require_clean(build)
    return replace(build, version=version)


def require_disk_free(folder: Path, error: Exception) -> None:
    """Raise MachineError, because of `error`, when the disk is full: then nobody else is to blame."""
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        raise _of_machine(error, folder) from error


def _of_machine(error: Exception, folder: Path) -> MachineError:
    free = shutil.disk_usage(folder).free
    return MachineError(
        f"the machine ran out of disk or memory ({free / 1e9:.1f} GB of disk are free):\n{error}",
        where=str(folder),
        hint="make room, and call the same command again: what was measured is kept",
    )


def built_already(span: CandidateRange, home: Home) -> list[int]:
    """Candidates whose commit or release is in the build cache: a hint, as compilers differ."""
    found = set()
    for build in all_builds(home):
        source = build.manifest.get("source", {})
        if not build.manifest.get("patches"):
            found.add(str(source.get("commit") or build.version))
    inner = enumerate(span.points[1:-1], start=1)
    return [place for place, point in inner if (point.commit or point.version) in found]


def told_reason(reason: str) -> str:
    """A reason for people: its first line, and the end of the log that follows it."""
    kept = reason.strip().splitlines()
    return "\n".join(kept if len(kept) <= MOST_LINES else [kept[0], "…", *kept[2 - MOST_LINES :]])


def _why_not_compiled(error: TidemarkError) -> str:
    """What failed, and the compiler's own words, which stand far above the end of a log of many processes."""
    log = Path(error.where)
    said = log.read_text(errors="replace").splitlines() if error.where and log.is_file() else []
    words = [line[:LONGEST_LINE] for line in said if _COMPILERS_WORDS.search(line)]
    if not words:
        return f"does not compile: {error}"
    return "\n".join([f"does not compile: {error.what.partition('; the log')[0]}", *words[: MOST_LINES - 1]])
