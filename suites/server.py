"""A database server: its address, its process, its data directory and its log, whatever its engine."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

import psutil

from build.errors import TidemarkError
from build.files import open_checked, remove_folder
from build.finished_build import Build
from build.version import Engine
from suites.control_groups.declared import DiskUse, LimitError, MemoryUse
from suites.control_groups.group import (
    ControlGroup,
    DiskLimit,
    GroupLimit,
    MemoryLimit,
    group_name,
    make_group,
)
from suites.control_groups.storage import device_of, forget
from suites.metrics import BEFORE
from suites.processes import as_server_user, exit_reason, run, tail_of, tree_of
from suites.sizing import Sizes

Answer = TypeVar("Answer")

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


COPY_SECONDS = 2 * 3600.0
"""Time limit for copying the loaded data for a round."""

ANSWER_SECONDS = 2 * 3600.0
"""Time limit for requests to a server between loads; one of them is the whole reset after a step."""


LOG = "server.log"
"""The name of a server's log in its folder."""

KEPT_BYTES = 16 * 1024**2
"""The most of a log that is kept, from its end."""

LONGEST_LINE = 200
"""The most characters of a line of a log that an error quotes."""

MAX_ERRORS = 20
"""The most different errors of a log that are remembered, the last ones."""

START_POLL_SECONDS, START_POLL_SHARE = 0.002, 0.01
"""How long to wait before a server that starts is looked at again, and the same as a share of what its start
has taken: a start is known to one or two per cent."""


class ServerError(TidemarkError):
    """A server cannot be created, does not start, or died."""


