"""Known releases, the pinned digests of their tarballs, and the tarballs' names and URLs."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from build.engines import ENGINES
from build.errors import TidemarkError
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.version import Engine, Version, is_release, release_numbers

VERSIONS = Path(__file__).with_name("versions.toml")


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
