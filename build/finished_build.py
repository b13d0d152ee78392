"""A finished build, as the other rooms use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from build.version import Version, release_numbers

if TYPE_CHECKING:
    from build.manifest import Manifest  # needs a package, and command lines are parsed without any


@dataclass(frozen=True)
class Build:
    """One compiled version: in the cache, where it never changes, or in an install prefix of the user."""

    version: Version
    """The version as the user wrote it."""

    release: str
    """The release that the source tree names: `18.6`, `19devel`, `9.7.2`."""

    key: str
    """Hex SHA-256 of source digest, recipe, patches and compiler, or of the files of an install prefix. The
    same key means the same binaries."""

    prefix: Path
    """The install prefix; programs are in `bin/`."""

    manifest: "Manifest"
    """The contents of `build.json` in the prefix."""

    stamp: str = ""
    """Sizes and times of the files of an install prefix, which its owner can change; empty in the cache."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the release, for version ranges: (18, 6)."""
        return release_numbers(self.release)

    @property
    def major(self) -> int:
        """The first number of the release."""
        return self.numbers[0]

    @property
    def is_slim(self) -> bool:
        """Whether it has nothing but what a bisect measures with."""
        return bool(self.manifest.slim_programs)

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions that were compiled for it, by the names that CREATE EXTENSION takes."""
        return tuple(extension.creates for extension in self.manifest.extensions)

    def program(self, name: str) -> Path:
        """Return the path of the installed program `name`."""
        return self.prefix / "bin" / name
