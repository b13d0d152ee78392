"""What a finished compile is to the rooms that use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build.version import Version, release_numbers


@dataclass(frozen=True)
class Build:
    """One compiled version in the cache, immutable once there."""

    version: Version
    """As it was asked for."""

    release: str
    """What the source calls itself: `18.6`, `19devel`, `9.7.2`."""

    key: str
    """Hex SHA-256 over source digest, recipe, patches and compiler: same key, same binaries."""

    prefix: Path
    """The install prefix; programs are in `bin/`."""

    manifest: Mapping[str, Any]
    """`build.json` as it lies in the prefix."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The release as numbers, for version ranges: (18, 6)."""
        return release_numbers(self.release)

    @property
    def major(self) -> int:
        """The first number of the release."""
        return self.numbers[0]

    def program(self, name: str) -> Path:
        """The path of an installed program."""
        return self.prefix / "bin" / name
