"""The interface of a database server, independent of its engine."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from build.build import Build
from build.errors import TidemarkError
from build.version import Engine
from suites.control_groups.declared import DiskUse, MemoryUse

SOCKET_PATH_LIMIT = 107
"""Bytes in the path of a Unix socket, without the terminating null byte (unix(7), sun_path)."""

MAX_STATES_PER_SECOND = 10.0
"""How often a server is asked what its clients do, at most."""

WORKING = "working"
"""What comes before the semicolon for a client whose query executes, or waits for a core."""

WAITING = "waiting"
"""The same for a client whose query waits for anything else."""

CPU = "CPU"
"""What a client does of which nothing else is known."""

SETUP_SECONDS = 6 * 3600.0
"""Time limit for a SQL file of a suite, and for what a script of its user loads."""


class ServerError(TidemarkError):
    """A server cannot be created, does not start, or died."""


class ResetError(TidemarkError):
    """A reset could not bring the server to rest. `metrics` are the values that it measured nevertheless."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", metrics: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.metrics = metrics or {}


class SetupError(TidemarkError):
    """A SQL file of a suite failed."""


@cache
def session_password() -> str:
    """Return the password of clients in the servers of this process: random, and in no record."""
    return secrets.token_hex(16)


def password_variables(password: str) -> dict[str, str]:
    """Return the variables from which client libraries take a password; nothing without one.

    /proc shows a command line to every user of the machine, and variables to the process's own user.
    """
    return {name: password for name in ("PGPASSWORD", "MYSQL_PWD") if password}


@dataclass(frozen=True)
class Address:
    """How a client on this machine connects to a server."""

    engine: Engine
    socket: Path
    user: str
    """The account of clients, which owns the data and has no further rights."""
    database: str
    password: str = field(default="", repr=False)
    admin: str = ""
    """The account with all rights, which the server lets in over the Unix socket alone."""
    admin_password: str = field(default="", repr=False)
    host: str = ""
    """The address of clients that use TCP; empty for those that use the Unix socket, as Tidemark's own do."""
    port: int = 0
    """The port at that address."""
    tls: Path | None = None
    """The folder with the certificate, in which clients with TLS start; None without TLS."""
    protocol: str = ""
    """How clients send statements; empty for what the step says."""

    @property
    def of_admin(self) -> "Address":
        """The same for the account with all rights."""
        return replace(self, user=self.admin, password=self.admin_password, host="", port=0, tls=None)

    @property
    def password_variables(self) -> dict[str, str]:
        """The variables from which client libraries take the password."""
        return password_variables(self.password)


