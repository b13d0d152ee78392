"""The base class of the servers of all engines: a folder, a process and a data directory."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import psutil

from build.build import Build
from build.files import open_checked, remove_folder
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
from suites.processes import as_server_user, exit_reason, run, tail_of, tree_of
from suites.server import Address, Instrument, ServerError
from suites.sizing import Sizes

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


class LocalServer:
    """A server on this machine with all its files in `folder`: `data/`, `loaded/`, socket and log."""

    ERROR: ClassVar[re.Pattern[str]]
    """Matches a line of its log with an error, which is group 1."""

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
        self.address = address
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

    def death(self) -> str | None:
        """Return None while the server runs, else how it ended and the end of its log.

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
        if self.address.host:
            places[self.address.host] = "ADDRESS"
        return {name: _named(value, places) for name, value in settings.items()}

    def stop(self) -> None:
        """Shut the server down cleanly; implemented for each engine."""
        raise NotImplementedError

    def abandon(self) -> None:
        """End the server immediately; implemented for each engine."""
        raise NotImplementedError

    def open_counters(self) -> contextlib.AbstractContextManager[Callable[[], Mapping[str, float]]]:
        """Return a context with a function that reads totals at little cost; implemented for each engine."""
        raise NotImplementedError

    def counters(self) -> Mapping[str, float]:
        """Return totals that only grow; implemented for each engine."""
        raise NotImplementedError

    def cache_use(self) -> MemoryUse:
        """Return the use of the memory of its control group, or of the machine's if it has no limit."""
        if self._group is not None and (use := self._group.use()) is not None:
            return use
        machine = psutil.virtual_memory()
        return MemoryUse(machine.total - machine.free, machine.total)

    def disk_use(self) -> DiskUse | None:
        """Return what its control group has read and written of a disk with a limit; None without one."""
        return None if self._group is None else self._group.disk_use()

    def keeping_row_versions(self) -> contextlib.AbstractContextManager[None]:
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
