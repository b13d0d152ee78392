"""Which releases of an engine have been published: by upstream's site, the package pool, and tags in git.

Each place is asked for a list: the page of the folder in which tarballs lie, or the tags of a repository.
Where tarballs lie is said by the same templates by which they are downloaded (build/engines.py).
"""

import html
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from build.engines import ENGINES
from build.errors import TidemarkError, did_you_mean
from build.home import Home
from build.sources import download
from build.sources.git import mirror
from build.sources.repository import git_address
from build.version import Engine, is_release, release_numbers

_LINK = re.compile(r"""href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Published:
    """The releases that places have."""

    releases: frozenset[str]
    answered: tuple[str, ...]
    """The places that gave a list, as a person knows them."""

    problems: tuple[str, ...]
    """Why others did not, each with its place."""


def published_releases(engine: Engine, home: Home, majors: Collection[str], given: str | None) -> Published:
    """Ask upstream's site, the package pool and the git source `given`, or upstream's, for their releases.

    The pool is asked for packages of `majors`, the first numbers of releases. No place raises anything:
    what went wrong is told in `problems`.
    """
    address = git_address(engine, given) or ENGINES[engine].upstream.git
    places: list[tuple[str, Callable[[], set[str]]]] = [
        ("git", lambda: _tagged(engine, home, address)),
        ("upstream", lambda: _on_site(engine)),
        ("apt pool", lambda: _in_pools(engine, majors)),
    ]
    found, answered, problems = set[str](), list[str](), list[str]()
    for place, ask in places:
        try:
            releases = ask()
        except TidemarkError as error:
            problems.append(f"{place}: {error.what}")
            continue
        if releases:
            answered.append(place)
        found |= releases
    return Published(frozenset(found), tuple(answered), tuple(problems))


def _tagged(engine: Engine, home: Home, address: str) -> set[str]:
    description = ENGINES[engine]
    found = {description.release_of_tag(name) for name in mirror(address, engine, home).names()}
    return {release for release in found if release is not None}


def _on_site(engine: Engine) -> set[str]:
    """Read the folder of the site that has one for each release, or nothing if it has no such folder."""
    folder, _, rest = ENGINES[engine].upstream.tarball.partition("{")
    parent, _, before = folder.rpartition("/")
    name = f"{before}{{{rest}".partition("/")[0]
    if set(_PLACEHOLDER.findall(name)) != {"release"}:
        return set()
    return releases_in(download.read_page(f"{parent}/"), name)


def _in_pools(engine: Engine, majors: Collection[str]) -> set[str]:
    """Read the folders of the pools with packages of these majors; one that is not there has none."""
    found = set[str]()
    for path, name in _pool_folders(engine, majors):
        for address in download.apt_addresses():
            try:
                found |= releases_in(download.read_page(f"{address}{path}/"), name)
            except download.AbsentFileError:
                continue
    return found


def _pool_folders(engine: Engine, majors: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield folders of pools, each once, with the template of the names of tarballs in them."""
    seen = set()
    for template in ENGINES[engine].upstream.pools:
        for major in sorted(majors):
            whole = template.replace("{major}", major)
            path, _, name = whole.rpartition("/")
            if not _PLACEHOLDER.search(path) and path not in seen:
                seen.add(path)
                yield path, name


def releases_in(page: str, name: str) -> set[str]:
    """Return the releases to which a page of a web server links by names after a template.

    `name` is such as `v{release}` or `postgresql-18_{debian}.orig.tar.bz2`; links to anything else are none.
    """
    pattern = (
        re.escape(name).replace(r"\{release\}", "(?P<ref>[^/]+)").replace(r"\{debian\}", "(?P<ref>[^/]+)")
    )
    found = set()
    for link in _LINK.findall(page):
        last = unquote(html.unescape(link)).rstrip("/").rpartition("/")[2]
        match = re.fullmatch(pattern, last)
        release = match["ref"].replace("~", "") if match else ""
        if is_release(release):
            found.add(release)
    return found


def nearest_release(release: str, known: Collection[str]) -> str:
    """Return the known release that is meant most likely by one that does not exist; empty without any.

    It is one that is written alike, such as 18.6 for 18.66, or else the nearest one by its numbers.
    """
    meant = did_you_mean(release, sorted(known, key=release_numbers, reverse=True))
    if meant:
        return meant.removeprefix("did you mean ").removesuffix("?")
    wanted = release_numbers(release)
    return min(known, key=lambda ref: _distance(release_numbers(ref), wanted), default="")


def _distance(one_release: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    return [abs(ours - theirs) for ours, theirs in zip(one_release, other, strict=False)]
