"""What a killed server leaves on the machine beside processes and files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from build.engines import EngineRegistry
from build.version import Engine
from suites.postgres import shared_memory


class Leftover(Protocol):
    """Something of a server that outlives its processes and lies outside its folder."""

    def remove(self) -> None:
        """Remove it, unless a living server uses it."""


Search = Callable[[Path], Sequence[Leftover]]
"""From a data directory to what the server on it holds, while it runs or after it was killed; nothing when it
belongs to another engine."""


def _nothing(data: Path) -> Sequence[Leftover]:
    """InnoDB works in private memory, which dies with the process."""
    del data
    return ()


SEARCHES: EngineRegistry[Search] = EngineRegistry(
    "search for leftovers",
    __name__,
    {Engine.POSTGRES: shared_memory.of_postmaster, Engine.MYSQL: _nothing},
)


def leftovers(data: Path) -> list[Leftover]:
    """What the server on the data directory `data` holds outside of it, whatever its engine."""
    return [leftover for search in SEARCHES.values() for leftover in search(data)]
