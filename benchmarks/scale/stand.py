"""A server for a history, and boxes that record into it, each a process with a home of its own."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.history_server import HistoryServer
from benchmarks.scale.sessions import RecordedRound, read_log
from build.home import ROOT, Home, locate
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from history.errors import HistoryError
from history.open import open_store
from history.spool.opening import open_recorded
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone

VERSION = "postgres@18.6"


@contextmanager
def new_server() -> Iterator[tuple[HistoryServer, Path]]:
    """Start a server with an empty history; yield it and a folder for what belongs to it.

    Nothing else is measured meanwhile. Raises BusyError when something is.
    """
    home = locate()
    build = provide(BuildRequest(parse_version(VERSION)), home, Silent())
    with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
        server = HistoryServer(build, folder / "1")
        try:
            server.begin()
            open_store(server.url).close()
            yield server, folder
        finally:
            server.destroy()


@dataclass(frozen=True)
class BoxRecording:
    """How a box fared; times are in seconds."""

    began: float
    ended: float
    taken: list[float]
    """By round."""


class WriterBox:
    """A box whose process can be killed and started again."""

    def __init__(self, folder: Path, number: int, url: str) -> None:
        self.name, self.url = f"box{number}", url
        self.home = Home(folder / self.name)
        self._log = folder / f"{self.name}.log"
        self._log.touch()
        self._process: subprocess.Popen[str] | None = None

    def start(self, seconds: float, *, eager: bool = False) -> None:
        """Begin to record."""
        words = [self.url, str(self.home.path), self.name, str(seconds), str(self._log)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale.writer", *words, *(["eager"] if eager else [])],
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        """Kill its process, if it has one, as when the box loses its power."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ended(self) -> "BoxRecording":
        """Wait until it ends; return how it fared. Raises RuntimeError when it failed."""
        assert self._process is not None
        said, _ = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}: a round was refused")
        began, ended, *taken = (float(line) for line in said.split())
        return BoxRecording(began, ended, taken)

    def deliver(self) -> tuple[str, ...]:
        """Send what waits on it, as the next command does; return what is wrong."""
        try:
            with open_recorded(self.url, self.home) as store:
                return tuple(store.problems)
        except HistoryError as error:
            return (str(error),)

    def logged(self) -> tuple[Counter[RecordedRound], Counter[RecordedRound]]:
        """Return the rounds that it began to record, and those it was told are recorded."""
        return read_log(self._log)
