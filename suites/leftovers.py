"""Resources that a killed server leaves on the machine, apart from processes and files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from build.engines import EngineRegistry
from build.version import Engine
from suites.postgres import shared_memory


class Leftover(Protocol):
    """A resource of a server that outlives its processes and is not in its folder."""

    def remove(self) -> None:
        """Remove the resource, unless a running server uses it."""


Search = Callable[[Path], Sequence[Leftover]]
"""A function from a data directory to the resources of its server, whether that runs or was killed. The
result is empty if the directory belongs to another engine."""


def _nothing(data: Path) -> Sequence[Leftover]:
    """Return nothing: InnoDB uses private memory, which the kernel frees with the process."""
    del data
    return ()


SEARCHES: EngineRegistry[Search] = EngineRegistry(
    "search for leftovers",
    __name__,
    {Engine.POSTGRES: shared_memory.of_postmaster, Engine.MYSQL: _nothing, Engine.MARIADB: _nothing},
)


def leftovers(data: Path) -> list[Leftover]:
    """Return the resources that a server of any engine on the data directory `data` has outside of it."""
    return [leftover for search in SEARCHES.values() for leftover in search(data)]