class ResetError(TidemarkError):
    """A reset could not bring the server to rest. `metrics` are the values that it measured nevertheless."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", metrics: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.metrics = metrics or {}


def sizes_before(sizes: Mapping[str, float]) -> dict[str, float]:
    """Return sizes that were read before the reset as metrics."""
    return {BEFORE[name]: value for name, value in sizes.items()}


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


def start_pause(began: float) -> float:
    """Return how long to wait before a server is looked at again whose start began at a monotonic time."""
    return max(START_POLL_SECONDS, START_POLL_SHARE * (time.monotonic() - began))


class ServerLog:
    """What a server has written into its log since its last start, read as it grows."""

    def __init__(self, path: Path, error: re.Pattern[str], crash: re.Pattern[str] | None) -> None:
        """`error` matches a line with an error, which is its group 1; `crash` one of a crashed process."""
        self.path = path
        self._error, self._crash = error, crash
        self._offset = 0
        self.errors: dict[str, None] = {}
        """The last errors, each once."""
        self.crash: str | None = None
        """The first crash of one of its processes."""

    def begin(self) -> None:
        """Leave out what is in the log by now."""
        self.errors.clear()
        self.crash = None
        with contextlib.suppress(OSError):
            self._offset = self.path.stat().st_size

    def read(self) -> None:
        """Take in the lines that have been added."""
        try:
            with os.fdopen(open_checked(self.path), "rb") as file:
                file.seek(self._offset)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break
                    self._offset += len(raw)
                    self._take_in(raw.decode(errors="replace").rstrip())
        except OSError:
            return  # whoever quotes the log says that there is none

    def _take_in(self, line: str) -> None:
        if self.crash is None and self._crash is not None and (found := self._crash.search(line)):
            self.crash = found[1][:LONGEST_LINE]
        if found := self._error.search(line):
            text = found[1][:LONGEST_LINE]
            self.errors.pop(text, None)
            self.errors[text] = None
            if len(self.errors) > MAX_ERRORS:
                del self.errors[next(iter(self.errors))]


def keep_log(folder: Path, target: Path) -> bool:
    """Copy the log of the server in `folder`, which is going to be deleted; return whether there is one."""
    try:
        target.touch(mode=0o600)
        with os.fdopen(open_checked(folder / LOG), "rb") as file, target.open("wb") as kept:
            file.seek(max(0, file.seek(0, os.SEEK_END) - KEPT_BYTES))
            shutil.copyfileobj(file, kept)
    except OSError:
        return False
    return True


def _named(value: str, places: Mapping[str, str]) -> str:
    for place, name in places.items():
        value = value.replace(place, name)
    return value


class Beside(Protocol):
    """What runs beside a server for a while, and is counted apart (suites.additions.companions)."""

    @property
    def address(self) -> Address | None:
        """The address at which clients reach the server through it; None if it is not in their way."""

    def death(self) -> str | None:
        """Return None while all of it runs, else how one part ended."""

    def counters(self) -> Mapping[str, float]:
        """Return its totals that only grow. Raises TidemarkError if a part no longer does its work."""

    def stop(self) -> Mapping[str, float]:
        """End it, if it still runs; return the metrics of its end."""


class Server(ABC):
    """One server, which only this machine can reach, with all its files in `folder`: data, socket and log.

    Every engine has a subclass; what its methods ask of a running server may raise ServerError.
    """

    ERROR: ClassVar[re.Pattern[str]]
    """Matches a line of its log with an error, which is group 1."""

    DRIVER_ERROR: ClassVar[type[Exception]]
    """What Tidemark's own connections raise."""

    CRASH: ClassVar[re.Pattern[str] | None] = None
    """Matches a line about a process that crashed, which is group 1; None for a server of one process."""

    def __init__(
        self, build: Build, sizes: Sizes, folder: Path, address: Address, chosen: Mapping[str, str]
    ) -> None:
        self.build = build
        self.chosen = chosen
        self.cores = sizes.workers
        self.folder = folder
        self.data = folder / "data"
        self.loaded = folder / "loaded"
        self.log = folder / LOG
        self.own_address = address
        """The address at which the server itself listens."""
        self.beside: Beside | None = None
        """What runs beside it, from the start of a step until its reset."""
        self._bound_to: Collection[int] | None = sizes.bound_to
        self._memory_bytes, self._disk = sizes.memory_bytes, sizes.disk
        self._group: ControlGroup | None = None
        self._is_loaded = False
        self._kills = 0  # in its group, before the last start
        self._process: subprocess.Popen[bytes] | None = None
        self._log = ServerLog(self.log, self.ERROR, self.CRASH)

    def use(self, layout: Build) -> None:
        """Run another layout of the build from the next start on."""
        self.build = layout

    @property
    def pid(self) -> int:
        """The process at the root of the server's process tree."""
        if self._process is None:
            raise ServerError(f"{self.build.version} is not running", where=str(self.folder))
        return self._process.pid

    @property
    def address(self) -> Address:
        """The address for clients: that of a pooler, if one runs beside it."""
        return (self.beside.address if self.beside is not None else None) or self.own_address

    def death(self) -> str | None:
        """Return None while the server and what is beside it run, else how one ended, with its log's end."""
        return self.own_death() or (self.beside.death() if self.beside is not None else None)

    def stop(self) -> None:
        """Shut down cleanly, or by force after a time limit; no process or shared memory remains."""
        self._stop_beside()
        self._stop()

    def abandon(self) -> None:
        """End immediately, as the data are no longer needed; no process or shared memory remains."""
        self._abandon()
        self._stop_beside()

    def reset(self) -> Mapping[str, float]:
        """Bring the server to rest after a step, with nothing beside it; return the metrics of the reset.

        Raises ResetError.
        """
        beside = self._stop_beside()
        return {**self._reset(), **beside}

    def counters(self) -> Mapping[str, float]:
        """Return totals that only grow, by the metric that is their increase, of events or per query."""
        beside = self.beside.counters() if self.beside is not None else {}
        return {**self._counters(), **beside}

    def _stop_beside(self) -> Mapping[str, float]:
        return {} if self.beside is None else self.beside.stop()

    def own_death(self) -> str | None:
        """Return None while the server itself runs, else how it ended and the end of its log.

        A server whose process has crashed may still run for a moment, but has lost its connections.
        """
        if self._process is None:
            return "it was stopped"
        status = self._process.poll()
        self._log.read()
        how = self._log.crash or (None if status is None else exit_reason(status))
        group = self._group if self._is_loaded else None  # which has no limit before
        if how is not None and group is not None and group.kills() > self._kills:
            how = f"{group.killed()}; {how}"
        return None if how is None else f"{how}; the end of its log:\n{tail_of(self.log)}"

    def errors_logged(self) -> Sequence[str]:
        """Return the last errors that it has written into its log since it was up, each once, in order."""
        self._log.read()
        return list(self._log.errors)

    def without_places(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return settings with `FOLDER`, `PREFIX` and `ADDRESS` for where this server and its build are.

        Servers that are configured alike then have the same settings, which the history stores once.
        """
        places = {str(self.folder): "FOLDER", str(self.build.prefix): "PREFIX"}
        if self.own_address.host:
            places[self.own_address.host] = "ADDRESS"
        return {name: _named(value, places) for name, value in settings.items()}

    @abstractmethod
    def require_accepted(self) -> None:
        """Ask the program whether it accepts the configuration, without a data directory.

        Raises SettingError with the settings and values that it refuses.
        """

    @abstractmethod
    def create(self, data: Path | None = None) -> None:
        """Create the data directory, as a copy of `data` if that is given. Raises ServerError."""

    @abstractmethod
    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        """Start the server, wait until it accepts connections, and return what that took, as metrics.

        Under an `instrument` it may run on any core, as nothing is timed, and nothing is returned. Raises
        ServerError.
        """

    @abstractmethod
    def _stop(self) -> None:
        """Shut the server itself down cleanly, or by force after a time limit."""

    @abstractmethod
    def _abandon(self) -> None:
        """End the server itself immediately."""

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Return the whole effective configuration: alike of servers that differ in their places alone."""

    @abstractmethod
    def _counters(self) -> Mapping[str, float]:
        """Return the server's own totals that only grow."""

    @abstractmethod
    def open_counters(self) -> AbstractContextManager[Callable[[], Mapping[str, float]]]:
        """Return a context with a function that returns the totals that are read while a load runs.

        These are the metrics `at_equal_work` that the server counts itself.
        """

    @abstractmethod
    def open_client_states(self) -> AbstractContextManager[ClientStates]:
        """Return a context in which the server can be asked what its clients do."""

    @abstractmethod
    def open_activities(self) -> AbstractContextManager[Callable[[], Collection[str]]]:
        """Return a context with a function that returns what went on beside queries since its last call.

        These are names of suites.accounting.activity.CAUSES.
        """

    @abstractmethod
    def checkpoint_meter(self) -> Callable[[], float]:
        """Note where the log ends, and return a function that says how much of a checkpoint is over since.

        At 1 it has begun and ended since, and what was changed before is on disk; less is known of servers
        whose checkpoints go on with the log.
        """

    @abstractmethod
    def log_meter(self) -> Callable[[], LogVolume | None]:
        """Note where the log ends, and return a function that returns what was written into it since.

        It returns None where the server has no log, or no program that reads it.
        """

    @abstractmethod
    def debt(self) -> Mapping[str, float]:
        """Return what vacuum or purge has yet to do, as metrics."""

    @abstractmethod
    def roles(self) -> Mapping[int, str]:
        """Return the roles of the server's threads by kernel thread id."""

    @abstractmethod
    def _reset(self) -> Mapping[str, float]:
        """Bring the server itself to rest after a step. Raises ResetError."""

    def cache_use(self) -> MemoryUse:
        """Return the use of the memory of its control group, or of the machine's if it has no limit."""
        if self._group is not None and (use := self._group.use()) is not None:
            return use
        machine = psutil.virtual_memory()
        return MemoryUse(machine.total - machine.free, machine.total)

    def disk_use(self) -> DiskUse | None:
        """Return what its control group has read and written of a disk with a limit; None without one."""
        return None if self._group is None else self._group.disk_use()

    def keeping_row_versions(self) -> AbstractContextManager[None]:
        """Return a context that changes nothing: a setting keeps the background work of this engine away."""
        return contextlib.nullcontext()

    def end_loading(self) -> None:
        """Limit memory and disk from now on, as the data are loaded. Raises LimitError."""
        self._is_loaded = True
        if self._group is not None:
            self._group.limit(is_on=True)

    def keep(self) -> None:
        """Shut the server down cleanly, and keep its data directory as the one that `restore` copies."""
        self.stop()
        self._is_loaded = True
        remove_folder(self.loaded)
        self.data.rename(self.loaded)
        if self._memory_bytes is not None:
            forget(self.loaded)  # its pages, which the server will not read, would take up the group's memory

    def restore(self, *, is_timed: bool = True) -> None:
        """End the server, and replace its data directory by a copy of the kept one.

        If the file system supports reflinks, the copy shares its blocks with the original. It is flushed to
        disk if what follows `is_timed`, during which the kernel would otherwise write it.
        """
        self.abandon()
        remove_folder(self.data)
        self._copy_in(self.loaded)
        if is_timed:
            os.sync()

    def _copy_in(self, data: Path) -> None:
        """Make a copy of `data` the data directory. Raises ProcessError."""
        # As the user whose files they are: root would write through a link that this user puts there.
        command: list[str | Path] = ["cp", "--archive", "--reflink=auto", data, self.data]
        what = f"copying the kept data of {self.build.version}"
        run(as_server_user(command), what=what, seconds=COPY_SECONDS)

    def _limited(self, argv: list[str], instrument: Instrument | None) -> list[str]:
        """Return the command line that starts `argv` in the server's control group, if it has limits.

        The group exists from the first start until the server is destroyed: what the server itself has read
        and written since stays in its page cache, and what others have written of its data is dropped from
        theirs. Memory and disk are limited once data are loaded. Under an `instrument`, which needs memory
        itself, there is no limit. Raises LimitError.
        """
        limits = self._limits()
        if not limits or instrument is not None:
            return argv
        if self._group is None:
            self._group = make_group(group_name(self.folder), limits)
        self._group.limit(is_on=self._is_loaded)
        self._kills = self._group.kills()
        if self._memory_bytes is not None:
            forget(self.data)
        return self._group.entered_by(argv)

    def _limits(self) -> list[GroupLimit]:
        limits: list[GroupLimit] = []
        if self._memory_bytes is not None:
            limits.append(MemoryLimit(self._memory_bytes))
        if self._disk is not None:
            limits.append(DiskLimit(device_of(self.folder), self._disk))
        return limits

    def destroy(self) -> None:
        """End the server, and delete its folder and its control group."""
        self.abandon()
        remove_folder(self.folder)
        group, self._group = self._group, None
        if group is not None:
            with contextlib.suppress(LimitError):  # the clean-up of the session tries again, and says so
                group.remove()

    @contextlib.contextmanager
    def request(self, what: str) -> Iterator[None]:
        """Convert errors of a connection, such as after the death of the server, into ServerError."""
        try:
            with self._answering(what):
                yield
        except self.DRIVER_ERROR as error:
            reason = self._death_soon() or str(error).strip()
            raise ServerError(
                f"{self.build.version}: {what} failed: {reason}", where=str(self.log)
            ) from error

    def ask_often(self, question: Callable[[], Answer]) -> Answer:
        """Return an answer without the time limit of a request, whose timer costs as much as the question."""
        try:
            return question()
        except self.DRIVER_ERROR as error:
            raise ServerError(f"{self.build.version}: {str(error).strip()}") from error

    def _require_starting(self, began: float, limit: float, error: Exception | None = None) -> None:
        """Raise ServerError if the server has ended, or has not begun to answer within `limit` seconds.

        `error` is what a client was told.
        """
        if (ended := self.death()) is not None:
            raise ServerError(f"{self.build.version} did not start: {ended}", where=str(self.log)) from error
        if time.monotonic() > began + limit:
            self.stop()
            raise ServerError(
                f"{self.build.version} did not answer within {limit:g} s: {tail_of(self.log)}",
                where=str(self.log),
            ) from error

    def _remove_socket(self) -> None:
        self.own_address.socket.unlink(missing_ok=True)
        self.own_address.socket.with_name(f"{self.own_address.socket.name}.lock").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _answering(self, what: str) -> Iterator[None]:
        """Kill the server if the block takes longer than ANSWER_SECONDS, and raise ServerError.

        A statement waits as long as a server that hangs is alive. Once the server is killed, it fails.
        """
        process, late = self._process, threading.Event()

        def give_up() -> None:
            late.set()
            for pid in tree_of(process.pid) if process is not None else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        timer = threading.Timer(ANSWER_SECONDS, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if not late.is_set():
                raise
            raise ServerError(
                f"{self.build.version}: {what} took longer than {ANSWER_SECONDS:g} s; the server was killed",
                where=str(self.log),
            ) from error
        finally:
            timer.cancel()

    def _death_soon(self) -> str | None:
        """Return how the server ended, or None; wait, as clients may notice before it has ended."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
        return self.death()

    def _end(self, signals: "Collection[tuple[int, float]]") -> None:
        """Send the signals in order until the process has ended, waiting after each for its seconds."""
        process, self._process = self._process, None
        if process is None:
            return
        for number, seconds in signals:
            if process.poll() is not None:
                break
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)


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
