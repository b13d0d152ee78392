"""How fast a cached build answers, and what Tidemark adds to a compile.

The compile is compared with a bare configure, make and make install of the same source with the same flags,
one after the other without ccache, in folders of the same file system.
"""

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, report
from build.build import Build
from build.home import ROOT, Home, locate
from build.make import provide
from build.progress import Progress
from build.version import parse_version
from runners.console import progress
from runners.measuring.machine_lock import measuring_alone

VERSION = parse_version("postgres@18.6")
CACHED_RUNS = 15
MOST_CACHED_SECONDS = 0.3
MOST_COMPILE_RATIO = 1.1


def main() -> int:
    """Measure both figures: about six minutes on two cores."""
    home = locate()
    with measuring_alone(home), progress() as shown:
        build = provide(VERSION, home, shown)
        cached = _cached_seconds()
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-", dir=home.path) as folder:
            ours, bare = _compile_both(build, home, Path(folder), shown)
    note = f"{ours:.0f} s through Tidemark, {bare:.0f} s bare"
    return report(
        [
            Figure("cached build answers", cached, "s", at_most=MOST_CACHED_SECONDS),
            Figure("compile / bare compile", ours / bare, "", at_most=MOST_COMPILE_RATIO, note=note),
        ]
    )


def _cached_seconds() -> float:
    """Median wall time of the whole command, from the shell's start to the prefix printed."""
    command = [str(ROOT / "tidemark"), "build", str(VERSION)]
    seconds = []
    for _ in range(CACHED_RUNS):
        started = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)


def _compile_both(build: Build, home: Home, folder: Path, shown: Progress) -> tuple[float, float]:
    """Seconds of a compile through Tidemark into an empty cache, and of the bare commands."""
    empty = Home(folder / "home")
    empty.path.mkdir()
    empty.sources.symlink_to(home.sources)
    started = time.monotonic()
    fresh = provide(VERSION, empty, shown, use_ccache=False)
    ours = time.monotonic() - started
    shown.note("the same by hand")
    tarball = home.sources / fresh.manifest["source"]["location"]
    started = time.monotonic()
    _bare(fresh, tarball, folder / "bare")
    return ours, time.monotonic() - started


def _bare(build: Build, tarball: Path, folder: Path) -> None:
    """Unpack, then the commands of the recipe as a person would type them."""
    tree = folder / "source"
    tree.mkdir(parents=True)
    filled = {
        "{jobs}": str(build.manifest["jobs"]),
        "{compiler}": build.manifest["compiler"]["command"],
        "{source}": str(tree),
        "{staging}": str(folder / "staging"),
    }
    recipe = build.manifest["recipe"]
    environment = {**os.environ, **recipe["environment"], "CCACHE_DISABLE": "1"}
    subprocess.run(["tar", "--extract", "--strip-components=1", "--file", tarball], cwd=tree, check=True)
    with (folder / "log").open("wb") as log:
        for stage in recipe["stages"]:
            command = stage["command"]
            for placeholder, value in filled.items():
                command = [word.replace(placeholder, value) for word in command]
            subprocess.run(command, cwd=tree, env=environment, stdout=log, stderr=log, check=True)
