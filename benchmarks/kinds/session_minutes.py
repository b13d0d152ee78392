"""The minutes of a session of three steps, and of the same one by Tidemark as it was before the measures."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.output.figures import Figure
from benchmarks.output.intervals import ratio_interval
from benchmarks.surroundings.scratch_home import CommandRun, link_home, tidemark
from build.home import ROOT, Home
from build.make import provide
from build.version import parse_version
from runners.console import Lines
from suites.processes import run

BEFORE = "6b6ba0eb"
"""The last commit without the measures of the kinds."""

VERSIONS = ("postgres@17.11", "postgres@18.6")
STEPS = ("update-index", "read-write-10", "insert")
PAIRS = 4
CONFIDENCE = 0.95
MAX_RATIO = 1.1


def time_figures(home: Home, *, busy: bool = False) -> Iterator[Figure]:
    """Yield the minutes of sessions of both checkouts, in turns, and how many times longer they take now.

    On a `busy` machine rounds that other work disturbs are accepted: measured again, they would count.
    """
    folder = home.path / "kinds" / "time"
    for version in VERSIONS:
        provide(parse_version(version), home, Lines())
    checkouts = (_checkout_before(home, folder), ROOT)
    minutes: tuple[list[float], list[float]] = ([], [])
    for pair in range(PAIRS):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            done = _session(home, folder / "session", checkouts[side], busy=busy)
            if done.exit_code:
                yield Figure("exit code of run", done.exit_code, "", at_most=0, note=done.printed)
                return
            minutes[side].append(done.minutes)
    interval = ratio_interval(*minutes, CONFIDENCE)
    assert interval is not None  # every session takes time
    before, now = (sum(side) / PAIRS for side in minutes)
    yield Figure("a session of three steps before", before, "minutes")
    yield Figure("a session of three steps now", now, "minutes")
    note = f"{PAIRS} pairs, {100 * CONFIDENCE:.0f} % interval {interval.low:.3f} to {interval.high:.3f}"
    yield Figure("now / before", interval.estimate, "", at_most=MAX_RATIO, note=note)


def _checkout_before(home: Home, folder: Path) -> Path:
    """Return a checkout of the commit BEFORE, with an environment of its own."""
    checkout = folder / "before"
    if not (checkout / "tidemark").is_file():
        shutil.rmtree(checkout, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        run(["git", "clone", "--quiet", "--shared", ROOT, checkout], what="cloning this checkout")
        run(["git", "-C", checkout, "checkout", "--quiet", BEFORE], what=f"a checkout of {BEFORE}")
    # Its launcher would install its own packages into an environment that it shared, in each session anew.
    tidemark(["check"], home, Path(os.sep), checkout, shows=False)
    return checkout


def _session(home: Home, folder: Path, checkout: Path, *, busy: bool) -> CommandRun:
    """Measure in a home that has nothing but builds."""
    shutil.rmtree(folder, ignore_errors=True)
    scratch = Home(folder)
    link_home(home, scratch, keeps_builds=True)
    steps = [word for step in STEPS for word in ("--step", step)]
    options = ["--keep-disturbed"] if busy else []
    try:
        return tidemark(["run", *options, *steps, *VERSIONS], scratch, Path(os.sep), checkout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
