"""`./tidemark build list` and `./tidemark build prune`: what is in the build cache, and deleting from it."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from build.cache.pruning import GIGABYTE, CachedBuild, cached_builds
from build.errors import TidemarkError
from build.home import Home
from history.changes.needed_builds import needed_builds
from history.counts import counted
from history.open import open_reader
from runners.measuring.machine_lock import measuring_alone
from runners.retention.pruning import Limits, gigabytes, prune

COMMITS = 10
"""How many of the last commits of a branch keep their builds, unless a plan says otherwise."""

_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)GB")
_AGE = re.compile(r"([0-9]{1,5})d")

HINT = "./tidemark build prune 20GB, 30d or NAME...; ./tidemark build list shows the names"


def list_builds(home: Home) -> list[str]:
    """Return a line for each build, the one used longest ago first, and one for all."""
    builds = cached_builds(home)
    needed = _needed(home)
    width = max((len(build.name) for build in builds), default=0)
    lines = [f"{build.name:<{width}}  {_row(build, needed)}" for build in builds]
    total = sum(build.bytes for build in builds)
    return [*lines, f"{counted(len(builds), 'build')}, {gigabytes(total)}"]


def prune_builds(words: Sequence[str], home: Home) -> list[str]:
    """Delete what the words ask for, and damaged builds; return a line for each build, and one for all.

    A word is a size that builds may take, `20GB`, the days after which one that was not used goes, `30d`, or
    the name of a build. Raises TidemarkError for any other, before anything is deleted, and BusyError while
    something is measured.
    """
    limits, names = _limits(words)
    with measuring_alone(home):
        known = {build.name: build for build in cached_builds(home)}
        for name in names:
            if name not in known:
                raise TidemarkError(f"'{name}' is no size, no age and no build of the cache", hint=HINT)
        pruned = prune(home, _needed(home), limits, tuple(known[name] for name in names))
    lines = [f"deleted: {build.name}, {gigabytes(build.bytes)}" for build in pruned.builds]
    lines.append(str(pruned) or f"nothing was deleted; builds take {gigabytes(pruned.left_bytes)}")
    most = limits.builds_bytes
    if most is not None and pruned.left_bytes > most:
        lines.append(
            f"more than {gigabytes(most)} are left: needed or imported, as ./tidemark build list says; "
            "by NAME they are deleted as well"
        )
    return lines


def _limits(words: Sequence[str]) -> tuple[Limits, list[str]]:
    size, before, names = None, None, []
    for word in words:
        if found := _SIZE.fullmatch(word):
            size = float(found[1]) * GIGABYTE
        elif found := _AGE.fullmatch(word):
            before = datetime.now(UTC) - timedelta(days=int(found[1]))
        else:
            names.append(word)
    return Limits(size, before), list(dict.fromkeys(names))


def _needed(home: Home) -> dict[str, str]:
    """Return which builds the home's own history needs; one that is elsewhere is asked by the night alone."""
    if not home.history.is_file():
        return {}
    with open_reader(home.history) as reader, reader.database.reading() as connection:
        return needed_builds(connection, COMMITS)


def _row(build: CachedBuild, needed: Mapping[str, str]) -> str:
    if build.damage:
        why = f"damaged: {build.damage}"
    elif build.key in needed:
        why = f"needed: {needed[build.key]}"
    else:
        why = "imported" if build.is_imported else ""
    what = "; ".join(part for part in (build.version, why) if part)
    return f"{build.bytes / 1e6:7.0f} MB  used {build.used_at:%Y-%m-%d}  {what}"
