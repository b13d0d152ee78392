"""How a version is compiled: resolved for one release on one host, before anything runs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from build.errors import TidemarkError
from build.version import Engine


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
