"""Layouts: builds whose server is linked again in seconds, with its functions in another order.

Where functions lie in memory decides which of them share cache lines, and which branches share entries of the
processor's predictors. Two links of the same objects are therefore not equally fast (Mytkowicz et al.,
Producing Wrong Data Without Doing Anything Obviously Wrong, ASPLOS 2009).
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from build import accounts, environment
from build.accounts import make_workplace
from build.engines import ENGINES
from build.errors import TidemarkError
from build.files import make_folder, open_checked
from build.finished_build import Build
from build.host import HostError, why_not
from build.recipes.recipe import BuildChoices, Recipe, RecipeError, ServerLink, Stage

LINKER = "ld.lld"
"""The linker that can shuffle sections."""

RELINKED = BuildChoices(flags="-ffunction-sections", linker_flags="-fuse-ld=lld")
"""Every function gets a section of its own, the unit that the linker moves."""

FOLDER = "relink"
"""The folder below the prefix with all that the server is linked from."""

INPUTS = "inputs"
"""The folder below FOLDER that the linker's own archive of its inputs is unpacked to."""

RESPONSE = "response.txt"
"""The file in it with the words of the linker's command line; the paths in it are relative to the folder."""

# The linker writes an archive of what it reads, with paths and options that no longer name the build tree.
_KEEP = f"""set -e
output="$1"; into="{{staging}}$2/{FOLDER}"; shift 2
mkdir -p "$into"
rm -f "$output"
LLD_REPRODUCE="$into/{INPUTS}.tar" "$@"
tar -xf "$into/{INPUTS}.tar" -C "$into"
rm "$into/{INPUTS}.tar"
chmod -R go+rX "$into"
"""

LINK_SECONDS = 15 * 60.0
"""Time limit of one link, which takes a second for Postgres."""

MAX_SEED = 2**31 - 1
"""The largest seed; the linker takes 0 for a seed of its own choice."""

# Functions that the compiler takes for rarely executed stay apart, as other linkers have them.
_OPTIONS = ("-z", "keep-text-section-prefix")


class RelinkError(TidemarkError):
    """A build cannot be linked again."""


def relinkable(recipe: Recipe, link: ServerLink | None) -> Recipe:
    """Return the recipe of a build that keeps what its server is linked from.

    It is configured with RELINKED. A last stage links the server once more, while the linker records what it
    reads. Raises RecipeError for an engine without a `link`.
    """
    if link is None:
        raise RecipeError(
            f"linking a server of {ENGINES[recipe.engine].title} once more has not been tried",
            where="--layouts",
            hint="omit --layouts",
        )
    keep = Stage(
        "keep what the server is linked from",
        ("sh", "-c", _KEEP, "keep", link.output, recipe.prefix, *link.command),
    )
    return replace(recipe, stages=(*recipe.stages, keep))


def require_linker() -> str:
    """Return the path of the linker that can shuffle functions. Raises HostError if it is not installed."""
    path = shutil.which(LINKER)
    reason = "it is not installed" if path is None else why_not(path)
    if path is None or reason:
        raise HostError(
            f"layouts need {LINKER}, which links servers with their functions in another order: {reason}",
            where="--layouts",
            hint="run ./tidemark setup, which installs lld; or omit --layouts",
        )
    return path


def linker_version() -> str:
    """Return the version line of the linker, on which the order that a seed gives may depend."""
    words = [require_linker(), "--version"]
    env = environment.compiling()
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    return done.stdout.partition("\n")[0].strip()


def can_relink(build: Build) -> bool:
    """Return whether a build kept what its server is linked from."""
    return (build.prefix / FOLDER / INPUTS / RESPONSE).is_file()


def relink(build: Build, seeds: Sequence[int], folder: Path) -> tuple[Build, ...]:
    """Return a layout of `build` for each seed, from 1 to MAX_SEED, below a new `folder`.

    A layout has the server's functions in the order that the seed gives, and everything else of the build:
    it is removed with the folder, and the same seed gives it again. Raises RelinkError, or HostError without
    the linker.
    """
    linker = require_linker()
    if not can_relink(build):
        raise RelinkError(
            f"the build of {build.version} did not keep what its server is linked from",
            where=str(build.prefix),
            hint="omit --layouts; an imported build cannot be linked again",
        )
    return tuple(
        _layout(build, linker, seed, folder / str(number)) for number, seed in enumerate(seeds, start=1)
    )


def _layout(build: Build, linker: str, seed: int, prefix: Path) -> Build:
    server = ENGINES[build.version.engine].server_program
    programs = make_folder(make_folder(prefix) / "bin")
    for entry in build.prefix.iterdir():
        if entry.name not in ("bin", FOLDER):
            (prefix / entry.name).symlink_to(entry)
    for program in (build.prefix / "bin").iterdir():
        if program.name != server:
            (programs / program.name).symlink_to(program)
    # The compile has written the words of the linker, which may name any file. The last of two -o counts. A
    # server finds its files from where its own program lies.
    account, linked = accounts.server_account(), prefix / "linked"
    make_workplace(linked, account, "bin")
    output = ["-o", str(linked / "bin" / server)]
    words = [f"@{RESPONSE}", *_OPTIONS, f"--shuffle-sections=.text.*={seed}", *output]
    try:
        done = subprocess.run(
            [*accounts.become(account), linker, *words],
            cwd=build.prefix / FOLDER / INPUTS,
            env=environment.compiling(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LINK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RelinkError(f"{build.version} cannot be linked again: {error}", where=linker) from error
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip()[-2000:]
        raise RelinkError(f"{build.version} cannot be linked again: {said}", where=str(build.prefix))
    _copy(linked / "bin" / server, programs / server)
    shutil.rmtree(linked)
    return replace(build, prefix=prefix)


def _copy(made: Path, program: Path) -> None:
    try:
        with os.fdopen(open_checked(made), "rb") as linked, program.open("wb") as copy:
            shutil.copyfileobj(linked, copy)
    except OSError as error:
        raise RelinkError(f"the linker has made no program: {error.strerror}", where=str(made)) from error
    program.chmod(0o755)
