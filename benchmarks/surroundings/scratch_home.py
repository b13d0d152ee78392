"""Homes of a benchmark, to which builds, sources and tools are linked, and commands that are run in them."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from build.home import ROOT, Home


@dataclass(frozen=True)
class CommandRun:
    """What a command did."""

    minutes: float
    exit_code: int
    printed: str
    """What it wrote to standard output."""


def link_home(home: Home, scratch: Home, *, keeps_builds: bool) -> None:
    """Make `scratch` a home without a history or data, with the builds, sources and tools of `home`.

    With `keeps_builds` what is compiled in it is kept in `home`. Otherwise builds are linked one by one, and
    what is compiled in it, is compiled from nothing the next time, too.
    """
    scratch.path.mkdir(parents=True, exist_ok=True)
    linked = [(home.tools, scratch.tools), (home.sources, scratch.sources)]
    if keeps_builds:
        home.builds.mkdir(exist_ok=True)
        linked += [(home.builds, scratch.builds), (home.ccache, scratch.ccache)]
    else:
        scratch.builds.mkdir()
        linked += [(build, scratch.builds / build.name) for build in home.builds.glob("[!.]*")]
    for there, here in linked:
        if there.exists() and not here.is_symlink():
            here.symlink_to(there)


def tidemark(
    words: Sequence[str], home: Home, folder: Path, checkout: Path = ROOT, *, shows: bool = True
) -> CommandRun:
    """Run a command as its user does, in a folder with the user's files.

    Its progress goes to standard error, as always, and what it prints to standard output if `shows`.
    """
    variables = {**os.environ, "TIDEMARK_HOME": str(home.path)}
    began = time.monotonic()
    done = subprocess.run(
        [str(checkout / "tidemark"), *words],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    minutes = (time.monotonic() - began) / 60
    if shows:
        print(done.stdout, flush=True)
    return CommandRun(minutes, done.returncode, done.stdout)