@dataclass(frozen=True)
class Instrument:
    """A program that runs a server and observes it, which makes it much slower."""

    command: tuple[str, ...]
    """The words before those of the server's own command line."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that override those of the template, but none that was chosen for the session."""

    def settings_beside(self, chosen: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings that the `chosen` ones do not have; names are compared as servers do."""
        names = {_plain(name) for name in chosen}
        return {name: value for name, value in self.settings.items() if _plain(name) not in names}

    def replaced_by(self, chosen: Mapping[str, str]) -> list[tuple[str, str, str]]:
        """Return the settings that are `chosen` with another value: name, value, and its own."""
        own = {_plain(name): value for name, value in self.settings.items()}
        return [
            (name, value, own[_plain(name)])
            for name, value in chosen.items()
            if own.get(_plain(name), value).casefold() != value.casefold()
        ]


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


@dataclass(frozen=True)
class ClientStates:
    """How a server is asked what its clients do."""

    read: Callable[[], Mapping[str, int]]
    """Returns the number of clients by what their queries do, such as `waiting;LWLock:WALInsert`.

    Clients without a query are left out. Raises ServerError.
    """

    per_second: float = MAX_STATES_PER_SECOND
    """How often it is asked, by what an answer costs."""


@dataclass(frozen=True)
class LogVolume:
    """What a server wrote into its log for some work."""

    commits: int
    """The transactions that wrote something, and committed; 0 where that is not known."""

    amounts: Mapping[str, float]
    """Bytes, by the metric that is them per transaction."""


class Server(Protocol):
    """One server with a data directory of its own, which only this machine can reach."""

    @property
    def build(self) -> Build:
        """The build that the server runs."""

    @property
    def address(self) -> Address:
        """The address for clients."""

    @property
    def chosen(self) -> Mapping[str, str]:
        """The settings that were chosen for the session: those of `--set` and of a variant."""

    @property
    def pid(self) -> int:
        """The process at the root of the server's process tree."""

    @property
    def cores(self) -> int:
        """Number of processes that maintenance may use in parallel."""

    @property
    def loaded(self) -> Path:
        """The kept data directory, once `keep` was called."""

    def use(self, layout: Build) -> None:
        """Run another layout of the build, as build.relink makes them, from the next start on."""

    def create(self, data: Path | None = None) -> None:
        """Create the data directory, as a copy of `data` if that is given. Raises ServerError."""

    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        """Start the server, wait until it accepts connections, and return what that took, as metrics.

        Under an `instrument` it may run on any core, as nothing is timed, and nothing is returned. Raises
        ServerError.
        """

    def stop(self) -> None:
        """Shut down cleanly, or by force after a time limit; no process or shared memory remains."""

    def abandon(self) -> None:
        """End immediately, as the data are no longer needed; no process or shared memory remains."""

    def end_loading(self) -> None:
        """Let what is declared hold from now on, as the data are loaded. Raises LimitError."""

    def keep(self) -> None:
        """Shut the server down cleanly, and keep its data directory as the one that `restore` copies."""

    def restore(self, *, is_timed: bool = True) -> None:
        """End the server, and replace its data directory by a copy of the kept one."""

    def destroy(self) -> None:
        """End the server, and delete its data directory."""

    def death(self) -> str | None:
        """Return None while the server runs, else how it or a process of it ended, and the end of its log."""

    def errors_logged(self) -> Sequence[str]:
        """Return the last errors in its log since it was up, each once, in order."""

    def settings(self) -> Mapping[str, str]:
        """Return the whole effective configuration: alike of servers that differ in their places alone."""

    def counters(self) -> Mapping[str, float]:
        """Return totals that only grow, by the metric that is their increase, of events or per query."""

    def open_counters(self) -> AbstractContextManager[Callable[[], Mapping[str, float]]]:
        """Return a context with a function that returns the totals that are read while a load runs.

        These are the metrics `at_equal_work` that the server counts itself. Both may raise ServerError.
        """

    def open_client_states(self) -> AbstractContextManager[ClientStates]:
        """Return a context in which the server can be asked what its clients do. Raises ServerError."""

    def open_activities(self) -> AbstractContextManager[Callable[[], Collection[str]]]:
        """Return a context with a function that returns what went on beside queries since its last call.

        These are names of suites.accounting.activity.CAUSES. Both may raise ServerError.
        """

    def cache_use(self) -> MemoryUse:
        """Return the use of what caches its data: its buffers, if it reads and writes past the page cache.

        Otherwise that is the memory of its control group, or of the machine if it has no limit. Raises
        ServerError.
        """

    def disk_use(self) -> DiskUse | None:
        """Return what its control group has read and written of a disk with a limit; None without one."""

    def checkpoint_meter(self) -> Callable[[], float]:
        """Note where the log ends, and return a function that says how much of a checkpoint is over since.

        At 1 it has begun and ended since, and what was changed before is on disk; less is known of servers
        whose checkpoints go on with the log. Both may raise ServerError.
        """

    def log_meter(self) -> Callable[[], LogVolume | None]:
        """Note where the log ends, and return a function that returns what was written into it since.

        It returns None where the server has no log, or no program that reads it. Both may raise ServerError.
        """

    def debt(self) -> Mapping[str, float]:
        """Return what vacuum or purge has yet to do, as metrics. Raises ServerError."""

    def roles(self) -> Mapping[int, str]:
        """Return the roles of the server's threads by kernel thread id. Raises ServerError."""

    def keeping_row_versions(self) -> AbstractContextManager[None]:
        """Return a context in which no background work removes old versions of rows. Raises ServerError."""

    def reset(self) -> Mapping[str, float]:
        """Bring the server to rest after a step, and return the metrics of the reset. Raises ResetError."""


def require_short(socket: Path) -> None:
    """Raise ServerError if the path of a Unix socket is longer than the kernel allows."""
    length = len(bytes(socket))
    if length > SOCKET_PATH_LIMIT:
        raise ServerError(
            f"the path of the server's socket has {length} bytes; the limit is {SOCKET_PATH_LIMIT}",
            where=str(socket),
            hint="set TIDEMARK_HOME to a folder with a shorter path",
        )


def beside(server: Path, name: str) -> Path:
    """Return the path of a folder for what runs beside the server in a folder.

    It lies in the session's folder: the server's user could put a link in place of one in its own.
    """
    return server.with_name(f"{server.name}-{name}")


def postgres_port(socket: Path) -> int:
    """Return the port with which Postgres' clients find `socket`: the suffix of the file's name."""
    return int(socket.suffix.removeprefix("."))
