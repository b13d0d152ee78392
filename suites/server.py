"""What a session needs of a database server, whatever the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from build.build import Build
from build.errors import TidemarkError
from build.version import Engine

SOCKET_PATH_LIMIT = 107
"""Bytes in the path of a Unix socket, without the closing zero (unix(7), sun_path)."""


class ServerError(TidemarkError):
    """A server that cannot be made, does not start, or died."""


class ResetError(TidemarkError):
    """A reset that could not bring the server to rest. `metrics` is what it measured all the same."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", metrics: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.metrics = metrics or {}


@dataclass(frozen=True)
class Address:
    """How a client on this machine reaches a server."""

    engine: Engine
    socket: Path
    user: str
    database: str
    password: str = ""


class Server(Protocol):
    """One server on a data directory of its own, reached through a Unix socket only."""

    @property
    def build(self) -> Build:
        """What it runs."""

    @property
    def address(self) -> Address:
        """Where clients find it."""

    @property
    def pid(self) -> int:
        """The process at the root of the server's process tree."""

    @property
    def cores(self) -> int:
        """Processes that maintenance may use in parallel."""

    def create(self) -> None:
        """Make the data directory. Raises ServerError."""

    def start(self) -> None:
        """Start and wait until it answers. Raises ServerError with the tail of its log."""

    def stop(self) -> None:
        """Shut down in order, with force when that takes too long. Leaves no process and no shared memory."""

    def abandon(self) -> None:
        """End at once; the data directory is of no more use. Leaves no process and no shared memory."""

    def keep(self) -> None:
        """Shut down in order, and keep the data directory as what every `restore` begins from."""

    def restore(self) -> None:
        """End the server, and put the data directory back to what was kept."""

    def destroy(self) -> None:
        """End, and delete the data directory."""

    def death(self) -> str | None:
        """None while the server runs; else how it ended, with the tail of its log."""

    def settings(self) -> Mapping[str, str]:
        """The whole effective configuration."""

    def counters(self) -> Mapping[str, float]:
        """Totals that only grow, by the metric that says how much of them a query costs."""

    def roles(self) -> Mapping[int, str]:
        """What the server's threads are for, by their numbers in the kernel. Raises ServerError."""

    def reset(self) -> Mapping[str, float]:
        """Bring the server to rest after a step; what that took, as metrics. Raises ResetError."""


def require_short(socket: Path) -> None:
    """Raise ServerError when the path of a Unix socket is longer than the kernel takes."""
    length = len(bytes(socket))
    if length > SOCKET_PATH_LIMIT:
        raise ServerError(
            f"the path of the server's socket has {length} bytes; a Unix socket takes {SOCKET_PATH_LIMIT}",
            where=str(socket),
            hint="set TIDEMARK_HOME to a folder with a shorter path",
        )


def postgres_port(socket: Path) -> int:
    """The port that Postgres' clients must be told to find `socket`: it is the end of the file's name."""
    return int(socket.suffix.removeprefix("."))
