"""What the servers of all engines share: a folder, a process, a data directory to begin again from."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from build.build import Build
from suites.processes import how_it_ended, run, tail_of
from suites.server import Address, ServerError
from suites.sizing import Sizes


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
        run(command, what=f"copying the loaded data of {self.build.version}")
        os.sync()

    def destroy(self) -> None:
        """End the server, and delete its folder."""
        self.abandon()
        shutil.rmtree(self.folder, ignore_errors=True)

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
