"""The layouts of a session: each build is linked several times, and rounds take the links in turns."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.engines import ENGINES
from build.errors import TidemarkError
from build.finished_build import Build
from build.progress import Progress
from build.relink import MAX_SEED, linker_version, relink, require_linker
from build.request import RECIPES
from build.version import Engine, Version
from history.stats.layouts import MIN_LAYOUTS
from history.store.records import LAYOUT_SEEDS, LAYOUTS
from runners.measuring.request import Exact, Request
from suites.keys.profile import Mode

Layouts = Mapping[str, Sequence[Build]]
"""The layouts of each version's build, by the version's name; empty for sessions without layouts."""

FOLDER = "layouts"
"""The folder below that of the session's servers with its layouts."""


class LayoutError(TidemarkError):
    """A session cannot have the layouts that it was asked for."""


def can_lay_out(engine: Engine) -> bool:
    """Return whether servers of an engine can be linked with their functions in another order."""
    return RECIPES[engine].LINK is not None


def require_layouts(request: Request) -> None:
    """Raise LayoutError for layouts that the request cannot have, and HostError without their linker."""
    count, rounds = request.layouts, request.least_rounds
    if not count:
        return
    if count < MIN_LAYOUTS:
        raise LayoutError(
            f"{count} layouts do not show how much layouts differ",
            where="--layouts",
            hint=f"name {MIN_LAYOUTS} at least; with 8 and more, intervals become narrow enough for 2 %",
        )
    if request.exact in (Exact.ONLY, Exact.DRIVEN):
        raise LayoutError(
            "instructions do not depend on where functions lie", where="--layouts", hint="omit --layouts"
        )
    if request.profile.mode is Mode.LONG:
        raise LayoutError(
            "in long mode servers stay up, and so keep their layout",
            where="--layouts",
            hint="omit --layouts, or use --mode rounds",
        )
    if count > rounds:
        raise LayoutError(
            f"{count} layouts need a round each, and a step has {rounds}",
            where="--layouts",
            hint=f"use --repetitions {count}, or fewer layouts",
        )
    for version in request.versions:
        if not can_lay_out(version.engine):
            raise LayoutError(
                f"linking a server of {ENGINES[version.engine].title} once more has not been tried",
                where=str(version),
                hint="omit --layouts",
            )
    require_linker()


def seeds_of(uid: str, version: Version, count: int) -> list[int]:
    """Return the seeds of a version's layouts in session `uid`, which a resumed session has again.

    Those of two versions, and of two sessions, have nothing to do with each other.
    """
    texts = (f"{uid} {version} {number}" for number in range(1, count + 1))
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return [int.from_bytes(digest[:8], "big") % MAX_SEED + 1 for digest in digests]


def layout_options(request: Request, uid: str) -> dict[str, object]:
    """Return the options of a session that say its layouts; a session without layouts has none."""
    if not request.layouts:
        return {}
    seeds = {str(version): seeds_of(uid, version, request.layouts) for version in request.versions}
    return {LAYOUTS: {"count": request.layouts, "linker": linker_version()}, LAYOUT_SEEDS: seeds}


def link_layouts(
    request: Request, builds: Sequence[Build], uid: str, folder: Path, progress: Progress
) -> Layouts:
    """Link the layouts of all builds of session `uid` below `folder`. Raises RelinkError."""
    if not request.layouts:
        return {}
    layouts = {}
    for number, build in enumerate(builds, start=1):
        with progress.task(f"{build.version}: linking {request.layouts} layouts"):
            seeds = seeds_of(uid, build.version, request.layouts)
            layouts[str(build.version)] = relink(build, seeds, folder / FOLDER / str(number))
    return layouts
