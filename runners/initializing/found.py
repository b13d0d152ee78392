"""What is found on a machine for the plan of a box: its name, releases, a clone, a profile that fits."""

import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from build.engines import ENGINES
from build.home import Home
from build.sources.git import clone_at
from build.sources.releases import known_releases
from build.sources.repository import clone_around, engine_of, known_address
from build.version import Engine, Version, is_prerelease, release_numbers
from runners.initializing.space import session_bytes
from suites.definition import Suite

PLACES = ("/srv/git/*", "/srv/*", "/opt/*")
"""Where clones of engines are looked for. Not in home folders, which the user of nights cannot enter."""

PROFILES = ("short", "smoke")
"""The profiles that are offered: the first one that fits on the disk."""


def box_name() -> str | None:
    """Return the host name without its domain; None for one that says nothing."""
    name = platform.node().partition(".")[0]
    return None if name in ("", "localhost") else name


def clones(root: Path = Path("/")) -> dict[Engine, str]:
    """Return the clone of each engine: the one around the current folder, or the first one in PLACES."""
    found = dict[Engine, str]()
    around = clone_around()
    if around is not None and (engine := engine_of(around)) is not None:
        found[engine] = str(around.root)
    for folder in (path for place in PLACES for path in sorted(root.glob(place.lstrip("/")))):
        with suppress(OSError):
            clone = clone_at(folder, is_named=False)
            engine = None if clone is None else engine_of(clone)
            if engine is not None:
                found.setdefault(engine, str(folder))
    return found


def source_of(engine: Engine, there: Mapping[Engine, str]) -> str:
    """Return the git source of an engine: of the environment, else a clone, else upstream's."""
    return known_address(engine, None) or there.get(engine) or ENGINES[engine].upstream.git


def base_of(engine: Engine, home: Home) -> Version:
    """Return the release to compare with: the newest of the last line but one whose digest is known."""
    lines = _newest_of_lines(engine, home)
    return Version(engine, lines[-2:][0])


def release_of(base: Version, home: Home) -> Version | None:
    """Return the newest release whose digest is known, if it is newer than the base."""
    newest = _newest_of_lines(base.engine, home)[-1]
    return Version(base.engine, newest) if release_numbers(newest) > release_numbers(base.ref) else None


def branch_of(engine: Engine) -> Version:
    """Return the branch on which the next version is developed."""
    return Version(engine, ENGINES[engine].upstream.branch)


def profile_of(suites: Sequence[Suite], versions: int, home: Path) -> str | None:
    """Return the largest of PROFILES that all suites have and the disk has room for; None without one."""
    free = shutil.disk_usage(home).free
    return next(_fitting(suites, versions, free), None)


def _fitting(suites: Sequence[Suite], versions: int, free: int) -> Iterator[str]:
    for name in PROFILES:
        if all(name in suite.profiles and session_bytes(suite, name, versions) < free for suite in suites):
            yield name


def _newest_of_lines(engine: Engine, home: Home) -> list[str]:
    """Return the newest known release of each line, oldest line first; never empty."""
    final = [release for release in known_releases(engine, home) if not is_prerelease(release)]
    return list({ENGINES[engine].line(release): release for release in final}.values())
