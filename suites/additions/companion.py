"""A companion: a program that runs beside a server during a step, such as a pooler or a consumer."""

import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from build.errors import TidemarkError
from build.files import remove_folder
from build.finished_build import Build
from suites.accounting.usage import TreeUsage
from suites.processes import as_server_user, exit_reason, open_log, own, start, stop, tail_of
from suites.server import Address, beside

READY_SECONDS = 30.0
"""Time limit until a companion serves its server."""

STOP_SECONDS = 10.0
"""Time limit of its end, after which it is killed."""


class CompanionError(TidemarkError):
    """A companion is unknown, does not run beside a version, does not start, or has ended."""


class Companion:
    """A program beside one server. Its files are in a folder of its own beside the server's.

    A subclass says what is run and when it is ready. Its working directory is below the data folder of the
    session, and it ends with Tidemark, so that the clean-up of a session finds it like any server.
    """

    def __init__(self, name: str, build: Build, server: Address) -> None:
        self.name = name
        self.build = build
        self.server = server
        self.folder = beside(server.socket.parent, name)
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._usage: TreeUsage | None = None

    # --- what a subclass defines

    def prepare(self) -> None:
        """Do what must be done before the program starts; its folder is empty."""

    def command(self) -> Sequence[str | Path]:
        """Return the command line."""
        raise NotImplementedError

    @property
    def environment(self) -> Mapping[str, str] | None:
        """Variables that the program gets besides those of every measured program."""
        return None

    @property
    def as_server_user(self) -> bool:
        """Whether the program runs as the user of the servers."""
        return True

    def is_ready(self) -> bool:
        """Return whether it serves its server."""
        raise NotImplementedError

    def clear(self) -> None:
        """Remove what it left in its server, which may be gone. It does not run any more."""

    @property
    def address(self) -> Address | None:
        """The address at which clients reach the server through it; None if it is not in their way."""
        return None

    def trouble(self) -> str | None:
        """Return why it no longer does its work although it runs; None if it does."""
        return None

    def lag_bytes(self) -> float:
        """Return how many bytes of the server's log it has yet to get; 0 if it gets none."""
        return 0.0

    # --- lifecycle

    def start(self, cores: Collection[int] | None) -> None:
        """Start the program on `cores` and wait until it is ready. Raises CompanionError."""
        remove_folder(self.folder)
        self.folder.mkdir(mode=0o700)
        if self.as_server_user:
            own(self.folder)
        self.clear()
        self.prepare()
        argv = self.command()
        if self.as_server_user:
            argv = as_server_user(argv, dies_by="TERM")
        with open_log(self.log) as log:
            self._process = start(
                argv, log, bound_to=cores, stderr=subprocess.STDOUT, cwd=self.folder, env=self.environment
            )
        self._usage = TreeUsage(self._process.pid)
        self._wait(self.is_ready, "is not ready")

    def stop(self) -> None:
        """End the program and remove what it left in its server."""
        process, self._process = self._process, None
        if process is not None:
            stop(process, STOP_SECONDS)
        self.clear()
        remove_folder(self.folder)

    def death(self) -> str | None:
        """Return None while the program runs, else how it ended and the end of its log."""
        if self._process is None:
            return "it was stopped"
        status = self._process.poll()
        return None if status is None else f"{exit_reason(status)}; the end of its log:\n{tail_of(self.log)}"

    def cpu_seconds(self) -> float:
        """Return the CPU time of the program and its children so far; 0 if it has ended."""
        used = None if self._usage is None else self._usage.read()
        return 0.0 if used is None else used.cpu_seconds

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            ended = self.death()
            if ended is not None or time.monotonic() > deadline:
                reason = ended or f"not within {READY_SECONDS:g} s; the end of its log:\n{tail_of(self.log)}"
                raise CompanionError(f"{self.name} {what}: {reason}", where=str(self.log))
            time.sleep(0.02)
