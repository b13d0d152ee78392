"""Which releases are known, what their tarballs must hash to, and what they are called where."""

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
    """What is known about releases cannot be read."""


@dataclass(frozen=True)
class Release:
    """A release with all that is known of its tarball before any source is asked for it."""

    version: Version
    tarball_url: str
    """Upstream's address of it."""

    pool_paths: tuple[str, ...]
    """Paths below an apt base address at which it may lie."""

    sha256: str | None
    """The hex digest that it must have; None before its first use, when it is not listed."""

    @property
    def file_names(self) -> list[str]:
        """The names it may have in the source cache, upstream's own first."""
        addresses = (self.tarball_url, *self.pool_paths)
        return list(dict.fromkeys(address.rpartition("/")[2] for address in addresses))


def find_release(version: Version, home: Home) -> Release | None:
    """What is known of a release; None when `version` is a branch, tag or commit.

    Raises ReleaseError when the pins cannot be read.
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
    """One engine's table of `versions.toml`: release to hex SHA-256 of its tarball, oldest release first.

    Raises ReleaseError when the file cannot be read, or says nothing about the engine.
    """
    table = _read(VERSIONS)
    if engine not in table:
        raise ReleaseError(f"no release of {engine} is known yet", where=str(VERSIONS))
    return table[engine]


@cache
def _read(path: Path) -> Mapping[str, Mapping[str, str]]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ReleaseError("the list of releases cannot be read", where=f"{path}: {error}") from error


def known_releases(engine: Engine, home: Home) -> list[str]:
    """Every release with a pin, listed or recorded at first use, oldest first."""
    return sorted({*listed_digests(engine), *_recorded(home).get(engine, {})}, key=release_numbers)


def pinned_digest(version: Version, home: Home) -> str | None:
    """The hex SHA-256 the release's tarball must have; None when no pin exists or `version` is no release."""
    if not version.is_release:
        return None
    listed = listed_digests(version.engine).get(version.ref)
    return listed or _recorded(home).get(version.engine, {}).get(version.ref)


def record_pin(version: Version, sha256: str, home: Home) -> None:
    """Pin a release at first use: from now on no other tarball is taken for it on this machine."""
    make_folder(home.sources)
    with held(home.sources / ".locks" / "pins"):
        pins = _recorded(home)
        pins.setdefault(version.engine, {}).setdefault(version.ref, sha256)
        write_atomically(_pins_file(home), json.dumps(pins, indent=2, sort_keys=True) + "\n")


def _pins_file(home: Home) -> Path:
    return home.sources / "pins.json"


def _recorded(home: Home) -> dict[str, dict[str, str]]:
    path = _pins_file(home)
    if not path.exists():
        return {}
    try:
        return _checked_pins(json_value(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ReleaseError(
            "the digests recorded at first use cannot be read",
            where=f"{path}: {error}",
            hint="mend the file, or remove it: the digests are then recorded anew",
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
