"""The time to look up a cached build, and Tidemark's overhead when compiling.

Compiling with Tidemark is compared with configure, make and make install of the same source with the same
flags, one after the other, without ccache, in folders of the same file system.
"""

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.output.figures import Figure, report
from build.build import Build
from build.home import ROOT, Home, locate
from build.make import provide
from build.progress import Progress
from build.version import parse_version
from runners.console import progress
from runners.measuring.machine_lock import measuring_alone

VERSION = parse_version("postgres@18.6")
CACHED_RUNS = 15
MAX_CACHED_SECONDS = 0.3
MAX_COMPILE_RATIO = 1.1


def main() -> int:
    """Measure both figures, which takes about six minutes on two cores; return 0 if both targets are met."""
    home = locate()
    with measuring_alone(home), progress() as shown:
        build = provide(VERSION, home, shown)
        cached = _cached_seconds()
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-", dir=home.path) as folder:
            ours, bare = _compile_both(build, home, Path(folder), shown)
    note = f"{ours:.0f} s through Tidemark, {bare:.0f} s bare"
    return report(
        [
            Figure("cached build answers", cached, "s", at_most=MAX_CACHED_SECONDS),
            Figure("compile / bare compile", ours / bare, "", at_most=MAX_COMPILE_RATIO, note=note),
        ]
    )


def _cached_seconds() -> float:
    """Return the median wall time of `./tidemark build` for a cached version, in seconds."""
    command = [str(ROOT / "tidemark"), "build", str(VERSION)]
    seconds = []
    for _ in range(CACHED_RUNS):
        started = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)


def _compile_both(build: Build, home: Home, folder: Path, shown: Progress) -> tuple[float, float]:
    """Return the seconds of compiling with Tidemark into an empty cache, and with the bare commands."""
    empty = Home(folder / "home")
    empty.path.mkdir()
    empty.sources.symlink_to(home.sources)
    started = time.monotonic()
    fresh = provide(VERSION, empty, shown, use_ccache=False)
    ours = time.monotonic() - started
    shown.note("compiling the same source without Tidemark")
    tarball = home.sources / fresh.manifest["source"]["location"]
    started = time.monotonic()
    _bare(fresh, tarball, folder / "bare")
    return ours, time.monotonic() - started


def _bare(build: Build, tarball: Path, folder: Path) -> None:
    """Unpack the source, and run the commands of the recipe without Tidemark."""
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
