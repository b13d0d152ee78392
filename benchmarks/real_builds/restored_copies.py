"""How soon a server can start with a kept copy of its data, over the time that copying the files takes."""

import os
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.output.figures import Figure
from benchmarks.real_builds.client_share import SUITE
from benchmarks.real_builds.loaded_server import ENGINES
from build.build import Build
from build.errors import TidemarkError
from build.home import Home
from build.make import provide
from build.progress import Progress
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.data_copies.store import DataCopies, KeptCopy, read_copy
from suites.engines import make_server
from suites.keys.durability import Durability
from suites.sizing import sizes, this_machine

PAIRS, SEED = 5, 7700

MAX_TIMES = 1.2
"""The time until a server can start, with the check of the copy, over that of copying its files, at most."""


def restored_figures(home: Home, shown: Progress) -> Iterator[Figure]:
    """Yield, for each engine, the median ratio of pairs in random order."""
    for version in ENGINES:
        build = provide(version, home, shown)
        kept = _newest(home, build)
        draw = random.Random(SEED)
        ratios, starts = list[float](), list[float]()
        with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
            for _ in range(PAIRS):
                took = {}
                for is_restored in draw.sample((True, False), 2):
                    os.sync()  # so that neither waits for what the other has written
                    if is_restored:
                        took[True], start = _restored(build, kept, folder / "1")
                        starts.append(start)
                    else:
                        took[False] = _copied(kept, folder / "1")
                ratios.append(took[True] / took[False])
        name = f"a restored copy begins, over copying its files, {version}"
        note = f"{kept.bytes / 2**30:.1f} GiB, {PAIRS} pairs: {min(ratios):.2f} to {max(ratios):.2f}"
        yield Figure(name, statistics.median(ratios), "", at_most=MAX_TIMES, note=note)
        yield Figure(f"start of a server with a restored copy, {version}", statistics.median(starts), "s")


def _newest(home: Home, build: Build) -> KeptCopy:
    """Return the newest copy of the data of short. Raises TidemarkError if there is none."""
    copies = DataCopies(home.copies).all()
    usable = [
        kept
        for kept in copies
        if (kept.build, kept.suite, kept.profile) == (build.key, SUITE.name, "short") and kept.damage is None
    ]
    if not usable:
        raise TidemarkError(
            f"there is no kept copy of {build.version} in tpch, short",
            where=str(home.copies),
            hint="run the part answers before, which keeps one",
        )
    return max(usable, key=lambda kept: kept.kept_at)


def _copied(kept: KeptCopy, place: Path) -> float:
    began = time.perf_counter()
    command: list[str | Path] = ["cp", "--archive", "--reflink=auto", kept.data, place]
    subprocess.run(command, check=True)
    took = time.perf_counter() - began
    shutil.rmtree(place)
    return took


def _restored(build: Build, kept: KeptCopy, place: Path) -> tuple[float, float]:
    """Return the seconds until a new server with the copy can start, and those of its start."""
    room = sizes(SUITE, SUITE.profile("short"), this_machine(), SUITE.steps)
    settings = dict(SUITE.server[build.version.engine])
    server = make_server(build, room, Durability.RELAXED, place, settings)
    try:
        began = time.perf_counter()
        checked = read_copy(kept.folder)
        assert checked.damage is None
        server.create(checked.data)
        ready = time.perf_counter()
        server.start()
        return ready - began, time.perf_counter() - ready
    finally:
        server.destroy()
