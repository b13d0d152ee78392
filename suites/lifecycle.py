"""What the servers of all engines share: a folder, a process, a data directory to begin again from."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from build.build import Build
from suites.processes import as_server_user, how_it_ended, run, tail_of, tree_of
from suites.server import Address, ServerError
from suites.sizing import Sizes

COPY_SECONDS = 2 * 3600.0
"""How long copying the loaded data for a round may take."""

ANSWER_SECONDS = 2 * 3600.0
"""How long a server may take for what it is asked between loads, the whole reset after a step included."""


class LocalServer:
    """A server on this machine. All of it lies in `folder`: `data/`, the socket, its log, `loaded/`."""

    def __init__(self, build: Build, sizes: Sizes, folder: Path, address: Address) -> None:
        self.build = build
        self.cores = sizes.workers
        self.folder = folder
        self.data = folder / "data"
        self.loaded = folder / "loaded"
        self.log = folder / "server.log"
        self.address = address
        self._bound_to: Collection[int] | None = sizes.bound_to
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process at the root of the server's process tree."""
        if self._process is None:
            raise ServerError(f"{self.build.version} is not running", where=str(self.folder))
        return self._process.pid

    def death(self) -> str | None:
        """None while the server runs; else how it ended and the tail of its log."""
        if self._process is None:
            return "it was stopped"
        status = self._process.poll()
        if status is None:
            return None
        return f"{how_it_ended(status)}; the end of its log:\n{tail_of(self.log)}"

    def stop(self) -> None:
        """Shut down in order; each engine in its own way."""
        raise NotImplementedError

    def abandon(self) -> None:
        """End the server at once; each engine in its own way."""
        raise NotImplementedError

    def keep(self) -> None:
        """Shut down in order, and make the data directory what every `restore` begins from."""
        self.stop()
        shutil.rmtree(self.loaded, ignore_errors=True)
        self.data.rename(self.loaded)

    def restore(self) -> None:
        """Replace the data directory by a copy of what was kept, and wait until it is on disk.

        The copy shares its blocks with the original where the file system can (reflink). Without the wait the
        kernel would write it out while something is measured.
        """
        self.abandon()
        shutil.rmtree(self.data, ignore_errors=True)
        command: list[str | Path] = ["cp", "--archive", "--reflink=auto", self.loaded, self.data]
        # As the user whose files they are: root would write through a link that this user puts there.
        what = f"copying the loaded data of {self.build.version}"
        run(as_server_user(command), what=what, seconds=COPY_SECONDS)
        os.sync()

    def destroy(self) -> None:
        """End the server, and delete its folder."""
        self.abandon()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _answering(self, what: str) -> Iterator[None]:
        """End the server when the block takes longer than ANSWER_SECONDS.

        A statement waits for a server that hangs for as long as that lives; once it is gone it is an error.
        Raises ServerError then.
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
                f"{self.build.version}: {what} was not done after {ANSWER_SECONDS:g} s: the server is ended",
                where=str(self.log),
            ) from error
        finally:
            timer.cancel()

    def _death_soon(self) -> str | None:
        """How the server ended: clients notice a moment before it is gone."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
        return self.death()

    def _end(self, orders: "Collection[tuple[int, float]]") -> None:
        """Send each (signal, seconds to wait) in turn until the process has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        for order, patience in orders:
            if process.poll() is not None:
                break
            process.send_signal(order)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
