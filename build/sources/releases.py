"""Which releases are known, what their tarballs must hash to, and what they are called where."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder, write_atomically
from build.home import Home
from build.lock import held
from build.version import Engine, Version, release_numbers

VERSIONS = Path(__file__).with_name("versions.toml")


class ReleaseError(TidemarkError):
    """What is known about releases cannot be read."""


@dataclass(frozen=True)
class Upstream:
    """Where one engine's source comes from; templates as `versions.toml` explains them."""

    engine: Engine
    tarball: str
    git: str
    pools: tuple[str, ...]
    sha256: Mapping[str, str]
    """Release to hex SHA-256 of its tarball, oldest release first."""

    def tarball_url(self, release: str) -> str:
        """Upstream's address of a release tarball."""
        return _filled(self.tarball, release)

    def pool_paths(self, release: str) -> list[str]:
        """Paths below an apt base address at which a release's tarball may lie."""
        return [_filled(template, release) for template in self.pools]

    def file_names(self, release: str) -> list[str]:
        """The names a release's tarball may have in the source cache, upstream's own first."""
        addresses = [self.tarball_url(release), *self.pool_paths(release)]
        return list(dict.fromkeys(address.rpartition("/")[2] for address in addresses))


def _filled(template: str, release: str) -> str:
    parts = release.split(".")
    return template.format(release=release, series=".".join(parts[:2]), major=parts[0])


def upstream(engine: Engine) -> Upstream:
    """One engine's table of `versions.toml`.

    Raises ReleaseError when the file cannot be read, or says nothing about the engine.
    """
    return _read(engine, VERSIONS)


@cache
def _read(engine: Engine, path: Path) -> Upstream:
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ReleaseError("the list of releases cannot be read", where=f"{path}: {error}") from error
    if engine not in table:
        raise ReleaseError(f"no release of {engine} is known yet", where=str(path))
    entry = table[engine]
    try:
        return Upstream(engine, entry["tarball"], entry["git"], tuple(entry["pools"]), entry["sha256"])
    except KeyError as error:
        raise ReleaseError(f"[{engine}] lacks {error}", where=str(path)) from error


def known_releases(engine: Engine, home: Home) -> list[str]:
    """Every release with a pin, listed or recorded at first use, oldest first."""
    return sorted({*upstream(engine).sha256, *_recorded(home).get(engine, {})}, key=release_numbers)


def pinned_digest(version: Version, home: Home) -> str | None:
    """The hex SHA-256 the release's tarball must have; None when no pin exists or `version` is no release."""
    if not version.is_release:
        return None
    listed = upstream(version.engine).sha256.get(version.ref)
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
        pins: dict[str, dict[str, str]] = json.loads(path.read_text())
    except ValueError as error:
        raise ReleaseError(
            "the digests recorded at first use cannot be read",
            where=f"{path}: {error}",
            hint="mend the file, or remove it: the digests are then recorded anew",
        ) from error
    return pins
