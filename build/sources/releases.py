"""Releases: those that are known, with pinned digests and addresses of their tarballs, and those published.

What has been published is asked of each place as a list: the page of the folder in which tarballs lie, or the
tags of a repository. Where tarballs lie is said by the same templates by which they are downloaded
(build/engines.py).
"""

import html
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from build.engines import ENGINES
from build.errors import TidemarkError, did_you_mean
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.sources import download
from build.sources.git import mirror
from build.sources.repository import git_address
from build.version import Engine, Version, is_release, release_numbers

VERSIONS = Path(__file__).with_name("versions.toml")

_LINK = re.compile(r"""href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class ReleaseError(TidemarkError):
    """The list of releases, or the digests recorded on first use, cannot be read."""


@dataclass(frozen=True)
class Release:
    """A release and everything that is known about its tarball before it is fetched."""

    version: Version
    tarball_url: str
    """Upstream's URL of the tarball."""

    pool_paths: tuple[str, ...]
    """Paths, relative to an apt base URL, at which the tarball may be found."""

    sha256: str | None
    """The hex SHA-256 that the tarball must have; None if it is neither listed nor recorded yet. It is then
    taken from upstream over HTTPS, or from apt's pool with the digest that its archive has signed."""

    @property
    def file_names(self) -> list[str]:
        """The names that the tarball may have in the source cache, upstream's own first."""
        locations = (self.tarball_url, *self.pool_paths)
        return list(dict.fromkeys(location.rpartition("/")[2] for location in locations))


def find_release(version: Version, home: Home) -> Release | None:
    """Return the release of a version; None if `version` is a branch, tag or commit.

    Raises ReleaseError if the pinned digests cannot be read.
    """
    if not version.is_release:
        return None
    upstream, release = ENGINES[version.engine].upstream, version.ref
    return Release(
        version,
        upstream.tarball_url(release),
        tuple(upstream.pool_paths(release)),
        pinned_digest(version, home),
    )


def listed_digests(engine: Engine) -> Mapping[str, str]:
    """Return the table of one engine in `versions.toml`: release -> hex SHA-256, oldest release first.

    Raises ReleaseError if the file cannot be read, or has no table for the engine.
    """
    table = _read(VERSIONS)
    if engine not in table:
        raise ReleaseError(f"no release of {engine} is listed", where=str(VERSIONS))
    return table[engine]


@cache
def _read(path: Path) -> Mapping[str, Mapping[str, str]]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ReleaseError("the list of releases cannot be read", where=f"{path}: {error}") from error


def known_releases(engine: Engine, home: Home) -> list[str]:
    """Return every release with a pinned digest, listed or recorded on first use, oldest first."""
    return sorted({*listed_digests(engine), *_recorded(home).get(engine, {})}, key=release_numbers)


def pinned_digest(version: Version, home: Home) -> str | None:
    """Return the hex SHA-256 that a release's tarball must have; None without one, or if it is no release."""
    if not version.is_release:
        return None
    listed = listed_digests(version.engine).get(version.ref)
    return listed or _recorded(home).get(version.engine, {}).get(version.ref)


def record_pin(version: Version, sha256: str, home: Home) -> None:
    """Record the digest of a release on first use; this machine then accepts no other tarball for it."""
    make_folder(home.sources)
    with held(home.sources / ".locks" / "pins"):
        pins = _recorded(home)
        pins.setdefault(version.engine, {}).setdefault(version.ref, sha256)
        write_atomically(pins_file(home), json.dumps(pins, indent=2, sort_keys=True) + "\n")


def pins_file(home: Home) -> Path:
    """Return the file with the digests that were recorded on first use: engine -> release -> hex SHA-256."""
    return home.sources / "pins.json"


def _recorded(home: Home) -> dict[str, dict[str, str]]:
    path = pins_file(home)
    if not path.exists():
        return {}
    try:
        return _checked_pins(json_value(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "the digests recorded on first use cannot be read",
            where=f"{path}: {error}",
            hint="repair the file, or remove it; the digests are then recorded again",
        ) from error


def _checked_pins(pins: Any) -> dict[str, dict[str, str]]:
    """What `record_pin` wrote, by engine and release. Raises ValueError for anything else."""
    if not isinstance(pins, dict) or not all(isinstance(table, dict) for table in pins.values()):
        raise ValueError("it is not an object of one object for each engine")
    for table in pins.values():
        for release, digest in table.items():
            if not (is_release(release) and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)):
                raise ValueError(f"{release[:40]!r} is not a release with the hex SHA-256 of its tarball")
    return pins


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
