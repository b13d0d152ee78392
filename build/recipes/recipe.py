"""How a version is compiled: resolved for one release on one host, before anything runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from build.engines import ENGINES
from build.errors import TidemarkError
from build.version import Engine, release_numbers


class RecipeError(TidemarkError):
    """There is no recipe for a version, or its source does not say which release it is."""


@dataclass(frozen=True)
class Stage:
    """One command of a compile; its name appears in progress, in the log and in errors.

    Words of `command` and values of `environment` may hold `{jobs}` (parallel processes), `{compiler}`,
    `{source}` (the unpacked tree, where the command runs) and `{staging}` (the folder that stands for `/`
    while installing). They are filled in when the command runs, so that they do not change the build's key.
    """

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how one release is compiled."""

    engine: Engine
    release: str
    stages: tuple[Stage, ...]
    environment: Mapping[str, str]
    """Added to the bare environment that compiles run in."""

    prefix: str
    """The absolute install prefix that is compiled in; the finished tree lies elsewhere and works there."""

    installs: tuple[str, ...]
    """Files that have to be below the prefix afterwards, or the compile has failed."""

    counted: str
    """A regular expression that matches each line of the log that announces one compiler run."""

    commands: int
    """About how many such lines there are: the length of the progress bar of a first compile."""

    scratch_bytes: int
    """About how much disk the compile needs, install tree included."""

    def identity(self) -> dict[str, Any]:
        """What enters the build's key: all that can change the binaries, nothing else."""
        whole = asdict(self)
        return {name: whole[name] for name in ("engine", "release", "stages", "environment", "prefix")}


@dataclass(frozen=True)
class VersionRange:
    """Versions from `first` on, up to the next row of a table, that are configured the same way."""

    first: tuple[int, ...]
    """The first numbers of the oldest release in it: (18,), (8, 3)."""

    flags: tuple[str, ...]
    """For the program that configures, beside those that all versions share."""

    commands: int
    """About how many compiler runs there are: the length of the progress bar of a first compile."""

    optional: tuple[tuple[str, str], ...] = ()
    """(library as pkg-config knows it, flag when it is there)."""


def range_of(engine: Engine, release: str, table: Sequence[VersionRange]) -> VersionRange:
    """The row of `table`, which begins with the oldest, that a release of `engine` falls in.

    Raises RecipeError when the release is older than the table.
    """
    rows = [row for row in table if row.first <= release_numbers(release)]
    if not rows:
        oldest = ".".join(map(str, table[0].first))
        raise RecipeError(
            f"there is no recipe for {ENGINES[engine].title} {release}",
            hint=f"the oldest version with one is {oldest}",
        )
    return rows[-1]


class RecipeModule(Protocol):
    """What the module of an engine in build/recipes/ holds."""

    VERSION_FILE: str
    """The file of a source tree that says which release it is."""

    PROGRAMS: tuple[str, ...]
    """The programs of `bin/` that a finished build must have."""

    @property
    def release_of(self) -> Callable[[str], str]:
        """From the text of `VERSION_FILE` to the release. Raises RecipeError when it does not say."""

    @property
    def recipe(self) -> Callable[[str, Callable[[str], bool]], Recipe]:
        """From a release, and whether the host has a library, to the recipe. Raises RecipeError."""
