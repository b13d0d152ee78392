"""What is out and a plan lacks: it is told in the summary of a night, and measured if the plan follows it.

What was found is kept below the home, so that a followed release stays followed when no place answers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from build.cache import store
from build.engines import ENGINES
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.sources.releases import Published, known_releases, nearest_release, published_releases
from build.version import Engine, Version, is_release, release_numbers
from runners.nightly.keys.tracked import Follow, Tracked
from runners.nightly.plan import Plan, PlanError

PUBLISHED = "releases.json"
"""The file in the output folder with the releases that nights have found to be published, by engine."""


@dataclass(frozen=True)
class UnnamedRelease:
    """A release that a plan does not name."""

    engine: Engine
    release: str
    replaces: str
    """The newest release of its line that the plan names; empty if it has none of that line."""

    def __str__(self) -> str:
        """Return it for people."""
        what = f"replaces {self.replaces}" if self.replaces else "is out"
        return f"{self.engine} {self.release} {what}"


def look_for_releases(plan: Plan, home: Home) -> tuple[Plan, list[str]]:
    """Ask all places for releases; return the plan with those it follows, and the news for its summary.

    That places cannot be reached stops nothing. Raises PlanError for a release that no place has, if all of
    them answered.
    """
    kept, news = _kept(home), list[str]()
    for engine, tracked in plan.engines.items():
        ours = _newest_by_line(engine, _named(tracked))
        if not ours:  # a base that is installed, and nothing else
            continue
        majors = {release_numbers(line)[0] for line in ours}
        asked = [*map(str, majors), str(max(majors) + 1)]
        found = published_releases(engine, home, asked, tracked.git)
        _require_published(engine, tracked, found, kept.get(engine, frozenset()), home)
        kept[engine] = kept.get(engine, frozenset()) | found.releases
        if not found.answered:
            reasons = "; ".join(found.problems) or "no place has a list of them"
            news.append(f"whether {engine} has new ones is unknown: {reasons}")
    _keep(home, kept)
    followed = _with_followed(plan, kept)
    return followed, [*map(str, _lacking(followed, kept)), *news]


def with_followed(plan: Plan, home: Home) -> Plan:
    """Return the plan with the releases that it follows, as far as a night of this home has found them."""
    return _with_followed(plan, _kept(home))


Kept = dict[Engine, frozenset[str]]


def _with_followed(plan: Plan, kept: Kept) -> Plan:
    more: dict[Engine, tuple[str, ...]] = {}
    for new in _lacking(plan, kept):
        follow = plan.engines[new.engine].follow
        if follow is Follow.RELEASES or (follow is Follow.MINOR and new.replaces):
            more[new.engine] = (*more.get(new.engine, ()), new.release)
    engines = {
        engine: tracked.model_copy(update={"releases": (*tracked.releases, *more.get(engine, ()))})
        for engine, tracked in plan.engines.items()
    }
    return plan.model_copy(update={"engines": engines})


def _lacking(plan: Plan, kept: Mapping[Engine, frozenset[str]]) -> Iterator[UnnamedRelease]:
    for engine, tracked in plan.engines.items():
        yield from new_releases(engine, _named(tracked), kept.get(engine, ()))


def new_releases(engine: Engine, named: Iterable[str], published: Iterable[str]) -> Iterator[UnnamedRelease]:
    """Yield the newest release of each line, oldest line first, if it is newer than those named of that line.

    Of lines without a named release only those count that are newer than all named ones.
    """
    ours, theirs = _newest_by_line(engine, named), _newest_by_line(engine, published)
    for line, release in sorted(theirs.items(), key=lambda item: release_numbers(item[0])):
        if line in ours:
            if release_numbers(release) > release_numbers(ours[line]):
                yield UnnamedRelease(engine, release, ours[line])
        elif ours and release_numbers(line) > max(map(release_numbers, ours)):
            yield UnnamedRelease(engine, release, "")


def _newest_by_line(engine: Engine, releases: Iterable[str]) -> dict[str, str]:
    ordered = sorted(releases, key=release_numbers)
    return {ENGINES[engine].line(release): release for release in ordered}


def _named(tracked: Tracked) -> list[str]:
    """Return the releases that a plan names, the base among them, without variants."""
    names = [tracked.base_version.ref, *(entry.partition("#")[0] for entry in tracked.releases)]
    return [name for name in dict.fromkeys(names) if is_release(name)]


def _require_published(
    engine: Engine, tracked: Tracked, found: Published, kept: frozenset[str], home: Home
) -> None:
    """Raise PlanError for a release that this home does not have, if every place answered and lacks it."""
    if found.problems or not found.answered:
        return
    known = {*found.releases, *kept, *known_releases(engine, home)}
    for release in _named(tracked):
        version = Version(engine, release)
        if release in known or any(build.version.plain == version for build in store.all_builds(home)):
            continue
        places = ", ".join(found.answered)
        nearest = nearest_release(release, found.releases)
        raise PlanError(
            f"engines.{engine}: there is no release {release}, as these places say: {places}",
            hint=f"did you mean {nearest}?",
        )


def _kept(home: Home) -> Kept:
    """Return what earlier nights found; nothing if the file is missing or damaged."""
    try:
        found = json_value((home.path / PUBLISHED).read_text(encoding="utf-8"))
        return {
            Engine(engine): frozenset(ref for ref in releases if is_release(ref))
            for engine, releases in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _keep(home: Home, kept: Kept) -> None:
    """Keep what was found. On a full disk it is found again by the next night."""
    by_name = {engine: sorted(releases, key=release_numbers) for engine, releases in kept.items()}
    try:
        make_folder(home.path)
        write_atomically(home.path / PUBLISHED, json.dumps(by_name, indent=1) + "\n")
    except OSError:
        return
