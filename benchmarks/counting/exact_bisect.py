"""A bisect by counts, on real builds: whether it is right, what it compiles, and how long it takes.

The parts are of `./tidemark bench bisect`: `counted` (1 % more instructions among 251 commits, found by
instructions), `compiles` (how long a bisect's compile takes, of a whole one) and `guided` (simulated: bisects
of throughput that counts guide).
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.output.figures import Figure
from benchmarks.real_builds.planted_bisect import LARGER, STEP, bisected
from benchmarks.real_builds.planted_history import BY_INSTRUCTIONS, RELEASE, PlantedHistory, make_history
from benchmarks.simulation.bisects.guided_bisect import guided_figures
from build.cache.store import all_builds
from build.home import Home, locate
from build.progress import Progress
from build.provide import provide
from build.recipes.recipe import PLAIN, BuildChoices
from build.request import BuildRequest
from build.version import Version
from runners.console import progress
from runners.measuring.machine_lock import measuring_alone

MAX_COMPILES = 1.2
"""Of the binary logarithm of the number of candidates."""

MAX_MEASURING = 0.2
"""Of the time that compiling takes."""

MAX_FAR = 0.6
MAX_NEAR = 0.2
"""Of the time that a whole compile takes."""

QUICK = BuildChoices(flags="-O1 -g0")
"""What a person can choose for a bisect by counts, at both ends: other code, compiled sooner."""


@contextmanager
def empty_home() -> Iterator[Home]:
    """Yield a home with the sources of the usual one, and with no build and no cache of objects."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-", dir="/tmp") as folder:
        home = Home(Path(folder) / "home")
        Path(folder).chmod(0o755)
        home.path.mkdir()
        home.sources.mkdir()
        for path in locate().sources.iterdir():
            if path.is_file():
                (home.sources / path.name).symlink_to(path)
        yield home


def counted_figures() -> Iterator[Figure]:
    """Yield the figures of a bisect by instructions among 251 commits, none of which is compiled yet."""
    with empty_home() as home:
        planted = make_history(home.path / "history", home, LARGER, BY_INSTRUCTIONS)
        began = time.monotonic()
        question = ("--step", STEP, "--metric", "instructions-per-op")
        answer = bisected(home, planted, home.path / "history.db", *question)
        whole = time.monotonic() - began
        compiling = sum(build.manifest.seconds.total for build in all_builds(home) if build.manifest.seconds)
    verdict, candidates = answer["verdict"], len(planted.candidates)
    tried = {place for event in answer["events"] for place in positions(event)} - {candidates}
    named = [commit["commit"] for commit in answer["blamed"]]
    note = f"{100 * (verdict['size'] - 1):+.2f} %, confidence {100 * verdict['confidence']:.1f} %"
    note += f", {verdict['rounds']} passes"
    yield Figure("counted: the planted commit is named", float(named == [planted.culprit]), "", 1, note=note)
    yield Figure(
        "counted: compiles between good and bad / log2",
        len(tried) / math.log2(candidates),
        "",
        at_most=MAX_COMPILES,
        note=f"{len(tried)} of {candidates} candidates, besides good and bad",
    )
    yield Figure(
        "counted: measuring / compiling",
        (whole - compiling) / compiling,
        "",
        at_most=MAX_MEASURING,
        note=f"{compiling:.0f} s of {whole:.0f} s are compiles that succeeded; the rest counts as measuring",
    )


def positions(event: Mapping[str, object]) -> list[int]:
    """Return the positions that an event of the log says were compiled, or could not be."""
    detail = event["detail"]
    assert isinstance(detail, dict)
    return [*detail.get("positions", ()), *([detail["position"]] if "position" in detail else [])]


def compile_figures() -> Iterator[Figure]:
    """Yield how long slim compiles take, of the time that a whole one takes without a cache."""
    with measuring_alone(locate()), progress() as shown:
        with empty_home() as home:
            planted = make_history(home.path / "history", home)
            whole = _seconds(home, planted, planted.good, shown, None)
        with empty_home() as home:
            planted = make_history(home.path / "history", home)
            far = _seconds(home, planted, planted.good, shown, ())
            near = _seconds(home, planted, planted.culprit, shown, ())
            # Its objects are in no cache either: the flags are hashed.
            quick = _seconds(home, planted, planted.good, shown, (), QUICK)
    for name, slim, most, where in (
        ("far from all builds", far, MAX_FAR, "with no build and no cache"),
        ("far from all builds, with -O1 -g0", quick, MAX_FAR, "of a bisect with build.CFLAGS='-O1 -g0'"),
        ("near a build", near, MAX_NEAR, "after a slim one of a few commits before"),
    ):
        cpu = f"{slim.cpu:.0f} of {whole.cpu:.0f} s of CPU time"
        note = f"{slim.wall:.0f} of {whole.wall:.0f} s {where}; {cpu}"
        yield Figure(f"compiles: {name} / whole", slim.wall / whole.wall, "", at_most=most, note=note)


@dataclass(frozen=True)
class CompileTimes:
    """How long one compile took, in seconds."""

    wall: float
    cpu: float
    """CPU time of its processes, which other work on the machine does not lengthen."""


def _seconds(
    home: Home,
    planted: PlantedHistory,
    commit: str,
    shown: Progress,
    slim: tuple[str, ...] | None,
    choices: BuildChoices = PLAIN,
) -> CompileTimes:
    version = Version(RELEASE.engine, f"git:{commit[:12]}")
    before = os.times()
    build = provide(
        BuildRequest(version, choices=choices, git_source=str(planted.repository), slim=slim), home, shown
    )
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    assert build.manifest.seconds is not None
    return CompileTimes(build.manifest.seconds.total, cpu)


PARTS: Mapping[str, Callable[[], Iterable[Figure]]] = {
    "counted": counted_figures,
    "compiles": compile_figures,
    "guided": guided_figures,
}
"""Part of `bench bisect` -> function that returns its figures with their targets."""
