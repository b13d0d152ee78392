"""Layouts: a build whose server is linked again, with its functions in another order, without any compile."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from build.build import Build
from build.engines import ENGINES
from build.errors import TidemarkError
from build.files import make_folder, open_checked
from build.host import HostError
from build.programs import accounts, environment
from build.programs.working import why_not
from build.recipes.relinking import FOLDER, INPUTS, LINKER, RESPONSE
from build.workplace import make_workplace

LINK_SECONDS = 15 * 60.0
"""Time limit of one link, which takes a second for Postgres."""

MAX_SEED = 2**31 - 1
"""The largest seed; the linker takes 0 for a seed of its own choice."""

# Functions that the compiler takes for rarely executed stay apart, as other linkers have them.
_OPTIONS = ("-z", "keep-text-section-prefix")


class RelinkError(TidemarkError):
    """A build cannot be linked again."""


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
